package asaas

import (
	"testing"
	"time"

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
