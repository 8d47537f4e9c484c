package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// A payout that a backup shows as queued may have been sent in the lost past, however late
// its account is resumed: it cannot be canceled, and is looked up before it is sent.
func TestQueuedPayoutOfABackupIsLookedUpHoweverLate(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("queued", 900_00)
		pay(g, p, processor.TransferPaid)
		g.Execute(rewind)
		g.Heartbeat()
		g.Clear()
		g.Jump(8 * 24 * time.Hour)
		if _, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, p.ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("cancel: %v", err)
		}
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(0, 1)
	})
}

// A look-up by a clock that was ahead is not a fresh one for as long.
func TestLookUpByAClockAheadIsNotFresh(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
		p := g.Payout("looked up, not sent", 30_00)
		g.Send()
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
		g.Execute("UPDATE payouts SET updated_at = updated_at + 10800000000")
		pay(g, p, processor.TransferPaid) // by the process of which this disk is a copy
		g.Jump(time.Hour)
		work(g)
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(0, 1)
	})
}
