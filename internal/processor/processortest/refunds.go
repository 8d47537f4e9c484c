package processortest

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// payment makes a charge, pays it, and returns the payment.
func (h Harness) payment(t *testing.T) processor.Payment {
	t.Helper()
	r := h.chargeRequest(h.Processor.Profile().Methods[0])
	if answer := h.charge(t, r); answer.Outcome != processor.Done {
		t.Fatalf("charge: %+v", answer)
	}
	h.Pay(t, r, r.Amount)
	payments := h.queryCharge(t, r.ExternalID).Payments
	if len(payments) != 1 {
		t.Fatalf("payments: %+v", payments)
	}
	return payments[0]
}

func (h Harness) refundRequest(p processor.Payment, amount money.Cents) processor.RefundRequest {
	return processor.RefundRequest{ExternalID: h.NewID(), PaymentID: p.ID, Amount: amount}
}

func testRefund(t *testing.T, h Harness) {
	p := h.payment(t)
	if report := h.queryRefund(t, p.ID, h.NewID()); report.Lookup != processor.NotFound {
		t.Errorf("query of an id that was never sent: %+v", report)
	}

	no := errors.New("the claim was lost")
	guarded := h.refundRequest(p, 1)
	if answer := h.refund(t, guarded, func() error { return no }); answer.Outcome != processor.NotSent {
		t.Errorf("guard refused: %+v", answer)
	}
	h.wantMade(t, h.Refunds, guarded.ExternalID, 1, 0)

	part := h.refundRequest(p, p.Amount-100)
	if answer := h.refund(t, part, willing); answer.Outcome != processor.Done {
		t.Fatalf("refund of a part: %+v", answer)
	}
	repeated := again(h.Processor.Profile().Refund)
	if answer := h.refund(t, part, willing); answer.Outcome != repeated {
		t.Fatalf("refund of a part, again: %+v, want %v", answer, repeated)
	}
	h.wantMade(t, h.Refunds, part.ExternalID, part.Amount, 1)

	tooMuch := h.refundRequest(p, 101)
	answer := h.refund(t, tooMuch, willing)
	if answer.Outcome != processor.Refused || answer.Failure == nil || answer.Evidence == "" {
		t.Errorf("a refund of more than the payment: %+v", answer)
	}
	h.wantMade(t, h.Refunds, tooMuch.ExternalID, 101, 0)

	rest := h.refundRequest(p, 100)
	if answer := h.refund(t, rest, willing); answer.Outcome != processor.Done {
		t.Errorf("refund of the rest: %+v", answer)
	}
	if h.Elapse != nil {
		h.Elapse(t)
		if report := h.queryRefund(t, p.ID, rest.ExternalID); report.State != processor.TransferPaid || report.Evidence == "" {
			t.Errorf("a few seconds later: %+v", report)
		}
	}

	nothing := h.refundRequest(p, 1)
	nothing.PaymentID = h.NewID()
	if answer := h.refund(t, nothing, willing); answer.Outcome != processor.Refused {
		t.Errorf("refund of no payment: %+v", answer)
	}
}

func testRefundFaults(t *testing.T, h Harness) {
	for _, w := range wanted {
		if !h.can(w.fault) {
			continue
		}
		t.Run(string(w.fault), func(t *testing.T) {
			r := h.refundRequest(h.payment(t), 100)
			h.Misbehave(t, Refund, w.fault)
			answer := h.refund(t, r, willing)
			if answer.Outcome != w.outcome {
				t.Fatalf("outcome %v (%v), want %v", answer.Outcome, answer.Cause, w.outcome)
			}
			h.wantMade(t, h.Refunds, r.ExternalID, r.Amount, count(w.effect))
			if w.outcome == processor.Refused {
				return
			}
			if report := h.queryRefund(t, r.PaymentID, r.ExternalID); (report.Lookup == processor.Found) != w.effect {
				t.Errorf("lookup %v, want effect %v", report.Lookup, w.effect)
			}
			if !w.effect || h.Processor.Profile().Refund.Repeat.Safe() {
				want := processor.Done
				if w.effect {
					want = again(h.Processor.Profile().Refund)
				}
				if answer := h.refund(t, r, willing); answer.Outcome != want {
					t.Errorf("same id again: %+v, want %v", answer, want)
				}
				h.wantMade(t, h.Refunds, r.ExternalID, r.Amount, 1)
			}
		})
	}
}
