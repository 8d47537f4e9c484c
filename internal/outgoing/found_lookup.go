package outgoing

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// foundPerStep is the number of found transfers of all accounts that one step considers.
const foundPerStep = 1000

// foundLookBack is how much earlier than it was found a transfer is searched for.
const foundLookBack = 31 * 24 * time.Hour

// lookUpFound looks up found transfers without a final outcome: the money of a failed transfer
// comes back, also without a notice.
func (e *Executor) lookUpFound(ctx context.Context) (int, error) {
	due, err := e.Store.FoundTransfersDue(ctx, e.Env.Clock.Now(), foundPerStep)
	if err != nil {
		return 0, err
	}
	did := 0
	var errs []error
	for i := range due {
		f := &due[i]
		transferrer, ok := e.Processors.Find(f.Processor).(processor.Transferrer)
		pool := e.lookUps.Of(f.Processor, 0)
		if !ok || e.Processors.Refused(f.Processor) || pool.Free() == 0 || e.lookUpBreakers.Allow(f.Processor, 1) == 0 {
			continue
		}
		op := &claimFound{node: e.Node.ID(), key: *f, jitter: worker.NewJitter(e.Env.Random)}
		err := e.Writer.DoWithoutCancel(ctx, op)
		errs = append(errs, err)
		if err != nil || !op.claimed {
			continue
		}
		did++
		pool.Run(func() {
			report := e.query(ctx, f.Processor, processor.Ref{ExternalID: f.ExternalID, Since: f.CreatedAt.Add(-foundLookBack)}, transferrer, lookedUp{"found transfer", e.lookUpBreakers, proved})
			if report.Lookup != processor.Found {
				return
			}
			// It is not tried again: the next look-up is scheduled, and the row of its payout may be damaged.
			if _, err := e.RecordNotice(context.WithoutCancel(ctx), f.Processor, f.ExternalID, report, nil); err != nil {
				e.Log.ErrorContext(ctx, "result of look-up of a found transfer not recorded", "processor", f.Processor, "externalId", f.ExternalID, "error", err)
			}
		})
	}
	return did, errors.Join(errs...)
}

// claimFound schedules the next look-up of a due found transfer. Only the process with that commit
// makes the look-up.
type claimFound struct {
	node    payment.ID
	key     store.FoundTransfer
	jitter  worker.Jitter
	claimed bool
}

// Merchant implements [write.Operation].
func (v *claimFound) Merchant() payment.ID { return v.key.Merchant }

// Class implements [write.Operation].
func (v *claimFound) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimFound) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.FoundTransfer(v.key.Merchant, v.key.ExternalID)
}

// Decide implements [write.Operation].
func (v *claimFound) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed = false
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	f, ok := l.FoundTransfer(v.key.Merchant, v.key.ExternalID)
	if !ok || f.NextAt.IsZero() || f.NextAt.After(l.Now()) {
		return nil
	}
	f.Lookups++
	f.NextAt = l.Now().Add(v.jitter.Of(worker.After(effect.LookUpAfter, f.Lookups)))
	c.SetFoundTransfer(f)
	v.claimed = true
	return nil
}
