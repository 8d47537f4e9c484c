package asaas

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// A refund of a part is listed from a day on which a backup was made, also if the payment came long
// before and the refund is in no notice: at first, and until one that was being sent then is listed.
// Later only charges that were given back in full are.
func TestListedRefundOfAPart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var payments []string
	for _, method := range []payment.Method{payment.PIX, payment.CreditCard} {
		r := chargeOf
		r.ExternalID, r.Method = h.newID(), method
		if got := h.driver.Charge(t.Context(), r, willing); got.Outcome != processor.Done {
			t.Fatalf("%+v", got)
		}
		h.pay(r.ExternalID)
		payments = append(payments, h.payments(r.ExternalID)[0].ID)
	}
	const days = 85
	h.clock.Advance(days * 24 * time.Hour)
	want := map[string]bool{}
	give := func(amount money.Cents) {
		t.Helper()
		for _, id := range payments {
			r := processor.RefundRequest{ExternalID: h.newID(), PaymentID: id, Amount: amount}
			if got := h.driver.Refund(t.Context(), r, willing); got.Outcome != processor.Done {
				t.Fatalf("%+v", got)
			}
			want[r.ExternalID] = true
		}
		h.elapse(t)
	}
	give(1_00)
	next := h.driver.Feeds()[processor.FeedRefunds].From(h.clock.Now())
	read := func() (found, asked int) {
		t.Helper()
		asked = h.wire.calls
		for page := (processor.Page{Next: next, More: true}); page.More; next = page.Next {
			var err error
			page, err = h.driver.Read(t.Context(), processor.FeedRefunds, page.Next)
			must(t, err)
			for _, fact := range page.Facts {
				if fact.Refund != nil && want[fact.Refund.ExternalID] {
					found++
				}
			}
		}
		return found, h.wire.calls - asked
	}
	if found, _ := read(); found != 2 {
		t.Errorf("at the restore: %d refunds of 2", found)
	}
	give(2_00)
	for h.clock.Advance(refundQuiet); h.clock.Now().Before(start.Add(days*24*time.Hour + partTime)); h.clock.Advance(refundQuiet) {
		if found, _ := read(); found != 4 {
			t.Errorf("after the quiet period: %d refunds of 4", found)
		}
	}
	read()
	h.clock.Advance(seldom)
	if found, asked := read(); found != 0 || asked != 1 {
		t.Errorf("later: %d refunds of a part, %d requests", found, asked)
	}
	give(7_00)
	if found, _ := read(); found != 6 {
		t.Errorf("after all was given back: %d refunds of 6", found)
	}
}

// A card payment that is credited, or given back in full, while a pass over the lists is under way is
// in that pass with its refunds: the account's payouts go on after it.
func TestCardIsCreditedDuringAPass(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"credited": false, "given back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			r := chargeOf
			r.ExternalID, r.Method = h.newID(), payment.CreditCard
			if got := h.driver.Charge(t.Context(), r, willing); got.Outcome != processor.Done {
				t.Fatalf("%+v", got)
			}
			h.pay(r.ExternalID)
			refund := func(amount money.Cents) {
				t.Helper()
				v := processor.RefundRequest{ExternalID: h.newID(), PaymentID: h.payments(r.ExternalID)[0].ID, Amount: amount}
				if got := h.driver.Refund(t.Context(), v, willing); got.Outcome != processor.Done {
					t.Fatalf("%+v", got)
				}
				h.elapse(t)
			}
			h.clock.Advance(time.Date(2026, 12, 22, 2, 55, 0, 0, time.UTC).Sub(h.clock.Now())) // five minutes before its credit
			refund(1_00)
			if now := h.payments(r.ExternalID)[0]; now.Status != statusDeposit {
				t.Fatalf("it is %s", now.Status)
			}
			found := false
			between := func() {
				if h.clock.Advance(10 * time.Minute); all {
					refund(r.Amount - 1_00)
				}
			}
			next := h.driver.Feeds()[processor.FeedRefunds].From(h.clock.Now())
			for page := (processor.Page{Next: next, More: true}); page.More; between = func() {} {
				var err error
				page, err = h.driver.Read(t.Context(), processor.FeedRefunds, page.Next)
				must(t, err)
				found = found || slices.ContainsFunc(page.Facts, func(f processor.Fact) bool { return f.Refund != nil && f.Refund.Amount == 1_00 })
				between()
			}
			if !found {
				t.Errorf("its refund is not in the pass")
			}
			if now := h.payments(r.ExternalID)[0]; (now.Status == statusRefunded) != all || now.Status == statusDeposit {
				t.Fatalf("it is %s", now.Status)
			}
		})
	}
}

// Our refund of a part is listed after a restore also if its charge is disputed now: else what was given
// back is returned to the merchant once the dispute is won.
func TestListedRefundOfADisputedCharge(t *testing.T) {
	t.Parallel()
	for _, status := range disputedStatuses {
		list := listJSON(paymentJSON(`"status":"PENDING"`, `"status":"`+status+`","clientPaymentDate":"2026-11-20"`,
			`"refunds":null`, `"refunds":[{"status":"DONE","value":1.00,"description":"`+ref+`"}]`))
		_, clock := env.Virtual(start, 1)
		p := openDriver(t, filtered{&answerer{answers: map[string]string{"GET /payments": "200 " + list}}, status}, clock)
		found := false
		for page := (processor.Page{Next: p.Feeds()[processor.FeedRefunds].From(start), More: true}); page.More; {
			var err error
			page, err = p.Read(t.Context(), processor.FeedRefunds, page.Next)
			must(t, err)
			found = found || slices.ContainsFunc(page.Facts, func(f processor.Fact) bool { return f.Refund != nil && f.Refund.ExternalID == ref })
		}
		if !found {
			t.Errorf("%s: the refund is not listed", status)
		}
	}
}

// A refund of a part is listed before the dispute that followed it, which has the rest. What the
// dispute took is no refund.
func TestListedDisputeOfARefundedCharge(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"1.00": "payment refund change of 900", "10.00": "payment change of 1000"} {
		list := listJSON(paymentJSON(`"status":"PENDING"`, `"status":"CHARGEBACK_REQUESTED","clientPaymentDate":"2026-11-20"`,
			`"refunds":null`, `"refunds":[{"status":"DONE","value":`+value+`,"description":null}]`))
		page, err := openAnswerer(t, &answerer{answers: map[string]string{"GET /payments": "200 " + list}}).Read(t.Context(), processor.FeedChanges, "")
		must(t, err)
		var kinds []string
		for _, f := range page.Facts {
			switch {
			case f.Payment != nil:
				kinds = append(kinds, "payment")
			case f.Refund != nil:
				kinds = append(kinds, "refund")
			case f.Change != nil:
				kinds = append(kinds, fmt.Sprint("change of ", int64(f.Change.Dispute.Amount)))
			}
		}
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// filtered is Asaas with charges of one status only.
type filtered struct {
	*answerer

	status string
}

// RoundTrip implements [http.RoundTripper].
func (f filtered) RoundTrip(r *http.Request) (*http.Response, error) {
	if status := r.URL.Query().Get("status"); status != "" && status != f.status {
		return (&answerer{answers: map[string]string{"GET /payments": "200 " + listJSON()}}).RoundTrip(r)
	}
	return f.answerer.RoundTrip(r)
}

// A card can be given back for 180 days.
func TestListedRefundOfAnOldCard(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	r := chargeOf
	r.ExternalID, r.Method = h.newID(), payment.CreditCard
	if got := h.driver.Charge(t.Context(), r, willing); got.Outcome != processor.Done {
		t.Fatalf("%+v", got)
	}
	h.pay(r.ExternalID)
	h.clock.Advance(170 * 24 * time.Hour)
	refund := processor.RefundRequest{ExternalID: h.newID(), PaymentID: h.payments(r.ExternalID)[0].ID, Amount: r.Amount}
	if got := h.driver.Refund(t.Context(), refund, willing); got.Outcome != processor.Done {
		t.Fatalf("%+v", got)
	}
	h.elapse(t)
	if got := h.listed()[processor.FeedRefunds]; got != "payment refund" {
		t.Errorf("listed: %q", got)
	}
}

// The long lists of a large account leave the requests of half the budget to its orders, and go on
// where they were once there are more.
func TestLongListsLeaveBudget(t *testing.T) {
	t.Parallel()
	_, clock := env.Virtual(start, 1)
	a := &answerer{answers: map[string]string{
		"GET /payments":               "200 " + strings.Replace(listJSON(paymentJSON()), `"hasMore":false`, `"hasMore":true`, 1),
		"POST /payments/pay_1/refund": "200 " + paymentJSON(`"refunds":null`, `"refunds":[{"status":"DONE","value":1.00,"description":"`+ref+`"}]`),
	}}
	p := openDriver(t, a, clock, SettingBudget, "1000") // 200 at once
	for feed, begin := range map[processor.Feed]string{
		processor.FeedRefunds:  p.Feeds()[processor.FeedRefunds].From(start),
		processor.FeedPayments: cursor{day: dayOf(start), list: 1, began: start}.String(),
	} {
		next, pages := begin, 0
		read := func() {
			t.Helper()
			before, most := "", pages+150
			for ; next != before && pages < most; pages++ {
				before = next
				page, err := p.Read(t.Context(), feed, next)
				must(t, err)
				next = page.Next
			}
		}
		read()
		if left, _ := p.BudgetLeft(); left < 99 || pages < 2 {
			t.Errorf("%s: %d requests are left after %d pages", feed, left, pages)
		}
		if got := p.Refund(t.Context(), processor.RefundRequest{ExternalID: ref, PaymentID: "pay_1", Amount: 1_00}, willing); got.Outcome != processor.Done {
			t.Errorf("%s: a refund is %v", feed, got.Outcome)
		}
		stopped := pages
		clock.Advance(6 * time.Hour)
		if read(); pages < stopped+50 {
			t.Errorf("%s: %d pages, then %d", feed, stopped, pages)
		}
		clock.Advance(12 * time.Hour)
	}
}
