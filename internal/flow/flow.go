// Package flow is the use cases, one file per verb; the only opener of write
// transactions.
//
// A verb turns a request or a processor's news into a rule's decision, and the
// decision into one commit of state, balanced entries and events. The hot verbs
// are written for many requests at once: see batch.go.
package flow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Lease tells whether this process still has the right to send: others may
// take its work over once it is lost.
type Lease interface {
	Valid() bool
	Remaining() time.Duration
}

// Wake names work that a commit made due; the loop that does it is woken.
type Wake int

// The kinds of work.
const (
	WakeSubmit Wake = iota
	WakeResolve
	WakeNotices
	WakeExpire
	WakeDeliver
	WakeCollect
)

// Options assemble a Flow.
type Options struct {
	Store      *store.Store
	Env        env.Env
	Processors processor.Registry
	Log        *slog.Logger
	// Wake is called after a commit that made work due; nil wakes nobody.
	Wake func(Wake)
	// Links are the addresses of a pay-in's pages, as events show them; nil
	// shows none.
	Links func(*payment.Payin) payment.Links
	// Changed is called after a commit that changed a pay-in, in the goroutine
	// that committed: it must not block. nil tells nobody.
	Changed func(merchant, payin payment.ID)
}

// Flow runs the use cases. It is safe for concurrent use.
type Flow struct {
	store      *store.Store
	env        env.Env
	processors processor.Registry
	log        *slog.Logger
	wake       func(Wake)
	links      func(*payment.Payin) payment.Links
	changed    func(merchant, payin payment.ID)
	lanes      []*lane

	mu         sync.Mutex
	hands      Hands // nil: everything that is due waits to be claimed
	node       payment.ID
	restoredAt time.Time
	began      time.Time // the wall clock when the monotonic one began, as of the last beat
	beat       int64     // of the installation, as this process saw it last
	doubtful   bool      // what this process has in hand is not all known to it
	numbers    sync.Map  // merchant number -> payment.ID
}

// New returns a Flow whose batches are committed by the caller itself, one
// request at a time, until Start gives the lanes goroutines of their own.
func New(o Options) *Flow {
	f := &Flow{store: o.Store, env: o.Env, processors: o.Processors, log: o.Log, wake: o.Wake, links: o.Links, changed: o.Changed}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.wake == nil {
		f.wake = func(Wake) {}
	}
	if f.links == nil {
		f.links = func(*payment.Payin) payment.Links { return payment.Links{} }
	}
	for range o.Store.Lanes() {
		f.lanes = append(f.lanes, newLane(f))
	}
	return f
}

// Start gives each lane its goroutine.
func (f *Flow) Start() {
	for _, l := range f.lanes {
		l.start()
	}
}

// Stop commits what is queued, refuses what comes later, and waits.
func (f *Flow) Stop() {
	for _, l := range f.lanes {
		l.stop()
	}
}

// write runs work as a transaction of its own and wakes who has work by it.
func (f *Flow) write(ctx context.Context, work func(tx *store.Tx) error) error {
	var deliveries bool
	var changed []store.Ref
	err := f.store.Write(ctx, func(tx *store.Tx) error {
		err := work(tx)
		deliveries, changed = tx.HasDeliveries(), tx.ChangedPayins()
		return err
	})
	if err == nil && deliveries {
		f.wake(WakeDeliver)
	}
	if err == nil && f.changed != nil {
		for _, p := range changed {
			f.changed(p.Merchant, p.ID)
		}
	}
	return public(err)
}

// besideVerb is what a duty writes in few rows, each task for itself.
var besideVerb = &verb{name: "beside", duty: true, first: true, still: true, run: func(_ context.Context, tx *store.Tx, tasks []*task) error {
	for _, t := range tasks {
		if err := t.arg.(func(*store.Tx) error)(tx); errors.Is(err, store.ErrConflict) {
			t.err = err // and nothing was written for it
		} else if err != nil {
			return err
		}
	}
	return nil
}}

// beside runs what a duty writes in few rows, and often. With one lane it is in
// the next batch that the lane takes: a commit of its own would take as long as
// that of a whole batch, which had to wait for it. A server commits it side by
// side with others.
// Where work ends with the store's ErrConflict it must have written nothing.
func (f *Flow) beside(ctx context.Context, work func(tx *store.Tx) error) error {
	if len(f.lanes) > 1 {
		return f.write(ctx, work)
	}
	return f.submit(context.WithoutCancel(ctx), besideVerb, payment.ID{}, work) // who asks has its answer once work is over
}

// public makes an error of the store one that a caller may be told about.
func public(err error) error {
	var known *problem.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.NotFound, "Order not found.").With(err)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrCommitUnknown):
		return problem.New(problem.Unavailable, "The database is unavailable. Send the same request again.").With(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.Unavailable, "The request took too long. Send it again.").With(err)
	default:
		return err
	}
}

// processorOf returns the processor of an order or a merchant.
func (f *Flow) processorOf(name string) (processor.Processor, error) {
	if p, ok := f.processors[name]; ok {
		return p, nil
	}
	return nil, problem.New(problem.Unavailable, "The merchant's processor is not configured on this gateway.").
		With(fmt.Errorf("flow: no processor %q", name))
}

// merchantOf finds whose external id this is; the platform itself, with the
// zero id, where nobody can be found.
func (f *Flow) merchantOf(ctx context.Context, externalID string) (payment.ID, error) {
	number, err := payment.MerchantNumber(externalID)
	if err != nil || number == 0 {
		return payment.ID{}, nil
	}
	if m, ok := f.numbers.Load(number); ok {
		return m.(payment.ID), nil
	}
	m, err := f.store.MerchantByNumber(ctx, number)
	if errors.Is(err, store.ErrNotFound) {
		return payment.ID{}, nil
	}
	if err != nil {
		return payment.ID{}, err
	}
	f.numbers.Store(number, m.ID)
	return m.ID, nil
}

// externalID derives an order's one id at processors.
func (f *Flow) externalID(m *store.Merchant, op payment.Operation, reference string) string {
	return payment.ExternalID(f.store.Installation(), m.Number, m.ID, op, reference)
}

// ExternalID derives, for a filter by reference, the id that the order of that
// reference has or would have.
func (f *Flow) ExternalID(m store.Merchant, op payment.Operation, reference string) string {
	return f.externalID(&m, op, reference)
}
