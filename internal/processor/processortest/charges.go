package processortest

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// payable reports whether a charge has what its method needs.
func payable(method payment.Method, c processor.Charge) bool {
	switch method {
	case payment.PIX:
		return c.PIX != nil && c.PIX.QRCode != "" && c.PIX.TxID != ""
	case payment.Boleto:
		return c.Boleto != nil && len(c.Boleto.Barcode) == 44 && len(c.Boleto.DigitableLine) == 47 &&
			c.Boleto.DueDate != "" && c.Boleto.OurNumber != ""
	default:
		return c.Card != nil
	}
}

func testCharge(t *testing.T, h Harness) {
	if report := h.queryCharge(t, h.NewID()); report.Lookup != processor.NotFound {
		t.Errorf("query of an id that was never sent: lookup %v (%v), want not found", report.Lookup, report.Cause)
	}
	for _, method := range h.Processor.Profile().Methods {
		t.Run(string(method), func(t *testing.T) {
			r := h.chargeRequest(method)
			first := h.charge(t, r)
			if first.Outcome != processor.Done || !payable(method, first.Charge) {
				t.Fatalf("charge: outcome %v (%v), charge %+v", first.Outcome, first.Cause, first.Charge)
			}
			safe := h.Processor.Profile().Charge.Repeat.Safe()
			if safe {
				repeated, want := h.charge(t, r), again(h.Processor.Profile().Charge)
				if repeated.Outcome != want || want == processor.Done && !reflect.DeepEqual(repeated.Charge, first.Charge) {
					t.Errorf("same id again: %+v, want %v: %+v", repeated, want, first)
				}
			}
			report := h.queryCharge(t, r.ExternalID)
			if report.Lookup != processor.Found || report.State != processor.ChargeOpen {
				t.Errorf("query: lookup %v, state %q", report.Lookup, report.State)
			}
			if !reflect.DeepEqual(report.Charge, first.Charge) || len(report.Payments) != 0 {
				t.Errorf("query shows %+v, want %+v without payments", report, first.Charge)
			}
			r.Amount++
			if !safe {
				return
			}
			if other := h.charge(t, r); other.Outcome == processor.Done {
				t.Error("same id with another amount: done")
			}
		})
	}
}

// testChargeGuard: the guard is called once, and if it fails nothing is sent.
func testChargeGuard(t *testing.T, h Harness) {
	r := h.chargeRequest(h.Processor.Profile().Methods[0])
	called := 0
	no := errors.New("the claim was lost")
	answer := h.chargeGuarded(t, r, func() error { called++; return no })
	if answer.Outcome != processor.NotSent || called != 1 || !errors.Is(answer.Cause, no) {
		t.Errorf("guard refused: outcome %v (%v), called %d times", answer.Outcome, answer.Cause, called)
	}
	if report := h.queryCharge(t, r.ExternalID); report.Lookup != processor.NotFound {
		t.Errorf("query of a charge that was not sent: %+v", report)
	}
}

// testChargeCancel: a charge that was canceled is shown as such, again and again; one that
// was paid cannot be canceled, and one that was never registered is not found.
func testChargeCancel(t *testing.T, h Harness) {
	no := errors.New("the claim was lost")
	for _, method := range h.Processor.Profile().CancelsCharges {
		t.Run(string(method), func(t *testing.T) {
			open, paid := h.chargeRequest(method), h.chargeRequest(method)
			cancel := func(r processor.ChargeRequest, guard func() error) processor.CancelAnswer {
				t.Helper()
				return h.cancelCharge(t, processor.CancelRequest{ExternalID: r.ExternalID, Method: method}, guard)
			}
			if a := cancel(open, willing); !a.NotFound {
				t.Errorf("never registered: %+v", a)
			}
			for _, r := range []processor.ChargeRequest{open, paid} {
				if a := h.charge(t, r); a.Outcome != processor.Done {
					t.Fatalf("charge: %+v", a)
				}
			}
			if a := cancel(open, func() error { return no }); a.Outcome != processor.NotSent || a.NotFound || !errors.Is(a.Cause, no) {
				t.Errorf("guard refused: %+v", a)
			}
			for range 2 {
				if a := cancel(open, willing); a.Outcome != processor.Done || a.NotFound {
					t.Errorf("canceled: %+v", a)
				}
			}
			if report := h.queryCharge(t, open.ExternalID); report.Lookup != processor.Found || report.State != processor.ChargeCanceled {
				t.Errorf("after it was canceled: %+v", report)
			}
			if h.Processor.Profile().Charge.Repeat.Safe() { // else it would be made again
				if again := h.charge(t, open); again.Outcome != processor.Known && again.Outcome != processor.Unknown {
					t.Errorf("requested after it was canceled: %+v", again)
				}
			}
			if h.Pay == nil {
				return
			}
			h.Pay(t, paid, paid.Amount)
			if a := cancel(paid, willing); a.Outcome != processor.Refused || a.NotFound {
				t.Errorf("paid: %+v", a)
			}
			if report := h.queryCharge(t, paid.ExternalID); len(report.Payments) != 1 {
				t.Errorf("after it was paid: %+v", report)
			}
		})
	}
}

// testOfflineCharge: a charge generated offline fits its order, and equals the one that a call returns.
func testOfflineCharge(t *testing.T, h Harness) {
	for _, method := range h.Processor.Profile().Methods {
		r, profile := h.chargeRequest(method), h.Processor.Profile()
		offline, ok := h.Processor.(processor.OfflineCharger).NewCharge(r)
		if !ok {
			continue
		}
		if err := processor.CheckCharge(&profile, &r, &offline); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if called := h.charge(t, r); !reflect.DeepEqual(called.Charge, offline) {
			t.Errorf("%s: offline %+v, called %+v", method, offline, called.Charge)
		}
	}
}

// wanted is the outcome of each fault, and whether the call has its effect.
var wanted = []struct {
	fault   Fault
	outcome processor.Outcome
	effect  bool
}{
	{Refuse, processor.Refused, false},
	{NotSent, processor.NotSent, false},
	{TimeoutBefore, processor.Unknown, false},
	{TimeoutAfter, processor.Unknown, true},
	{ServerErrorBefore, processor.Unknown, false},
	{ServerErrorAfter, processor.Unknown, true},
	{Late, processor.Done, true},
	{Garbage, processor.Unknown, true},
}

func testChargeFaults(t *testing.T, h Harness) {
	method := h.Processor.Profile().Methods[0]
	for _, w := range wanted {
		if !h.can(w.fault) {
			continue
		}
		t.Run(string(w.fault), func(t *testing.T) {
			r := h.chargeRequest(method)
			h.Misbehave(t, Charge, w.fault)
			answer := h.charge(t, r)
			if answer.Outcome != w.outcome {
				t.Fatalf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, w.outcome)
			}
			if w.outcome == processor.Refused {
				if answer.Failure == nil || answer.Failure.Code == "" || answer.Failure.Message == "" {
					t.Errorf("refusal without a reason: %+v", answer)
				}
				if !h.Processor.Profile().Charge.Repeat.Safe() { // its id is not known to the test server
					return
				}
				if again := h.charge(t, r); again.Outcome == processor.Done {
					t.Error("a refused id was accepted later")
				}
				return
			}
			if report := h.queryCharge(t, r.ExternalID); (report.Lookup == processor.Found) != w.effect {
				t.Errorf("lookup %v, want effect %v", report.Lookup, w.effect)
			}
			want := processor.Done
			if w.effect && !h.Processor.Profile().Charge.Repeat.Safe() {
				return
			}
			if w.effect {
				want = again(h.Processor.Profile().Charge)
			}
			if answer := h.charge(t, r); answer.Outcome != want || want == processor.Done && !payable(method, answer.Charge) {
				t.Errorf("same id again: %+v, want %v", answer, want)
			}
		})
	}
}

func testChargePaid(t *testing.T, h Harness) {
	for _, method := range h.Processor.Profile().Methods {
		r := h.chargeRequest(method)
		if answer := h.charge(t, r); answer.Outcome != processor.Done {
			t.Fatalf("charge: %+v", answer)
		}
		amounts := []money.Cents{r.Amount - 1, 1, r.Amount, r.Amount + 1} // short, rest, again, too much
		if h.PaidOnce {
			amounts = []money.Cents{r.Amount}
		}
		seen := make(map[string]bool)
		for i, amount := range amounts {
			h.Pay(t, r, amount)
			payments := h.queryCharge(t, r.ExternalID).Payments
			if len(payments) != i+1 {
				t.Fatalf("%s: %d payments after %d", method, len(payments), i+1)
			}
			last := payments[i]
			if last.Amount != amount || last.ExternalID != r.ExternalID || last.PaidAt.IsZero() || seen[last.ID] {
				t.Errorf("%s: payment %+v, want %d cents of %s under a new id", method, last, amount, r.ExternalID)
			}
			if method == payment.PIX && last.EndToEndID == "" {
				t.Errorf("Pix without endToEndId: %+v", last)
			}
			seen[last.ID] = true
		}
	}
}

// testPayments: the list shows each payment, oldest first, over any number of pages, and once
// unless its cursor is a time.
func testPayments(t *testing.T, h Harness) {
	feeder := h.Processor.(processor.Feeder)
	overlaps := feeder.Feeds()[processor.FeedPayments].From != nil // a cursor that is a time
	method := h.Processor.Profile().Methods[0]
	var want []string
	cursor := ""
	seen := make(map[string]bool)
	var got []string
	collect := func() {
		for {
			ctx, cancel := h.Clock.WithTimeout(t.Context(), h.Processor.Profile().Charge.Timeout)
			page, err := feeder.Read(ctx, processor.FeedPayments, cursor)
			cancel()
			if err != nil {
				t.Fatalf("payments after %q: %v", cursor, err)
			}
			for _, fact := range page.Facts {
				p := fact.Payment
				if seen[p.ID] {
					if overlaps {
						continue
					}
					t.Errorf("payment %s twice", p.ID)
				}
				seen[p.ID] = true
				got = append(got, p.ExternalID)
			}
			if cursor = page.Next; !page.More {
				if page.Through.IsZero() {
					t.Error("the end of the list does not say how far it is complete")
				}
				return
			}
		}
	}
	collect()
	for round := range 3 {
		for range 1 + round {
			r := h.chargeRequest(method)
			if answer := h.charge(t, r); answer.Outcome != processor.Done {
				t.Fatalf("charge: %+v", answer)
			}
			h.Pay(t, r, r.Amount)
			want = append(want, r.ExternalID)
		}
		collect()
	}
	if h.ByDay {
		slices.Sort(got)
		slices.Sort(want)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("payments %v, want %v", got, want)
	}
}
