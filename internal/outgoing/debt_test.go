package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// inDebt returns a queued payout of 150.00 of a restored backup. Its merchant owes 50.00: a
// transfer of 900.00 of 1,000.00 was found.
func inDebt(g *coretest.Gateway, restoredFor time.Duration) payment.Payout {
	g.T.Helper()
	p := g.Payout("queued", 150_00)
	payLost(g, "lost", 900_00)
	g.Jump(restoredFor)
	g.Clear()
	g.Send()
	wantOwed(g, 50_00)
	return p
}

func wantOwed(g *coretest.Gateway, want money.Cents) {
	g.T.Helper()
	b, err := g.Store.Balances(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	if b[ledger.Owed] != -want {
		g.T.Fatalf("the merchant owes %s, want %s", -b[ledger.Owed], want)
	}
}

// repay pays a pay-in of 100.00.
func repay(g *coretest.Gateway) {
	g.T.Helper()
	in := g.Payin(g.Merchant, "in", "")
	report := processor.ChargeReport{Payments: []processor.Payment{{ID: "A", Amount: in.Amount, PaidAt: g.Clock.Now()}}}
	g.Must(g.Payins.Receive(g.T.Context(), coretest.BankName, in.ExternalID, report, nil))
	wantOwed(g, 0)
}

// wait runs the workers each time the payout is due, for a time, and returns how often
// that was and the longest wait between two.
func wait(g *coretest.Gateway, p payment.Payout, d time.Duration) (claims int, longest time.Duration) {
	g.T.Helper()
	until, last := g.Clock.Now().Add(d), g.Clock.Now()
	for {
		next := g.ReadPayout(p).NextAt
		if next.IsZero() || next.After(until) {
			g.Jump(until.Sub(g.Clock.Now()))
			return claims, longest
		}
		g.Jump(next.Sub(g.Clock.Now()))
		longest, last = max(longest, g.Clock.Now().Sub(last)), g.Clock.Now()
		g.Send()
		g.LookUp()
		g.Send()
		claims++
	}
}

// waitingCase is the open case about a payout that waits, beside the one about the transfer
// that was found.
func waitingCase(g *coretest.Gateway) store.Case {
	g.T.Helper()
	g.WantCases(store.CasePayoutFound, store.CasePayoutWaiting)
	list, err := g.Store.OpenCases(g.T.Context(), 10)
	g.Must(err)
	return list[1]
}

// wantClosed fails unless the case was closed so, and only the one about the found transfer
// is open.
func wantClosed(g *coretest.Gateway, v store.Case, want store.Resolution) {
	g.T.Helper()
	g.WantCases(store.CasePayoutFound)
	v, err := g.Store.FindCase(g.T.Context(), v.ID)
	g.Must(err)
	if v.Resolution != want {
		g.T.Errorf("closed as %q, want %q", v.Resolution, want)
	}
}

// A payout that waits for its merchant's debt is considered less and less often, and after
// an hour one case says so. When the debt is repaid, it goes on and the case closes. Found
// by a simulated seed, in which such a payout was claimed every minute, forever.
func TestDebtWaitGrowsAndOpensOneCase(t *testing.T) {
	for name, idempotent := range map[string]bool{"idempotent": true, "not idempotent": false} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				if !idempotent {
					g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
				}
				p := inDebt(g, 0)
				wait(g, p, 50*time.Minute)
				g.WantCases(store.CasePayoutFound)
				claims, longest := wait(g, p, 2*24*time.Hour)
				if claims < 2*24 || claims > 2*24+5 || longest > time.Hour {
					t.Errorf("claimed %d times in two days, with waits up to %v", claims, longest)
				}
				v := waitingCase(g)
				if v.Params.Reason() != store.ReasonDebt || v.Params["owed"] != "5000" || v.Subject != p.ID || v.Amount != p.Amount {
					t.Errorf("case %+v", v)
				}
				g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)

				repay(g)
				wait(g, p, time.Hour)
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				wantClosed(g, v, store.ResolvedByRepayment)
				g.WantProven()
			})
		})
	}
}

// The merchant cancels a payout that waits for its debt: its money repays the debt.
func TestCancelOfAPayoutThatWaitsForDebt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := inDebt(g, 8*24*time.Hour) // no look-up is needed any more, so it is PENDING
		wait(g, p, 2*time.Hour)
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
		v := waitingCase(g)
		_, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, p.ID)
		g.Must(err)
		wantOwed(g, 0)
		g.WantBalances(100_00, 0)
		wantClosed(g, v, store.ResolvedByCancel)
		g.WantProven()
	})
}

// A payout that waits for its merchant's debt, and is reported as paid, has left in the lost
// past: its case closes.
func TestProofAboutAPayoutThatWaitsForDebt(t *testing.T) {
	for name, fail := range map[string]bool{"paid": false, "failed": true} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := inDebt(g, 0)
				wait(g, p, 2*time.Hour)
				v := waitingCase(g)
				want, state := payment.PayoutCompleted, processor.TransferPaid
				if fail {
					want, state = payment.PayoutFailed, processor.TransferFailed
				}
				pay(g, p, state)
				_, err := g.Outgoing.RecordNotice(t.Context(), coretest.BankName, p.ExternalID, g.Bank.Report(p.ExternalID), nil)
				g.Must(err)
				g.WantPayout(p, want, payment.StepDone)
				wantClosed(g, v, store.ResolvedByProof)
				g.WantProven()
			})
		})
	}
}
