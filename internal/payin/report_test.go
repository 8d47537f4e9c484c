package payin_test

import (
	"errors"
	"strings"
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

// wantAccounts compares what is available and unapplied, in cents.
func wantAccounts(g *coretest.Gateway, available, unapplied money.Cents) {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	if b[ledger.Available] != coretest.Opening+available || b[ledger.Unapplied] != unapplied || b[ledger.Disputed] != 0 {
		g.T.Errorf("available %d, unapplied %d, disputed %d", b[ledger.Available], b[ledger.Unapplied], b[ledger.Disputed])
	}
}

// A payment is booked once, even if it is reported for orders of several
// merchants.
func TestReceiptIsBookedOnceForAll(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, one *coretest.Gateway) {
		other := one.For(t)
		report := reported(one.Clock.Now(), "pay", "A", "100")
		for _, g := range []*coretest.Gateway{one, other} {
			g.Must(g.Payins.Receive(t.Context(), coretest.BankName, g.Payin(g.Merchant, "order", "").ExternalID, report, nil))
		}
		wantAccounts(one, 100_00, 0)
		wantAccounts(other, 0, 0)
		other.WantPayin(other.Payin(other.Merchant, "order", ""), payment.PayinPending, 0, 0)
	})
}

// Reports of one commit see the decisions before them: payments that are booked
// already, and the amount that an order still lacks.
func TestReportsInOneBatch(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		var ops []write.Operation
		for _, what := range []string{"pay A 60", "pay A 60", "pay B 60", "dispute open", "dispute won", "expire"} {
			op, err := g.Payins.NewReceive(t.Context(), coretest.BankName, p.ExternalID, reported(g.Clock.Now(), strings.Fields(what)...), nil)
			g.Must(err)
			ops = append(ops, op)
		}
		g.Must(errors.Join(g.Writer.All(t.Context(), ops)...))
		g.WantPayin(p, payment.PayinPaid, 100_00, 2)
		wantAccounts(g, 100_00, 20_00)
		g.WantEvents(payment.EventPayinUnderpaid, payment.EventPayinPaid, payment.EventPayinOverpaid, payment.EventPayinDisputed, payment.EventDisputeOpened,
			payment.EventPayinDisputeWon, payment.EventDisputeClosed)
		g.WantCases(store.CaseOverpaid)
		g.WantProven()
	})
}

// Money received for any order repays debt before it is available.
func TestIncomeRepaysDebt(t *testing.T) {
	s := newStory(t)
	s.happens("pay A 100, spend 70, dispute open")
	s.payin = s.Payin(s.Merchant, "other", "")
	s.happens("pay B 100")
	if b := s.Balances(); b[ledger.Owed] != 0 || b[ledger.Available] != 30_00 {
		t.Errorf("owed %d, available %d, want 0 and 3000", b[ledger.Owed], b[ledger.Available])
	}
	s.WantProven()
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
		wantUnidentified(g, 1_00)
		g.WantCases(store.CaseUnmatchedReceipt)
	})
}

// wantUnidentified compares the platform's unidentified money, and that the merchant has
// none beyond the orders.
func wantUnidentified(g *coretest.Gateway, amount money.Cents) {
	g.T.Helper()
	for owner, want := range map[payment.ID]money.Cents{{}: amount, g.Merchant.ID: 0} {
		b, err := g.Store.Balances(g.T.Context(), owner)
		g.Must(err)
		if b[ledger.Unidentified] != want || b[ledger.Unapplied] != 0 {
			g.T.Errorf("unidentified %d, unapplied %d of %s; want %d", b[ledger.Unidentified], b[ledger.Unapplied], owner, want)
		}
	}
}

// Money that names no order of this installation is the platform's, with a case, also
// if its id begins with a merchant's number: the payer of a static code, or another
// installation at the same bank, chose it. It stops no other report of its batch.
func TestMoneyOfNoOrderIsThePlatforms(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		report := func(id string, amount money.Cents) processor.ChargeReport {
			return processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{{ID: id, Amount: amount, PaidAt: g.Clock.Now()}}}
		}
		foreign := (&payment.ExternalIDs{Installation: payment.ID{9}}).New(g.Merchant.Number, payment.ID{8}, payment.OperationPayin, "of another installation")
		for range 2 { // reported again
			g.Must(g.Payins.Receive(t.Context(), coretest.BankName, foreign, report("E1", 5_000_00), nil))
		}
		lost, err := g.Payins.NewReceive(t.Context(), coretest.BankName, g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "lost"), report("E2", 7_00), nil)
		g.Must(err)
		paid, err := g.Payins.NewReceive(t.Context(), coretest.BankName, p.ExternalID, report("E3", 100_00), nil)
		g.Must(err)
		errs := g.Writer.All(t.Context(), []write.Operation{lost, paid})
		if errs[0] == nil || errs[1] != nil {
			t.Errorf("committed: %v", errs)
		}
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "lost"), report("E2", 7_00), nil))
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		wantUnidentified(g, 5_007_00)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantCases(store.CaseUnmatchedReceipt, store.CaseUnmatchedReceipt)
		g.WantProven()
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
		report := func(amount money.Cents) func() {
			return func() {
				g.Must(g.Payins.ReportInvalidPayment(t.Context(), coretest.BankName, &processor.Payment{ExternalID: p.ExternalID, Amount: amount}))
			}
		}
		changes := g.Changes(report(5))
		want := "+cases notice 0 externalId:" + p.ExternalID + " processor:bank reason:invalid_payment"
		if changes != want {
			t.Errorf("changes %s, want %s", changes, want)
		}
		g.Execute("UPDATE cases SET closed_at = 1, resolution = 'dismiss'")
		if changes := g.Changes(report(5)); changes != "" {
			t.Errorf("listed again, after its case was closed: %s", changes)
		}
		if changes := g.Changes(report(6)); changes != want {
			t.Errorf("another payment: %s, want %s", changes, want)
		}
	})
}
