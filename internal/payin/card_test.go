package payin_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/wire"
)

// cardBank is a bank that accepts test cards; the test sets each attempt's
// result.
type cardBank struct {
	*coretest.Bank

	answer   processor.TestCardAnswer
	approved bool     // what the bank's records show of the charge
	attempts []string // that arrived
}

// TestCards implements [processor.TestCardTaker].
func (b *cardBank) TestCards() []processor.TestCard { return nil }

// PayByTestCard implements [processor.TestCardTaker].
func (b *cardBank) PayByTestCard(_ context.Context, r processor.TestCardRequest) processor.TestCardAnswer {
	b.attempts = append(b.attempts, r.Payment.Result)
	return b.end(r.Charge.ExternalID, r.Attempt, b.approved)
}

// ConfirmTestCard implements [processor.TestCardTaker].
func (b *cardBank) ConfirmTestCard(_ context.Context, externalID string, attempt int, approve bool) processor.TestCardAnswer {
	b.attempts = append(b.attempts, "confirm")
	return b.end(externalID, attempt, approve)
}

func (b *cardBank) end(externalID string, attempt int, approve bool) processor.TestCardAnswer {
	switch {
	case b.answer.Challenge || b.answer.Outcome != processor.Done:
	case approve:
		b.Receive(externalID, "card-1", 100_00)
	default:
		charge := b.Charges[externalID]
		charge.State, charge.Attempt, charge.Failure = processor.ChargeOpen, attempt, &payment.Failure{Code: "do_not_honor", Message: "y"}
	}
	return b.answer
}

// cardOrder is a card order of 100.00 at a bank that accepts test cards.
func cardOrder(t *testing.T, g *coretest.Gateway, b *cardBank) payment.Payin {
	t.Helper()
	b.Bank = g.Bank
	g.Restart(func(o *app.CoreOptions) { o.Processors = processor.Registry{coretest.BankName: b} })
	g.Bank.AnswerCharge = func(_ *coretest.Bank, r processor.ChargeRequest) processor.ChargeAnswer {
		g.Bank.Charges[r.ExternalID] = &processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen}
		return processor.ChargeAnswer{Outcome: processor.Done, Charge: processor.Charge{Card: &payment.CardDetail{}}}
	}
	r := coretest.PayinRequest(t.Name(), "")
	r.Method = wire.Some(string(payment.CreditCard))
	p, _, err := g.Payins.Create(t.Context(), g.Merchant, r)
	g.Must(err)
	return p
}

func TestPayByTestCard(t *testing.T) {
	done := processor.TestCardAnswer{Outcome: processor.Done}
	rows := []struct {
		name      string
		answer    processor.TestCardAnswer
		approved  bool
		challenge bool
		refused   problem.Kind
		status    payment.PayinStatus
		attempts  int // refused ones
	}{
		{"approved", done, true, false, "", payment.PayinPaid, 0},
		{"refused", done, false, false, "", payment.PayinPending, 1},
		{"to be confirmed", processor.TestCardAnswer{Outcome: processor.Done, Challenge: true}, true, true, "", payment.PayinPending, 0},
		{"not accepted", processor.TestCardAnswer{Outcome: processor.Refused, Cause: errors.New("no")}, true, false, problem.InvalidState, payment.PayinPending, 0},
		{"not sent", processor.TestCardAnswer{Outcome: processor.NotSent}, true, false, problem.ProcessorTimeout, payment.PayinPending, 0},
		{"unknown", processor.TestCardAnswer{}, true, false, problem.ProcessorTimeout, payment.PayinPending, 0},
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) {
				g := g.For(t)
				b := &cardBank{answer: row.answer, approved: row.approved}
				p := cardOrder(t, g, b)
				challenge, err := g.Payins.PayByTestCard(t.Context(), g.Merchant, p, 1, processor.TestCardPayment{Result: "visa"})
				if challenge != row.challenge || (err == nil) != (row.refused == "") || err != nil && !problem.Is(err, row.refused) {
					t.Errorf("challenge %v, %v; want %v, %q", challenge, err, row.challenge, row.refused)
				}
				got, err := g.Store.Payin(t.Context(), p.Merchant, p.ID)
				g.Must(err)
				if got.Status != row.status || got.Details.CardAttempts != row.attempts || len(b.attempts) != 1 {
					t.Errorf("order is %s after %d refused attempts, %v arrived", got.Status, got.Details.CardAttempts, b.attempts)
				}
			})
		}
	})
}

// An attempt that the order cannot have now does not reach the processor.
func TestTestCardOfAnotherStateIsNotTried(t *testing.T) {
	s := newStory(t)
	b := &cardBank{Bank: coretest.NewBank(), answer: processor.TestCardAnswer{Outcome: processor.Done}}
	s.Payins.Processors = processor.Registry{coretest.BankName: b}
	p := s.payin
	p.Method = payment.CreditCard
	expired, paid := p, p
	expired.ExpiresAt = s.Clock.Now()
	paid.Status = payment.PayinPaid
	for _, row := range []struct {
		name    string
		payin   payment.Payin
		attempt int
		refused problem.Kind
	}{
		{"the second attempt first", p, 2, problem.InvalidState},
		{"no attempt", p, 0, problem.InvalidState},
		{"expired", expired, 1, problem.InvalidState},
		{"paid", paid, 1, problem.InvalidState},
		{"not a card order", s.payin, 1, problem.MethodNotEnabled},
	} {
		if _, err := s.Payins.PayByTestCard(t.Context(), s.Merchant, row.payin, row.attempt, processor.TestCardPayment{}); !problem.Is(err, row.refused) {
			t.Errorf("%s: %v", row.name, err)
		}
		if err := s.Payins.ConfirmTestCard(t.Context(), row.payin, row.attempt, true); !problem.Is(err, row.refused) {
			t.Errorf("%s, confirmed: %v", row.name, err)
		}
	}
	if len(b.attempts) > 0 {
		t.Errorf("%v arrived", b.attempts)
	}
}

// The confirmed attempt ends the order; its notice changes nothing more.
func TestConfirmTestCard(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		b := &cardBank{answer: processor.TestCardAnswer{Outcome: processor.Done, Challenge: true}}
		p := cardOrder(t, g, b)
		challenge, err := g.Payins.PayByTestCard(t.Context(), g.Merchant, p, 1, processor.TestCardPayment{Result: "challenge"})
		if !challenge || err != nil {
			t.Fatalf("challenge %v, %v", challenge, err)
		}
		b.answer.Challenge = false
		g.Must(g.Payins.ConfirmTestCard(t.Context(), p, 1, true))
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.Notify("n-1", "charge "+p.ExternalID)
		g.Pass(time.Second)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantEvents(payment.EventPayinPaid)
		g.WantProven()
	})
}
