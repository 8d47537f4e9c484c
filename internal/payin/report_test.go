package payin_test

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// balance is an account of the merchant.
func (s *story) balance(a ledger.Account) money.Cents {
	s.T.Helper()
	b, err := s.Store.Balances(s.T.Context(), s.Merchant.ID)
	s.Must(err)
	return b[a]
}

// A payment is booked once, even if it is reported for orders of several
// merchants.
func TestReceiptIsBookedOnceForAll(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		one, other := newStory(t, g), newStory(t, g.For(t))
		report := processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{{ID: "E1", Amount: 100_00, PaidAt: g.Clock.Now()}}}
		for _, s := range []*story{one, other} {
			s.Must(s.Payins.Receive(t.Context(), coretest.BankName, s.payin.ExternalID, report, nil))
		}
		if one.balance(ledger.Available) != 100_00 || other.balance(ledger.Available) != 0 || other.balance(ledger.Unapplied) != 0 {
			t.Fatal("the payment was booked a second time")
		}
		other.WantPayin(other.payin, payment.PayinPending, 0, 0)
	})
}

// Reports of one commit see the decisions before them: payments that are booked
// already, and the amount that an order still lacks.
func TestReportsInOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s := newStory(t, g)
		var ops []write.Operation
		for _, what := range []string{"pay A 60", "pay A 60", "pay B 60", "dispute open", "dispute won", "expire"} {
			ops = append(ops, receives(what)(s))
		}
		s.Must(errors.Join(s.Writer.All(t.Context(), ops)...))
		s.WantPayin(s.payin, payment.PayinPaid, 100_00, 2)
		if s.balance(ledger.Available) != 100_00 || s.balance(ledger.Unapplied) != 20_00 || s.balance(ledger.Disputed) != 0 {
			t.Errorf("available %d, unapplied %d", s.balance(ledger.Available), s.balance(ledger.Unapplied))
		}
		s.checkEvents("payin.underpaid payin.paid payin.overpaid payin.disputed payin.dispute_won")
		s.checkCases("overpaid")
		s.WantProven()
	})
}

// Money received for any order repays debt before it is available.
func TestIncomeRepaysDebt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		s := newStory(t, g)
		s.happens("pay A 100, spend 70, dispute open")
		s.payin = s.Payin(s.Merchant, "other", "")
		s.happens("pay B 100")
		if s.balance(ledger.Owed) != 0 || s.balance(ledger.Available) != 30_00 {
			t.Errorf("owed %d, available %d, want 0 and 3000", s.balance(ledger.Owed), s.balance(ledger.Available))
		}
		s.WantProven()
	})
}

// A processor may report only on its own orders: another one's report moves no order.
// Money that it reports is kept, with a case.
func TestReportOfAnotherProcessorMovesNoOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Must(g.Payins.Receive(t.Context(), "other", p.ExternalID, processor.ChargeReport{
			Lookup: processor.Found, State: processor.ChargeFailed, Payments: []processor.Payment{{ID: "E1", Amount: 1_00}},
		}, nil))
		g.WantPayin(p, payment.PayinPending, 0, 0)
		g.WantBalances(coretest.Opening, 0)
		b, err := g.Store.Balances(t.Context(), g.Merchant.ID)
		g.Must(err)
		if b[ledger.Unapplied] != 1_00 {
			t.Errorf("unapplied %d", b[ledger.Unapplied])
		}
		g.WantCases(store.CaseUnmatchedReceipt)
	})
}

// A payment without an id or an amount is not booked, and neither is the rest of
// its report.
func TestInvalidPaymentIsNotBooked(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		valid := processor.Payment{ID: "E0", Amount: 100_00}
		for _, invalid := range []processor.Payment{{Amount: 100}, {ID: "E", Amount: 0}, {ID: "E", Amount: -5}} {
			report := processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeFailed, Payments: []processor.Payment{valid, invalid}}
			if err := g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, report, nil); !errors.Is(err, payin.ErrInvalidPayment) {
				t.Errorf("%+v was booked: %v", invalid, err)
			}
		}
		g.WantPayin(p, payment.PayinPending, 0, 0)
		g.WantBalances(coretest.Opening, 0)
		g.WantEvents()
	})
}

func TestReportInvalidPayment(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		changes := g.Changes(func() { g.Must(g.Payins.ReportInvalidPayment(t.Context(), coretest.BankName, p.ExternalID)) })
		want := "+cases notice 0 externalId:" + p.ExternalID + " processor:bank reason:invalid_payment"
		if changes != want {
			t.Errorf("changes %s, want %s", changes, want)
		}
	})
}
