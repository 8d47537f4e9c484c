package jobs

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// Old deliveries go a few at a time: removalPiece in one commit, as many as come
// in during a busy second in each run, and none while there is no time to spare.
const (
	removalPiece  = 256
	removalPieces = 4 // in a run
	removalEvery  = time.Hour
)

// removal is how far a walk along the deliveries has come. It begins anew with
// each process: what is gone costs nothing to pass.
type removal struct {
	before    time.Time    // what is older may go
	merchants []payment.ID // still to be looked at, the one under way first
	after     payment.ID   // the last delivery of that one that was looked at
	rest      time.Duration
	rested    bool // until rest, by the monotonic clock
}

// RemoveDeliveries removes deliveries, and their attempts, that were finished
// longer ago than the retention says. What is not finished stays, and what waits
// for a person, while it does, and every event. It asks for no run right after it: whatever is
// left can wait for the next second.
func (j *Jobs) RemoveDeliveries(ctx context.Context) (int, error) {
	r, now := &j.removal, j.Env.Clock.Monotonic()
	if j.Retention <= 0 || r.rested && now < r.rest || !j.Env.Spare() {
		return 0, nil
	}
	if len(r.merchants) == 0 {
		if err := j.beginRemoval(ctx); err != nil {
			return 0, err
		}
	}
	for pieces := 0; pieces < removalPieces && len(r.merchants) > 0; {
		last, looked, _, err := j.Flow.RemoveDeliveries(ctx, r.merchants[0], r.after, r.before, removalPiece)
		if err != nil {
			return 0, err
		}
		r.after = last
		if looked < removalPiece {
			r.merchants, r.after = r.merchants[1:], payment.ID{}
		}
		if looked > 0 {
			pieces++
		}
	}
	if r.rested = len(r.merchants) == 0; r.rested {
		r.rest = now + j.Env.Random.Jitter(removalEvery, 10)
	}
	return 0, nil
}

// Removing says whether a walk along old deliveries has begun, and not ended:
// all of it goes by the clock of its beginning.
func (j *Jobs) Removing() bool { return len(j.removal.merchants) > 0 }

// beginRemoval begins a walk along the deliveries of all merchants.
func (j *Jobs) beginRemoval(ctx context.Context) error {
	list, err := j.Store.Merchants(ctx)
	if err != nil {
		return err
	}
	r := &j.removal
	r.after = payment.ID{}
	if r.before, err = j.Flow.BeginRemoval(ctx, j.Env.Clock.Now().Add(-j.Retention), j.Retention); err != nil {
		return err
	}
	for i := range list {
		r.merchants = append(r.merchants, list[i].ID)
	}
	return nil
}
