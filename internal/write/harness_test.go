package write_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// work is an operation of a test.
type work struct {
	merchant payment.ID
	class    commit.Class
	needs    func(n *store.Needs)
	decide   func(l *store.Loaded, c *store.Changes) error
}

// Merchant implements [write.Operation].
func (v *work) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *work) Class() commit.Class { return v.class }

// Needs implements [write.Operation].
func (v *work) Needs(n *store.Needs) {
	if v.needs != nil {
		v.needs(n)
	}
}

// Decide implements [write.Operation].
func (v *work) Decide(l *store.Loaded, c *store.Changes) error { return v.decide(l, c) }

// runs is a request of a merchant that changes nothing.
func runs(merchant payment.ID, run func()) *work {
	return &work{merchant: merchant, decide: func(*store.Loaded, *store.Changes) error { run(); return nil }}
}

func nothing() {}

// sets writes a setting, which shows whether the operation was committed.
func sets(name string) *work {
	return &work{decide: func(_ *store.Loaded, c *store.Changes) error { c.SetSetting(name, "done"); return nil }}
}

func isSet(g *coretest.Gateway, name string) bool {
	g.T.Helper()
	value, err := g.Store.Setting(g.T.Context(), name)
	g.Must(err)
	return value == "done"
}

// blocked is a gateway whose only lane is blocked in a batch.
type blocked struct {
	*coretest.Gateway

	queued  int
	release func()
}

func block(t *testing.T, g *coretest.Gateway) *blocked {
	t.Helper()
	g.Writer.Start()
	t.Cleanup(g.Writer.Stop)
	v := &blocked{Gateway: g}
	entered, released := make(chan struct{}), make(chan struct{})
	v.release = func() { close(released); v.release = nothing }
	t.Cleanup(func() { v.release() })
	go func() {
		_ = g.Writer.Do(context.Background(), runs(payment.ID{1}, func() { close(entered); <-released }))
	}()
	<-entered
	return v
}

// queue queues an operation behind the batch, and returns when it waits. done gets its
// error.
func (v *blocked) queue(ctx context.Context, op write.Operation) (done <-chan error) {
	result := make(chan error, 1)
	go func() { result <- v.Writer.Do(ctx, op) }()
	v.queued++
	v.awaitQueued(v.queued)
	return result
}

func (v *blocked) awaitQueued(n int) {
	for v.Writer.Lanes()[0].Waiting != n {
		runtime.Gosched()
	}
}

var errBroken = errors.New("broken")
