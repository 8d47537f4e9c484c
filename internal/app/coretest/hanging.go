package coretest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/processor"
)

// Hanging is a bank that accepts calls and answers none, until Release or until their
// time is over. It records nothing.
type Hanging struct {
	*Bank

	Release func()

	gate    chan struct{}
	waiting atomic.Int64
	arrived atomic.Int64
}

// NewHanging returns a hanging bank. It is released when the test ends, at the latest.
func NewHanging(t *testing.T) *Hanging {
	t.Helper()
	h := &Hanging{Bank: NewBank(), gate: make(chan struct{})}
	h.Release = sync.OnceFunc(func() { close(h.gate) })
	t.Cleanup(h.Release)
	return h
}

// Arrived is the number of calls so far, Waiting of those without an end.
func (h *Hanging) Arrived() int { return int(h.arrived.Load()) }

// Waiting is the number of calls that have not ended.
func (h *Hanging) Waiting() int { return int(h.waiting.Load()) }

func (h *Hanging) hang(ctx context.Context) error {
	h.arrived.Add(1)
	h.waiting.Add(1)
	defer h.waiting.Add(-1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-h.gate:
		return ErrDown
	}
}

// Transfer implements [processor.Transferrer].
func (h *Hanging) Transfer(ctx context.Context, _ processor.TransferRequest, guard func() error) processor.TransferAnswer {
	if err := guard(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}
	}
	return processor.TransferAnswer{Cause: h.hang(ctx)}
}

// QueryTransfer implements [processor.Transferrer].
func (h *Hanging) QueryTransfer(ctx context.Context, _ string) processor.TransferReport {
	return processor.TransferReport{Cause: h.hang(ctx)}
}

// Charge implements [processor.Charger].
func (h *Hanging) Charge(ctx context.Context, _ processor.ChargeRequest, guard func() error) processor.ChargeAnswer {
	if err := guard(); err != nil {
		return processor.ChargeAnswer{Outcome: processor.NotSent, Cause: err}
	}
	return processor.ChargeAnswer{Cause: h.hang(ctx)}
}

// QueryCharge implements [processor.Charger].
func (h *Hanging) QueryCharge(ctx context.Context, _ string) processor.ChargeReport {
	return processor.ChargeReport{Cause: h.hang(ctx)}
}
