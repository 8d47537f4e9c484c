package flow

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Node is the id under which this process has work in hand.
func (f *Flow) Node() payment.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.node
}

// RestoredAt is when the database was last found to be an older copy of
// itself; zero if it never was.
func (f *Flow) RestoredAt() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.restoredAt
}

// Join makes this process known, under a new id. outside is the installation's
// beat as it was last kept outside the database (0: none was): a database that
// has not come as far is a restored backup, and from then on payouts are asked
// about before they are sent. alone says that no other process can be alive
// (SQLite): what others had in hand is free at once.
func (f *Flow) Join(ctx context.Context, outside int64, alone bool) error {
	inst, err := f.store.ReadInstallation(ctx)
	if err != nil {
		return public(err)
	}
	nodes, err := f.store.Nodes(ctx)
	if err != nil {
		return public(err)
	}
	id := payment.ID(f.env.IDs.NewID(f.env.Clock.Now()))
	restored := inst.RestoredAt
	err = f.write(ctx, func(tx *store.Tx) error {
		if outside > inst.Beat {
			restored = tx.Now
			if err := f.markRestored(ctx, tx, inst.Beat, outside); err != nil {
				return err
			}
		}
		if alone {
			for _, n := range nodes {
				if _, err := tx.ReleaseNode(ctx, n); err != nil {
					return err
				}
			}
		}
		if err := tx.PullForward(ctx, tx.Now.Add(longestWait)); err != nil {
			return err
		}
		return tx.RegisterNode(ctx, id)
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.node, f.restoredAt = id, restored
	f.mu.Unlock()
	return nil
}

// longestWait is longer than any work is ever put off: what is due later was
// put off by a clock that ran ahead.
const longestWait = 27 * time.Hour

// clockStep is how far the wall clock must go back at once to be noticed.
const clockStep = time.Minute

// clockLook is where the wall clock stood when the monotonic one began, and
// whether it was set back since the last beat.
func (f *Flow) clockLook() (began time.Time, back bool) {
	began = f.env.Clock.Now().Add(-f.env.Clock.Monotonic())
	f.mu.Lock()
	defer f.mu.Unlock()
	return began, began.Before(f.began.Add(-clockStep))
}

// Beat says that this process is alive and returns the installation's beat, to
// be kept outside the database. A process that others gave up for dead joins
// anew, under another id. A database that has gone back behind what this process
// has seen is a restored backup, or a replica that lacks the latest commits.
func (f *Flow) Beat(ctx context.Context) (beat int64, err error) {
	if err := f.disown(ctx); err != nil {
		return 0, err
	}
	began, back := f.clockLook()
	var restored time.Time
	err = f.beside(ctx, func(tx *store.Tx) error {
		v, err := tx.Beat(ctx, f.Node())
		if err != nil {
			return err
		}
		beat, restored = v.Beat, v.RestoredAt
		if seen := f.seen(); beat <= seen {
			beat, restored = seen+1, tx.Now
			if err = f.markRestored(ctx, tx, v.Beat, beat); err != nil {
				return err
			}
		}
		if back {
			f.log.Warn("the clock was set back: what it had put off too far is due now")
			return tx.PullForward(ctx, tx.Now.Add(longestWait))
		}
		return nil
	})
	if errors.Is(err, store.ErrConflict) {
		f.log.Warn("this process was given up for dead; it joins anew")
		if err := f.Join(ctx, f.seen(), false); err != nil {
			return 0, err
		}
		return f.Beat(ctx)
	}
	if err == nil {
		f.mu.Lock()
		f.beat, f.restoredAt, f.began = beat, restored, began
		f.mu.Unlock()
	}
	return beat, err
}

// seen is how far this process has seen the installation come.
func (f *Flow) seen() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.beat
}

// markRestored begins the time in which payouts are asked about first.
func (f *Flow) markRestored(ctx context.Context, tx *store.Tx, beat, outside int64) error {
	f.log.Error("the database is an older copy of itself: payouts are asked about before they are sent",
		"beat", beat, "beatOutside", outside)
	return tx.MarkRestored(ctx, outside)
}

// claiming is a claim of due work by a process, on its way into the store.
type claiming struct {
	node payment.ID
	work func(tx *store.Tx, node payment.ID) error
}

var claimVerb = &verb{name: "claim", duty: true, run: func(ctx context.Context, tx *store.Tx, tasks []*task) error {
	for _, t := range tasks {
		v := t.arg.(*claiming)
		if err := tx.StayNode(ctx, v.node); errors.Is(err, store.ErrConflict) {
			t.err = err // and nothing was written for it
		} else if err != nil {
			return err
		} else if err := v.work(tx, v.node); err != nil {
			return err
		}
	}
	return nil
}}

// claim runs a claim of due work of a merchant by this process, as node. With
// one lane it shares the commit of what else is to be written; a server that
// commits side by side gets it beside the lanes, which do not wait for its many
// statements. A process that was given up for dead claims nothing: nobody would
// free what it takes in hand. What is claimed is in hand even where the caller
// has gone.
func (f *Flow) claim(ctx context.Context, merchant payment.ID, work func(tx *store.Tx, node payment.ID) error) error {
	ctx = context.WithoutCancel(ctx)
	v := &claiming{f.Node(), work}
	if len(f.lanes) > 1 {
		return f.alone(ctx, claimVerb, merchant, v)
	}
	return f.submit(ctx, claimVerb, merchant, v)
}

// doubt notes that a COMMIT with claims is unknown: this process may have taken
// work in hand that it does not know of, and nobody does.
func (f *Flow) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.doubtful = true
}

// disown goes on under a new id and frees what is in hand under the old one,
// after a claim that nobody knows the end of. What is under way under the old
// id ends as that of a process that was given up: proofs count, and the rest is
// asked about.
func (f *Flow) disown(ctx context.Context) error {
	f.mu.Lock()
	doubtful, old := f.doubtful, f.node
	f.doubtful = false // before the new id: a doubt of what it takes in hand is not lost
	f.mu.Unlock()
	if !doubtful {
		return nil
	}
	nodes, err := f.store.Nodes(ctx)
	if err == nil {
		err = f.Join(ctx, f.seen(), false)
	}
	if err != nil {
		f.doubt()
		return public(err)
	}
	for _, n := range nodes {
		if n.ID == old {
			if _, err := f.Release(ctx, n); err != nil {
				return err // others release it: it beats no more
			}
		}
	}
	return nil
}

// Release frees what a dead process had in hand. ErrConflict of the store means
// that it lives, or that somebody was faster; that is no error.
func (f *Flow) Release(ctx context.Context, n store.Node) (released int64, err error) {
	err = f.write(ctx, func(tx *store.Tx) error {
		released, err = tx.ReleaseNode(ctx, n)
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		return 0, nil
	}
	if err == nil && n.ID != f.Node() {
		f.log.Info("took over from a dead process", "node", n.ID, "released", released)
		for _, w := range []Wake{WakeSubmit, WakeResolve, WakeNotices, WakeDeliver} {
			f.wake(w)
		}
	}
	return released, err
}

// Leave frees what this process has in hand, as at a clean end.
func (f *Flow) Leave(ctx context.Context) error {
	nodes, err := f.store.Nodes(ctx)
	if err != nil {
		return public(err)
	}
	for _, n := range nodes {
		if n.ID == f.Node() {
			_, err = f.Release(ctx, n)
		}
	}
	return err
}

// clockLeadMax is how far the sandbox's time may run ahead.
const clockLeadMax = 100 * 365 * 24 * time.Hour

// AdvanceClock moves the sandbox's time on, for all processes of the database.
// Errors: problem kind validation_failed where it would be too far ahead.
func (f *Flow) AdvanceClock(ctx context.Context, d time.Duration) (offset time.Duration, err error) {
	err = f.write(ctx, func(tx *store.Tx) error {
		text, err := tx.Setting(ctx, store.SettingClockOffset)
		if err != nil {
			return err
		}
		offset = 0
		if text != "" {
			if offset, err = time.ParseDuration(text); err != nil {
				return err
			}
		}
		if offset > clockLeadMax-d {
			return problem.New(problem.ValidationFailed, "The sandbox's clock can be at most 100 years ahead.")
		}
		offset += d
		return tx.SetSetting(ctx, store.SettingClockOffset, offset.String())
	})
	return offset, err
}
