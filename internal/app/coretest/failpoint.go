package coretest

import (
	"errors"
	"sync/atomic"

	"github.com/porteira/porteira/internal/env"
)

// CutCommits makes the outcome of commits unknown, before or after they take effect.
// next is the number of commits still to cut; the test sets it.
func CutCommits(e *env.Env, when env.Failpoint) (next *atomic.Int64) {
	next = new(atomic.Int64)
	e.OnFailpoint = func(f env.Failpoint) error {
		if f != when || next.Load() == 0 {
			return nil
		}
		next.Add(-1)
		return errors.New("the connection broke")
	}
	return next
}
