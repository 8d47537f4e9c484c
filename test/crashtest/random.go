package main

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// clock is the machine's.
var clock = env.NewSystemClock()

// random draws faults, orders and pauses.
type random struct{ env.Random }

// newRandom returns one of a seed's independent streams.
func newRandom(seed, stream uint64) random {
	return random{env.SeededRandom(seed*1_000_003 + stream)}
}

// Streams of a seed: clients and supervisors add their number.
const (
	streamNemesis     = 0
	streamPending     = 99
	streamClients     = 100
	streamSupervisors = 1000
)

// below draws a number from 0 to n-1.
func (r random) below(n int) int { return int(r.Int64N(int64(n))) }

// percent is true in p of 100 draws.
func (r random) percent(p int) bool { return r.below(100) < p }

// between draws a duration from low to high.
func (r random) between(low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)))
}

// pick draws one of a list.
func pick[T any](r random, list []T) T { return list[r.below(len(list))] }

// wait waits for a duration; false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
