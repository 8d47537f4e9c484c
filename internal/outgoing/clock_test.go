package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Payouts scheduled by a clock that was ahead, by a year as on a machine before time
// synchronisation or by some hours as with a wrong time zone, do not wait once the clock
// is right.
func TestClockThatWasAhead(t *testing.T) {
	for _, ahead := range []time.Duration{365 * 24 * time.Hour, 20 * time.Hour, 3 * time.Hour, 2 * time.Minute} {
		t.Run(ahead.String(), func(t *testing.T) { clockWasAhead(t, ahead) })
	}
}

func clockWasAhead(t *testing.T, ahead time.Duration) {
	t.Helper()
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		g.Clock.SetOffset(ahead)
		g.Heartbeat()
		g.Bank.AnswerTransfer = coretest.Unknown
		unknown := g.Payout("unknown", 10_00)
		g.Send()
		lost := g.Payout("never arrived", 30_00)
		g.Send()
		g.Bank.AnswerTransfer = nil
		queued := g.Payout("not sent yet", 20_00)

		g.Clock.SetOffset(0)
		g.Heartbeat()
		g.Send()
		g.WantPayout(queued, payment.PayoutCompleted, payment.StepDone)
		g.Bank.Pay(processor.TransferRequest{ExternalID: unknown.ExternalID, Amount: unknown.Amount}, processor.TransferPaid)
		g.LookUp()
		g.WantPayout(unknown, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(lost, payment.PayoutProcessing, payment.StepUnknown) // the quiet period counts from now
		g.Jump(3 * time.Minute)
		g.LookUp() // not found, and the quiet period is over
		g.Send()
		g.WantPayout(lost, payment.PayoutCompleted, payment.StepDone)
	})
}

// A clock that was ahead leaves rows with times of its future. Once the clock is right, their waits
// have their length again: a look-up that was due in six hours is due in six hours.
func TestClockThatWasAheadForLonger(t *testing.T) {
	const ahead = 3 * time.Hour
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		g.Clock.SetOffset(ahead)
		g.Heartbeat()
		g.Bank.AnswerTransfer = coretest.Unknown
		g.Bank.AnswerQuery = func(*coretest.Bank, string) processor.TransferReport { return processor.TransferReport{} }
		p := g.Payout("unknown", 10_00)
		g.Send()
		for g.ReadPayout(p).Lookups < 9 {
			g.Jump(max(g.ReadPayout(p).NextAt.Sub(g.Clock.Now()), 0))
			g.LookUp()
		}
		due := g.ReadPayout(p).NextAt.Add(-ahead) // by the right clock
		g.Jump(ahead + 30*time.Minute)
		g.Clock.SetOffset(0)
		g.Heartbeat()
		if got := g.ReadPayout(p).NextAt; !got.Equal(due) {
			t.Errorf("it is looked up at %s, want %s", got, due)
		}
		g.Heartbeat()
		if got := g.ReadPayout(p).NextAt; !got.Equal(due) {
			t.Errorf("the next heartbeat moved the look-up to %s", got)
		}
	})
}
