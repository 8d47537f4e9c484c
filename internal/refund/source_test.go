package refund_test

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// wantAccounts compares some of the merchant's accounts.
func wantAccounts(g *coretest.Gateway, want ledger.Balances) {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	for account, amount := range want {
		if b[account] != amount {
			g.T.Fatalf("%s is %d, want %d: %v\n%s", account, b[account], amount, b, g.Log)
		}
	}
	g.WantProven()
}

// fails makes the bank refuse refunds.
func fails(g *coretest.Gateway) {
	g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Refused}
	}
}

// A surplus that is given back at the processor's panel is unapplied money: the
// order stays as it is, and the case about it is closed. If it comes back, it has a case again.
func TestSurplusAtThePanel(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 130_00)
		wantAccounts(g, ledger.Balances{ledger.Available: coretest.Opening + 100_00, ledger.Unapplied: 30_00})
		g.Bank.RefundAtPanel("panel1", "p 1", 20_00)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		wantAccounts(g, ledger.Balances{ledger.Available: coretest.Opening + 100_00, ledger.Unapplied: 10_00, ledger.Held: 0})
		g.WantCases(store.CaseOverpaid)
		g.Bank.RefundAtPanel("panel2", "p 1", 50_00) // the rest of it, and 40.00 of the order
		g.Pass(10 * time.Second)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPartiallyRefunded, 100_00, 1)
		wantAccounts(g, ledger.Balances{ledger.Available: coretest.Opening + 60_00, ledger.Unapplied: 0})
		g.WantCases()
		refused(t, g, p.ID, 60_01, problem.ValidationFailed, "at most 6000")
		g.Bank.EndRefund("panel2", processor.TransferFailed)
		g.Pass(10 * time.Second)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		wantAccounts(g, ledger.Balances{ledger.Available: coretest.Opening + 100_00, ledger.Unapplied: 10_00})
		g.WantCases(store.CaseOverpaid)
	})
}

// A refund of the order leaves what is still unapplied of its payments.
func TestRefundLeavesUnapplied(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 130_00)
		g.Refund(p, "all", 100_00)
		g.Send()
		g.WantPayin(p, payment.PayinRefunded, 100_00, 1)
		wantAccounts(g, ledger.Balances{ledger.Available: coretest.Opening, ledger.Unapplied: 30_00})
		g.Bank.RefundAtPanel("panel", "p 1", 30_00)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinRefunded, 100_00, 1)
		wantAccounts(g, ledger.Balances{ledger.Available: coretest.Opening, ledger.Unapplied: 0})
		g.WantCases()
	})
}

// Money that names no order and is given back at the panel cannot be assigned any more, unless
// it comes back.
func TestUnidentifiedAtThePanel(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		unknown := g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "never requested")
		g.Bank.Receive(unknown, "stray", 110_00)
		g.ReadFeeds()
		platform := func(unidentified, clearing money.Cents) {
			t.Helper()
			b, err := g.Store.Balances(t.Context(), payment.ID{})
			g.Must(err)
			if b[ledger.Unidentified] != unidentified || b[ledger.Clearing(coretest.BankName)] != clearing {
				t.Fatalf("the platform has %v, want %d and %d\n%s", b, unidentified, clearing, g.Log)
			}
			g.WantProven()
		}
		platform(110_00, -110_00)
		g.Bank.RefundAtPanel("panel1", "stray", 100_00)
		for range 2 {
			g.ReadFeeds()
			g.Pass(10 * time.Second)
		}
		platform(10_00, -10_00)
		list, err := g.Store.OpenCases(t.Context(), 5)
		g.Must(err)
		if len(list) != 1 || list[0].Kind != store.CaseUnmatchedReceipt || list[0].Amount != 10_00 {
			t.Fatalf("cases %+v", list)
		}
		g.Bank.EndRefund("panel1", processor.TransferFailed)
		for range 2 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
		}
		platform(110_00, -110_00)
		g.WantCases(store.CaseUnmatchedReceipt, store.CaseUnmatchedReceipt)
		g.Bank.RefundAtPanel("panel2", "stray", 105_00) // more than either case has
		g.ReadFeeds()
		platform(5_00, -5_00)
		g.WantCases(store.CaseUnmatchedReceipt)
	})
}

// Such money that a dispute takes is booked like a refund, also if the order that it was paid for
// is requested again later: its dispute is no dispute of that order.
func TestDisputeOfUnidentified(t *testing.T) {
	for _, requested := range []bool{false, true} {
		coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
			p := payment.Payin{ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "a copy lacks it")}
			g.Bank.Receive(p.ExternalID, "stray", 110_00)
			g.ReadFeeds()
			if requested {
				p = g.Payin(g.Merchant, "a copy lacks it", "")
				g.Bank.Receive(p.ExternalID, "again", 100_00)
			}
			platform := func(unidentified money.Cents) {
				t.Helper()
				b, err := g.Store.Balances(t.Context(), payment.ID{})
				g.Must(err)
				if b[ledger.Unidentified] != unidentified || b[ledger.Clearing(coretest.BankName)] != -unidentified {
					t.Fatalf("the platform has %v, want %d\n%s", b, unidentified, g.Log)
				}
				if requested {
					g.WantPayin(p, payment.PayinPaid, 100_00, 1)
				}
				g.WantProven()
			}
			for state, unidentified := range map[processor.DisputeState]money.Cents{processor.DisputeOpen: 110_00, processor.DisputeWon: 110_00} {
				g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "won", PaymentID: "stray", Amount: 60_00, State: state})
				g.ReadFeeds()
				platform(unidentified)
			}
			for _, state := range []struct {
				processor.DisputeState

				left money.Cents
			}{{processor.DisputeOpen, 110_00}, {processor.DisputeLost, 40_00}, {processor.DisputeReversed, 110_00}} {
				g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "d", PaymentID: "stray", Amount: 70_00, State: state.DisputeState})
				for range 2 {
					g.ReadFeeds()
					g.Notify("n"+string(state.DisputeState), "charge "+p.ExternalID)
					g.Apply()
					g.Pass(10 * time.Second)
				}
				platform(state.left)
			}
			g.WantCases(store.CaseUnmatchedReceipt, store.CaseUnmatchedReceipt)
		})
	}
}

// A processor may show the present dispute of a payment only: one that was lost, and is won then, came
// back.
func TestPresentDisputeOfUnidentified(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		id := g.Store.ExternalID(&g.Merchant, payment.OperationPayin, "a copy lacks it")
		g.Bank.Receive(id, "stray", 110_00)
		g.ReadFeeds()
		for _, v := range []struct {
			state processor.DisputeState
			left  money.Cents
		}{{processor.DisputeWon, 110_00}, {processor.DisputeLost, 40_00}, {processor.DisputeWon, 110_00}} {
			g.Bank.Disputes(id, processor.Dispute{ID: "d", PaymentID: "stray", Amount: 70_00, State: v.state, Current: true})
			for range 2 {
				g.ReadFeeds()
				g.Notify("n"+string(v.state), "charge "+id)
				g.Apply()
				g.Pass(10 * time.Second)
			}
			b, err := g.Store.Balances(t.Context(), payment.ID{})
			g.Must(err)
			if b[ledger.Unidentified] != v.left || b[ledger.Clearing(coretest.BankName)] != -v.left {
				t.Fatalf("%s: the platform has %v, want %d", v.state, b, v.left)
			}
			g.WantProven()
		}
	})
}

// A refund takes what has not settled of its order first, then available money; if it fails,
// each goes back to where it was, or to available if it has settled.
func TestRefundOfPending(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetPrice(payment.PIX, payment.Terms{Fixed: 1_00, Days: 2})
		p := g.PaidPayin("p", 100_00)
		wantAccounts(g, ledger.Balances{ledger.Pending: 99_00, ledger.Available: coretest.Opening})
		g.Payout("everything", int64(coretest.Opening)-50)
		refused(t, g, p.ID, 100_00, problem.InsufficientBalance, "")
		r := g.Refund(p, "r", 99_50)
		wantAccounts(g, ledger.Balances{ledger.Pending: 0, ledger.Available: 0, ledger.Held: coretest.Opening + 99_00})
		fails(g)
		g.Send()
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinPaid, 0)
		wantAccounts(g, ledger.Balances{ledger.Pending: 99_00, ledger.Available: 50})
		g.Refund(p, "again", 60_00)
		g.Jump(72 * time.Hour)
		g.Settle()
		wantAccounts(g, ledger.Balances{ledger.Pending: 0, ledger.Available: 39_50})
		g.Send()
		g.Jump(time.Hour)
		g.LookUp()
		g.Send()
		wantAccounts(g, ledger.Balances{ledger.Pending: 0, ledger.Available: 99_50})
	})
}

// The fee that comes back with a refund covers what is missing for it, and no more. Until then, or until the
// refund fails, it is a debt.
func TestTheFeeThatComesBackCoversARefund(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetPrice(payment.PIX, payment.Terms{BasisPoints: 99, Fixed: 10, RefundsFee: true})
		p := g.PaidPayin("p", 100_00)
		g.Payout("all but the payment", int64(coretest.Opening))
		failed := g.Refund(p, "fails", 0)
		wantAccounts(g, ledger.Balances{ledger.Available: 0, ledger.Held: coretest.Opening + 100_00, ledger.Owed: -1_09})
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused, Cause: errors.New("refused")}
		}
		g.Send()
		g.Bank.Refunds.Answer = nil
		g.WantRefund(failed, payment.RefundFailed, 0, payment.PayinPaid, 0)
		wantAccounts(g, ledger.Balances{ledger.Available: 98_91, ledger.Owed: 0})
		g.Payout("a cent", 1)
		refused(t, g, p.ID, 100_00, problem.InsufficientBalance, "")
		part := g.Refund(p, "part", 50_00)
		g.Send()
		g.WantRefund(part, payment.RefundCompleted, 50_00, payment.PayinPartiallyRefunded, 50_00)
		wantAccounts(g, ledger.Balances{ledger.Available: 98_90 - 50_00 + 54, ledger.Owed: 0})
		g.WantProven()
	})
}

// A price may give the fee back with refunds, pro rata; what comes back is charged again.
func TestRefundGivesTheFeeBack(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.SetPrice(payment.PIX, payment.Terms{Fixed: 1_00, RefundsFee: true})
		p := g.PaidPayin("p", 100_00)
		wantFee := func(fee, available money.Cents) {
			t.Helper()
			if got := g.ReadPayin(p); got.Fee != fee {
				t.Fatalf("the fee is %d, want %d", got.Fee, fee)
			}
			wantAccounts(g, ledger.Balances{ledger.Fees: fee, ledger.Available: available})
		}
		wantFee(1_00, coretest.Opening+99_00)
		first := g.Refund(p, "first", 33_33)
		wantFee(1_00, coretest.Opening+99_00-33_33)
		g.Send()
		wantFee(67, coretest.Opening+99_00-33_33+33)
		g.Refund(p, "second", 33_33)
		g.Send()
		wantFee(34, coretest.Opening+33_00)
		g.Bank.EndRefund(first.ExternalID, processor.TransferFailed)
		g.ReadFeeds()
		wantFee(67, coretest.Opening+99_00-33_33+33)
		g.Refund(p, "rest", 0)
		g.Send()
		wantFee(0, coretest.Opening)
		g.WantPayin(p, payment.PayinRefunded, 100_00, 1)
	})
}
