package jobs

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// sendsPerMerchant is how many payouts of one merchant are taken in hand at
// once, so that one merchant's thousand does not delay another's one.
const sendsPerMerchant = 32

// SubmitPayouts hands queued payouts to their processors: the one executor.
func (j *Jobs) SubmitPayouts(ctx context.Context) (int, error) {
	if !j.lease.Valid() || j.submitting.free() == 0 {
		return 0, nil
	}
	now := j.Env.Clock.Now()
	due, err := j.Store.PayoutsDue(ctx, now, store.ToSend)
	if err != nil {
		return 0, err
	}
	did := 0
	for _, d := range inTurn(j, dutySubmit, due, dueMerchant) {
		transferrer, ok := j.Processors[d.Processor].(processor.Transferrer)
		if !ok {
			continue // a processor that is gone from the configuration: the payouts wait
		}
		n := j.pace.allow(j.breakers.allow(d.Processor, min(sendsPerMerchant, j.submitting.free())), now.Sub(d.Since))
		if n == 0 {
			continue
		}
		sends, taken, err := j.Flow.BeginSends(ctx, d, n)
		if err != nil {
			return did, err
		}
		did += taken
		j.turns[dutySubmit] = d.Merchant
		for i := range sends {
			j.submitting.run(func() { j.send(ctx, sends[i], transferrer) })
		}
	}
	return did, nil
}

// send hands one payout over. The call ends with its intent's deadline, and is
// not cut short when the duties stop: its outcome would be unknown.
func (j *Jobs) send(ctx context.Context, s flow.Sending, transferrer processor.Transferrer) {
	j.Env.Inject(env.BeforeTransfer)
	left := s.Deadline.Sub(j.Env.Clock.Now())
	j.awaitLease(ctx, left/2) // the other half is the call's
	limited, cancel := j.Env.Clock.WithTimeout(context.WithoutCancel(ctx), s.Deadline.Sub(j.Env.Clock.Now()))
	answer, stale := handOver(limited, transferrer, s.Request, j.Flow.Guard(&s, j.lease))
	cancel()
	j.Env.Inject(env.AfterTransfer)
	if !stale { // which says nothing of the processor
		j.breakers.note(s.Payout.Processor, answer.Outcome != processor.NotSent)
	}
	if answer.Outcome != processor.Done {
		j.Log.WarnContext(ctx, "payout not confirmed", "processor", s.Payout.Processor, "externalId", s.Payout.ExternalID,
			"outcome", answer.Outcome.String(), "cause", answer.Cause)
	}
	j.record(ctx, "payout's answer", func(ctx context.Context) error { return j.Flow.EndSend(ctx, s, answer) })
}

// handOver calls the processor, if guard lets it: before the call, of which the
// processor might else say that its time was over, and right before the bytes.
// stale says that guard did not.
func handOver(ctx context.Context, transferrer processor.Transferrer, r processor.TransferRequest, guard func() error) (answer processor.TransferAnswer, stale bool) {
	if err := guard(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}, true
	}
	answer = guarded(func() processor.TransferAnswer {
		return transferrer.Transfer(ctx, r, func() error {
			err := guard()
			stale = err != nil
			return err
		})
	}, func(cause error) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Unknown, Cause: cause}
	})
	return answer, stale
}

// awaitLease waits a while for a lease that ran out while the intent was written:
// where commits are slow, so is the heartbeat, and the next one is as good.
// Whether the payout may still leave the guard decides.
func (j *Jobs) awaitLease(ctx context.Context, most time.Duration) {
	if j.Inline { // nothing beats meanwhile
		return
	}
	ctx, cancel := j.Env.Clock.WithTimeout(context.WithoutCancel(ctx), min(most, leaseTime))
	defer cancel()
	j.lease.Await(ctx)
}
