package outgoing_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// If commits are slow the lease may expire before a payout is sent: it is sent after
// the next heartbeat, unless the process was declared dead meanwhile.
func TestSendAwaitsTheNextHeartbeat(t *testing.T) {
	delay := 2500 * time.Millisecond
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprint("declared dead ", dead), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Concurrent()
				p := g.Payout("r", 10_00)
				_, err := g.Outgoing.Send(t.Context())
				g.Must(err)
				for _, waits := g.Clock.Next(); !waits && g.ReadPayout(p).Step == payment.StepIntent; _, waits = g.Clock.Next() {
					runtime.Gosched()
				}
				if dead {
					g.DeclareDead(g)
				}
				g.Heartbeat()
				g.UntilWithin(raceWithin, g.Outgoing.Wait) // its time-out must not end
				if dead {
					g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued) // it did not leave
					g.WantBank(0, 0)
					return
				}
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantSends(p, store.SendPaid)
				g.WantBank(1, 1)
			}, delayed(&delay))
		})
	}
}

// A process that was declared dead, and has not noticed, claims nothing: if it died
// now, no other process would release its claims.
func TestDeadNodeClaimsNothing(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		unknown := g.Payout("unknown", 10_00)
		g.Bank.AnswerTransfer = coretest.Unknown
		g.Send()
		g.Bank.AnswerTransfer = nil
		queued := g.Payout("queued", 10_00)
		g.Pass(2 * time.Second)
		other := g.Second()
		other.DeclareDead(g)
		due := store.Due{Merchant: g.Merchant.ID, Processor: coretest.BankName}
		if _, _, err := g.Outgoing.Claim(t.Context(), due, 10); !errors.Is(err, write.ErrNodeDead) {
			t.Errorf("claim of sends: %v, want ErrNodeDead", err)
		}
		if _, err := g.Outgoing.ClaimLookUps(t.Context(), due, 10); !errors.Is(err, write.ErrNodeDead) {
			t.Errorf("claim of look-ups: %v, want ErrNodeDead", err)
		}
		g.WantPayout(queued, payment.PayoutPending, payment.StepQueued)
		g.WantPayout(unknown, payment.PayoutProcessing, payment.StepUnknown)
		g.WantSends(queued)

		other.Send()
		other.WantPayout(queued, payment.PayoutCompleted, payment.StepDone)
		g.WantBank(2, 1)
	})
}

// Without a valid lease nothing is claimed and nothing is looked up.
func TestNoLeaseNoCalls(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer = coretest.Unknown
		g.Payout("unknown", 10_00)
		g.Send()
		p := g.Payout("queued", 10_00)
		g.Clock.Advance(2500 * time.Millisecond) // without a heartbeat
		g.Send()
		g.LookUp()
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
		g.WantBank(1, 0)
		if g.Bank.Queries != 0 {
			g.T.Errorf("%d look-ups", g.Bank.Queries)
		}
	})
}
