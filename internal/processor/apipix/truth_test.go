package apipix

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// subject is one charge, return or transfer that is requested again and again.
type subject struct {
	op     bankapi.Operation
	id     string
	amount money.Cents
	of     string // the payment that a return is of
	// refused: an answer has proved that no request of it has an effect.
	refused bool
}

// truth is what the bank's records say about a subject.
type truth struct {
	exists bool
	amount money.Cents
}

func (h *harness) truth(t *testing.T, s *subject) truth {
	t.Helper()
	switch s.op {
	case bankapi.OpCharge:
		c, ok, err := h.bank.PeekCharge(s.id)
		if err != nil {
			t.Fatal(err)
		}
		return truth{ok && c.State != bankapi.ChargeFailed, c.Amount}
	case bankapi.OpRefund:
		o, ok, err := h.bank.PeekOrder(bankapi.SubjectRefund, s.id)
		if err != nil {
			t.Fatal(err)
		}
		return truth{ok, o.Amount}
	default:
		o, ok, err := h.bank.PeekOrder(bankapi.SubjectTransfer, s.id)
		if err != nil {
			t.Fatal(err)
		}
		return truth{ok, o.Amount}
	}
}

// request requests a subject, and returns how that ended, with the amount that was reported.
func (h *harness) request(ctx context.Context, s *subject) (processor.Outcome, money.Cents) {
	e := h.driver.(*Efi)
	switch s.op {
	case bankapi.OpCharge:
		a := e.Charge(ctx, processor.ChargeRequest{ExternalID: s.id, Method: payment.PIX, Amount: s.amount, ExpiresAt: start.Add(48 * time.Hour)}, willing)
		return a.Outcome, a.Charge.Amount
	case bankapi.OpRefund:
		a := e.Refund(ctx, processor.RefundRequest{ExternalID: s.id, PaymentID: s.of, Amount: s.amount}, willing)
		return a.Outcome, a.Report.Amount
	default:
		a := e.Transfer(ctx, processor.TransferRequest{ExternalID: s.id, Amount: s.amount, KeyType: "EMAIL", Key: "a@b.example"}, willing)
		return a.Outcome, a.Report.Amount
	}
}

// lookUp looks a subject up.
func (h *harness) lookUp(ctx context.Context, s *subject) (processor.Lookup, money.Cents) {
	e := h.driver.(*Efi)
	switch s.op {
	case bankapi.OpCharge:
		r := e.QueryCharge(ctx, s.id)
		return r.Lookup, r.Charge.Amount
	case bankapi.OpRefund:
		r := e.QueryRefund(ctx, s.of, s.id)
		return r.Lookup, r.Amount
	default:
		r := e.QueryTransfer(ctx, s.id)
		return r.Lookup, r.Amount
	}
}

// TestAnswersAreTrue: under any fault, and however often a request is repeated, each outcome and
// each look-up agrees with the bank's records, and one id moves money once.
func TestAnswersAreTrue(t *testing.T) {
	kinds := append([]bankapi.FaultKind{""}, bankapi.FaultKinds...)
	operations := []bankapi.Operation{bankapi.OpCharge, bankapi.OpTransfer, bankapi.OpRefund}
	rapid.Check(t, func(d *rapid.T) {
		h := newHarness(t, ProfileEfi)
		paid := h.paidCharge(t, 5_000)
		var subjects []*subject
		for range rapid.IntRange(1, 20).Draw(d, "steps") {
			if len(subjects) == 0 || rapid.Bool().Draw(d, "new") {
				subjects = append(subjects, &subject{
					op: rapid.SampledFrom(operations).Draw(d, "operation"), id: h.newID(),
					amount: money.Cents(rapid.Int64Range(1, 3_000).Draw(d, "amount")), of: paid.ID,
				})
			}
			s := rapid.SampledFrom(subjects).Draw(d, "subject")
			asks := rapid.Bool().Draw(d, "look up")
			kind := rapid.SampledFrom(kinds).Draw(d, "fault")
			if kind != "" {
				operation := s.op
				if asks {
					operation = bankapi.OpQuery
				}
				h.arm(t, operation, kind)
			}
			if rapid.IntRange(0, 9).Draw(d, "restart") == 0 {
				h.face.ForgetTokens()
			}
			before := h.truth(t, s)
			ctx, cancel := h.clock.WithTimeout(t.Context(), 20*time.Second)
			if asks {
				lookup, amount := h.lookUp(ctx, s)
				if lookup == processor.Found && (!before.exists || amount != before.amount) || lookup == processor.NotFound && before.exists {
					d.Errorf("%s under %s: %v of %d, but %+v", s.op, kind, lookup, amount, before)
				}
			} else {
				outcome, amount := h.request(ctx, s)
				after := h.truth(t, s)
				wrong := before.exists && after != before // a second effect
				switch outcome {
				case processor.Done:
					wrong = wrong || !after.exists || after.amount != s.amount || amount != s.amount || before.exists || s.refused
				case processor.Known:
					wrong = wrong || !after.exists
				case processor.Refused:
					// Of an earlier request it says nothing, and the executor knows that there was one.
					wrong = wrong || after.exists != before.exists
					s.refused = s.refused || !before.exists
				case processor.Later, processor.NotSent:
					wrong = wrong || after.exists != before.exists
				}
				if wrong {
					d.Errorf("%s under %s: %v of %d, before %+v, after %+v", s.op, kind, outcome, amount, before, after)
				}
			}
			cancel()
			h.disarm(t)
			h.clock.Advance(time.Hour) // beyond any pause
		}
	})
}

// disarm clears faults that no call has met.
func (h *harness) disarm(t *testing.T) {
	t.Helper()
	if code := h.ask("DELETE", "/control/faults"); !strings.HasPrefix(code, "200") {
		t.Fatalf("disarm: %s", code)
	}
}
