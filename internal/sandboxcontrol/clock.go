package sandboxcontrol

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// clockLeadMax is how far the sandbox's clock may run ahead.
const clockLeadMax = 100 * 365 * 24 * time.Hour

// Clock is the sandbox's clock: the machine's plus an offset, which the
// database keeps for all its gateways. It only moves forward.
type Clock struct {
	store   *store.Store
	system  *env.SystemClock
	changed func()
	mu      sync.Mutex // guards the order of steps of system
}

// NewClock returns the clock that moves system. changed, if not nil, is called
// after each step.
func NewClock(s *store.Store, system *env.SystemClock, changed func()) *Clock {
	return &Clock{store: s, system: system, changed: changed}
}

// Follow sets the clock to the offset in the database, which another gateway
// may have moved.
func (c *Clock) Follow(ctx context.Context) error {
	text, err := c.store.Setting(ctx, store.SettingClockOffset)
	if err != nil {
		return err
	}
	offset, err := parseOffset(text)
	if err != nil {
		return err
	}
	c.set(offset)
	return nil
}

// Advance moves the clock on by d for all gateways of the database, and returns
// the offset in force. Errors: problem kind validation_failed if it would run
// too far ahead.
func (c *Clock) Advance(ctx context.Context, d time.Duration) (offset time.Duration, err error) {
	err = c.store.Transact(ctx, func(tx *store.Tx) error {
		text, err := tx.Setting(ctx, store.SettingClockOffset)
		if err != nil {
			return err
		}
		if offset, err = parseOffset(text); err != nil {
			return err
		}
		if offset > clockLeadMax-d {
			return problem.New(problem.ValidationFailed, "The sandbox's clock runs at most 100 years ahead.")
		}
		offset += d
		return tx.SetSetting(ctx, store.SettingClockOffset, offset.String())
	})
	if err != nil {
		return 0, storeProblem(err)
	}
	c.set(offset)
	return offset, nil
}

// set moves the clock forward to an offset.
func (c *Clock) set(offset time.Duration) {
	c.mu.Lock()
	moved := offset > c.system.Offset()
	if moved {
		c.system.SetOffset(offset)
	}
	c.mu.Unlock()
	if moved && c.changed != nil {
		c.changed()
	}
}

func parseOffset(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	offset, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("sandboxcontrol: clock offset: %w", err)
	}
	return offset, nil
}
