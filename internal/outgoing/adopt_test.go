package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The transfer of an adopted payout has left: the payout cannot be canceled, however long
// ago the restore was, or its money could leave a second time.
func TestAdoptedPayoutCannotBeCanceled(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		payLost(g, "lost", 900_00)
		g.Clear()
		g.Jump(8 * 24 * time.Hour)
		p := wantRequest(g, "lost", 900_00, "")
		if p.Status != payment.PayoutProcessing {
			t.Errorf("the request is answered %s", p.Status)
		}
		if _, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, p.ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("cancel: %v", err)
		}
		g.WantBalances(100_00, 900_00)
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(100_00, 0)
		g.WantProven()
	})
}

// A request with the reference of a found transfer and another amount is not its repeat: it
// would give back more than it holds, or be exempt from limits with money that has not left.
func TestFoundTransferIsNotAdoptedByAnotherAmount(t *testing.T) {
	for _, back := range []money.Cents{0, 300_00} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				payLost(g, "lost", 900_00)
				if back > 0 {
					g.Bank.Return(g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost"), back)
				}
				g.Clear()
				g.WantBalances(100_00+back, 0)
				for _, amount := range []int64{1, 600_00, 899_99, 900_01, 999_00} {
					wantRequest(g, "lost", amount, problem.ReferenceConflict)
				}
				g.WantBalances(100_00+back, 0)
				g.WantCases(store.CasePayoutFound)
				g.Merchant.Limits.Payout.Maximum = new(money.Cents(1)) // its money has left
				p := wantRequest(g, "lost", 900_00, "")
				work(g)
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantBalances(100_00+back, 0)
				g.WantProven()
			})
		})
	}
}

// An adopted payout is never sent by rule: its processor may have forgotten its id, or not
// show it any more.
func TestAdoptedPayoutIsNotSent(t *testing.T) {
	for name, row := range map[string]struct {
		effect processor.Effect
		query  bool // the transfer is found
	}{
		"its id is forgotten":          {processor.Effect{Repeat: processor.RepeatReturnsFirst, Life: 24 * time.Hour}, true},
		"it is not shown any more":     {processor.Effect{Repeat: processor.RepeatUnsafe, LookBack: 7 * 24 * time.Hour}, false},
		"it is not shown, once":        {processor.Effect{Repeat: processor.RepeatReturnsFirst}, false},
		"not shown and its id is gone": {processor.Effect{Repeat: processor.RepeatRejected, Life: 24 * time.Hour}, false},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				row.effect.QuietPeriod, row.effect.Timeout = time.Minute, 5*time.Second
				g.Bank.Profiled.Transfer = row.effect
				payLost(g, "lost", 900_00)
				g.Clear()
				g.Jump(8 * 24 * time.Hour)
				if !row.query {
					g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport {
						return processor.TransferReport{Lookup: processor.NotFound}
					}
				}
				p := wantRequest(g, "lost", 900_00, "")
				work(g)
				g.WantBank(0, 1)
				if row.query {
					g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				} else {
					g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
					g.WantCases(store.CasePayoutUnknown)
				}
				g.WantProven()
			})
		})
	}
}

// Another process that has not seen since its last heartbeat, or since it joined, that the
// database was restored, accepts no payout until it has: it would not know a found transfer, and
// its merchant would be charged twice.
func TestFoundTransferIsAdoptedByAnotherProcess(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		payLost(g, "lost", 400_00)
		g.Clear()
		g.WantBalances(600_00, 0)
		if other.Node.History() != 0 {
			t.Fatal("the other process knows of the restore")
		}
		wantRequest(other, "lost", 400_00, problem.Unavailable)
		g.WantBalances(600_00, 0)
		other.Heartbeat()
		p := wantRequest(other, "lost", 400_00, "")
		g.WantBalances(600_00, 400_00)
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBalances(600_00, 0)
		g.WantBank(0, 1)
		g.WantCases()
		g.WantProven()
	})
}
