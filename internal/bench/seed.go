package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/store"
)

// SeedOptions say how a store is to be filled for measurements.
type SeedOptions struct {
	// Data is the folder of the store: one that is not there yet or is empty,
	// or one that was seeded before, which is then filled further.
	Data string
	// Database is a PostgreSQL URL of a database that is empty or was seeded;
	// "" is the SQLite file in Data.
	Database string
	// Payins and Payouts are how many the store is to hold in the end.
	Payins, Payouts int64
	// Merchants share them, unevenly, as shops do: the nth has one nth of what
	// the first one has. 0 takes those that are there, or ten.
	Merchants int
	// Env is the clock and chance.
	Env env.Env
	// Progress is told once a second how it goes; nil for nobody.
	Progress io.Writer
}

// Seeded is what a store holds after seeding.
type Seeded struct {
	Payins    int64   `json:"payins"`
	Payouts   int64   `json:"payouts"`
	Merchants int     `json:"merchants"`
	Made      int64   `json:"made"` // orders that this run added
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"` // of Made
}

// How the seeded past goes. The shares are in per cent of the pay-ins.
const (
	seedSlice     = 4096 // pay-ins that are committed at once
	seedMerchants = 10
	seedMax       = 1_000_000_000 // pay-ins, and payouts
	seedPaid      = 60
	seedCanceled  = 2               // what is neither expires, once its day is over
	seedHooked    = 50              // orders that have a webhookUrl
	seedGap       = 3 * time.Second // between two pay-ins: some ten million a year
	seedYear      = 365 * 24 * time.Hour
	// One in so many is out of the ordinary: a payment is disputed, a transfer
	// is refused, a receiver does not take an event at once.
	seedDisputed, seedRefused, seedRetried = 10_000, 100, 100
)

// ErrNotSeeded says that a folder or a database holds something that seeding
// did not make: it is not touched.
var ErrNotSeeded = errors.New("this is no store for measurements")

// ErrStopped says that seeding was stopped before its time.
var ErrStopped = errors.New("stopped; the same command goes on from here")

// seeder fills one store.
type seeder struct {
	SeedOptions

	store *store.Store
	flow  *flow.Flow
	// Orders are prepared by one clock while earlier ones are committed by
	// another: both stand somewhere in the past.
	preparing, committing *env.SystemClock
	names                 string // of its merchants, before their number
	setting               string // where its state is kept
	merchants             []store.Merchant
	shares                []float64 // cumulative
	state                 seedState
	goal                  seedState
	past                  time.Time // where the played past ended, once it has
	gap                   time.Duration
	random, chance        *pooledRandom // of what is prepared, and of what follows
	last                  []seededOrder // of the round before
}

// Seed fills a store through the gateway's own verbs: orders with references in
// no order, paid, canceled and expired; payouts to their end; ledger, events and
// deliveries as they follow from that. It plays a past, a pay-in each 3 s. An end
// before its time leaves a sound store, which the next run goes on with; where ctx
// ended, the result comes with [ErrStopped].
func Seed(ctx context.Context, o SeedOptions) (result *Seeded, err error) {
	s := newSeeder(o)
	if min(o.Payins, o.Payouts) < 0 || max(o.Payins, o.Payouts) > seedMax || o.Merchants < 0 || o.Merchants > merchantsMax {
		return nil, fmt.Errorf("%w: pay-ins and payouts are 0 to %d each, merchants at most %d", ErrUsage, int64(seedMax), merchantsMax)
	}
	release, err := lockSeeded(ctx, o.Database)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	before, clock := s.state, o.Env.Clock
	began := clock.Monotonic()
	err = errors.Join(s.fill(ctx, began), s.leave(ctx))
	stopped := err != nil && ctx.Err() != nil
	if err != nil && !stopped {
		return nil, err
	}
	v := &Seeded{Payins: s.state.Payins, Payouts: s.state.Payouts, Merchants: len(s.merchants)}
	v.Made = v.Payins - before.Payins + v.Payouts - before.Payouts
	if v.Seconds = round((clock.Monotonic() - began).Seconds(), 3); v.Seconds > 0 {
		v.PerSecond = round(float64(v.Made)/v.Seconds, 1)
	}
	if stopped {
		return v, ErrStopped
	}
	return v, nil
}

func newSeeder(o SeedOptions) *seeder {
	return &seeder{
		SeedOptions: o, names: "seed ", setting: settingSeed,
		random: &pooledRandom{from: o.Env.Random}, chance: &pooledRandom{from: o.Env.Random},
	}
}

func (s *seeder) tellf(format string, args ...any) {
	if s.Progress != nil {
		_, _ = fmt.Fprintf(s.Progress, format+"\n", args...)
	}
}

// fill prepares slices on one goroutine and commits them on this one.
func (s *seeder) fill(ctx context.Context, began time.Duration) error {
	if s.state.Payins >= s.goal.Payins && s.state.Payouts >= s.goal.Payouts {
		return s.drain(ctx) // the run before may have died in it
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type prepared struct {
		slice seedRound
		err   error
	}
	ready := make(chan prepared, 1)
	go func() {
		defer close(ready)
		for at := s.state; at.Payins < s.goal.Payins || at.Payouts < s.goal.Payouts; {
			r, err := s.prepare(ctx, at)
			select {
			case ready <- prepared{r, err}:
			case <-ctx.Done():
				return
			}
			if at = r.after; err != nil {
				return
			}
		}
	}()
	p := seedProgress{seeder: s, began: began, first: s.state.orders(), told: began}
	for v := range ready {
		err := v.err
		if err == nil {
			err = s.commit(ctx, v.slice)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			cancel()
			for range ready { // until the other goroutine has ended
				continue
			}
			return err
		}
		p.step()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.drain(ctx)
}

// seedProgress tells how far it has come, once a second.
type seedProgress struct {
	*seeder
	began, told time.Duration
	first       int64 // orders when it began
}

func (p *seedProgress) step() {
	now := p.Env.Clock.Monotonic()
	if now-p.told < time.Second {
		return
	}
	p.told = now
	done, goal := p.state.orders(), p.goal.orders()
	rate := float64(done-p.first) / (now - p.began).Seconds()
	left := time.Duration(float64(goal-done) / rate * float64(time.Second)).Round(time.Second)
	p.tellf("%6s  %d of %d pay-ins, %d of %d payouts, %.0f orders/s, %s left", (now - p.began).Round(time.Second),
		p.state.Payins, p.goal.Payins, p.state.Payouts, p.goal.Payouts, rate, left)
}
