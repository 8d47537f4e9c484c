package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// If a process dies right after a claim, only as many payouts are unknown as it could have been
// sending. Where a repeat pays twice these are few, as two people decide each of them; the
// others are sent by another process.
func TestDeathAfterAClaim(t *testing.T) {
	const payouts = 40
	for name, row := range map[string]struct {
		repeat  processor.Repeat
		slots   int
		unknown int
	}{
		"unsafe":                     {processor.RepeatUnsafe, 0, 4},
		"unsafe, with its own slots": {processor.RepeatUnsafe, 1, 1},
		"safe":                       {processor.RepeatReturnsFirst, 0, 32},
	} {
		t.Run(name, func(t *testing.T) {
			var dies bool
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Bank.Profiled.Transfer.Repeat, g.Bank.Profiled.Transfer.Slots = row.repeat, row.slots
				for i := range payouts {
					g.Payout(fmt.Sprint("r", i), 1_00)
				}
				dies = true
				for range payouts { // look-ups before the first sends, in between
					if died := sendUntilDeath(g); died {
						break
					}
					g.LookUp()
				}
				dies = false
				g.WantBank(0, 0)
				other := g.Second()
				other.DeclareDead(g)
				if n := other.Count("payout_sends", "outcome = 'unknown'"); n != row.unknown {
					t.Errorf("%d sends are unknown, want %d", n, row.unknown)
				}
				for range payouts {
					other.Send()
					other.LookUp()
				}
				if n := other.Count("payouts", "status = 'COMPLETED'"); n != payouts-row.unknown {
					t.Errorf("%d payouts are completed, want %d", n, payouts-row.unknown)
				}
				other.Jump(time.Hour)
				for range payouts {
					other.LookUp()
					other.Send()
				}
				if n, review := other.Count("payouts", "status = 'COMPLETED'"), other.Count("payouts", "step = 'manual_review'"); row.repeat.Safe() && n != payouts || !row.repeat.Safe() && review != row.unknown {
					t.Errorf("%d payouts are completed, %d wait for persons", n, review)
				}
				other.WantProven()
			}, func(e *env.Env) {
				e.OnFailpoint = func(f env.Failpoint) error {
					if dies && f == env.BeforeTransfer {
						panic(errDied)
					}
					return nil
				}
			})
		})
	}
}

const errDied = "the process dies"

// sendUntilDeath runs the worker until its process dies, if it does.
func sendUntilDeath(g *coretest.Gateway) (died bool) {
	g.T.Helper()
	defer func() {
		if cause := recover(); cause == errDied {
			died = true
		} else if cause != nil {
			panic(cause)
		}
	}()
	g.Send()
	return false
}
