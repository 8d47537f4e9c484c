package main

import (
	"context"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// clock is the machine's: what is tortured has no other.
var clock = env.NewSystemClock()

// chance draws what happens next.
type chance struct{ env.Random }

func newChance(seed, stream uint64) chance {
	return chance{env.SeededRandom(seed*1_000_003 + stream)}
}

// below draws a number from 0 to n-1.
func (c chance) below(n int) int { return int(c.Int64N(int64(n))) }

// percent is true that often.
func (c chance) percent(p int) bool { return c.below(100) < p }

// between draws a time.
func (c chance) between(low, high time.Duration) time.Duration {
	return low + time.Duration(c.Int64N(int64(high-low)))
}

// pick draws one of a list.
func pick[T any](c chance, list []T) T { return list[c.below(len(list))] }

// wait passes time; false if ctx ended first.
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
