// Package write commits operations in groups, each in three steps: load, decide, save.
//
// An [Operation] is one write of a use case. The package batches operations
// (commit.Batcher) and commits each batch in one transaction (store.Commit), in which
// each operation decides separately.
package write

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Limits of a batch.
const (
	maxBatch      = 256  // requests committed at once
	maxBackground = 128  // results of workers committed with them, while requests wait
	maxQueued     = 8192 // requests waiting; beyond that, new ones are refused
	unknownTries  = 8    // further runs of a batch after an unknown commit
	unknownWait   = 50 * time.Millisecond

	// maxQueueDelay is the longest queueing delay that is accepted. Beyond it most
	// clients have timed out, so new requests are refused at once.
	maxQueueDelay = time.Second
)

// Operation is one write of a use case. It is built before any lock: its ids are chosen,
// its JSON is encoded and its personal data is sealed. It may run again: unique keys and
// guards make it idempotent.
type Operation interface {
	// Merchant is the unit of fairness in batches; zero for the platform.
	Merchant() payment.ID
	Class() commit.Class
	// Needs declares, before the transaction begins, what Decide reads, the unique keys
	// that are inserted and the rows that are claimed.
	Needs(n *store.Needs)
	// Decide is a pure function of the loaded rows that adds to the changes. It first
	// resets the operation's output fields, because it may run again. An error is the
	// refusal of this operation only; it must then have added nothing, except a release of its
	// reference ([store.Changes.ReleaseReference]). If keys that it inserted must go too, it calls
	// [store.Changes.UndoKeys], and is then committed alone.
	Decide(l *store.Loaded, c *store.Changes) error
}

// Node is the identity under which this process claims work.
type Node interface {
	ID() payment.ID
	// ClaimsUnknown is called if the outcome of a commit with claims is unknown: the
	// database may have claims of this process that the process does not work on.
	ClaimsUnknown()
}

// Notices applies notices, and claims them in the commit that stores them.
type Notices interface {
	// Reserve reserves slots for new notices, by account.
	Reserve(wanted map[string]int) (reserved map[string]int)
	// Accept takes the claimed notices and releases the other slots. due is the number
	// of notices stored without a claim, by account.
	Accept(reserved map[string]int, claimed []store.Notice, due map[string]int)
}

// Deliveries delivers events, and claims deliveries in the commit that creates them.
type Deliveries interface {
	// Reserve reserves slots for new deliveries, by merchant.
	Reserve(wanted map[payment.ID]int) (reserved map[payment.ID]int)
	// Accept takes the claimed deliveries and releases the other slots. due is the number
	// of deliveries created without a claim, by merchant.
	Accept(reserved map[payment.ID]int, claimed []store.Delivery, due map[payment.ID]int)
}

// Options configure a Writer.
type Options struct {
	Store *store.Store
	Env   env.Env
	Log   *slog.Logger
	// Node, Notices and Deliveries are nil in a process that claims nothing.
	Node       Node
	Notices    Notices
	Deliveries Deliveries
	// Changed is called after a commit that changed a pay-in, in the goroutine that
	// committed: it must not block. It may be nil.
	Changed func(merchant, payin payment.ID)
	// Announced is called likewise after a commit with new events, with their merchants. It
	// may be nil.
	Announced func(merchants []payment.ID)
	// Created is called likewise after a commit with new orders. It may be nil.
	Created func(orders []store.NewOrder)
}

// Writer commits operations. It is safe for concurrent use.
type Writer struct {
	o       Options
	batcher *commit.Batcher[payment.ID, Operation]
}

// New returns a Writer. Until Start each caller commits its own operation alone.
func New(o Options) *Writer {
	w := &Writer{o: o}
	lanes := o.Store.Writers()
	w.batcher = commit.New(commit.Options[payment.ID, Operation]{
		Commit: w.commitBatch, Classify: classify,
		Class: Operation.Class, Key: Operation.Merchant,
		Lanes: lanes, Lane: func(m payment.ID) int { return (int(m[14])<<8 | int(m[15])) % lanes }, // the random part of an id
		Concurrent: lanes > 1,
		MaxBatch:   maxBatch, MaxBackground: maxBackground, MaxQueued: maxQueued,
		Retries: unknownTries, RetryWait: unknownWait, Clock: o.Env.Clock, Log: o.Log,
	})
	return w
}

// Start starts group commit.
func (w *Writer) Start() { w.batcher.Start() }

// Stop commits the queued operations; see [commit.Batcher.Stop].
func (w *Writer) Stop() { w.batcher.Stop() }

// Lanes returns the statistics of each lane.
func (w *Writer) Lanes() []commit.LaneStats { return w.batcher.Lanes() }

// Backlogged reports whether clients' operations queue for their commits.
func (w *Writer) Backlogged() bool { return w.batcher.Backlogged() }

// Do commits an operation. It returns nil when the operation is durable, else its
// refusal or the error of its commit. If ctx ends first, it returns its error, and op must
// not be read.
func (w *Writer) Do(ctx context.Context, op Operation) error {
	return callerError(w.batcher.Do(ctx, op))
}

// DoWithoutCancel is Do for an operation that must be recorded even if ctx ends, such as a result.
func (w *Writer) DoWithoutCancel(ctx context.Context, op Operation) error {
	return w.Do(context.WithoutCancel(ctx), op)
}

// All commits operations as one batch and returns the error of each. It is for callers
// that choose their batches: workers with many due rows (expiry, settlement, deadlines), a
// batch of payouts, tests, and the program that fills a store for a load test. It bypasses
// the lanes: they order operations for fairness and speed only, and the locks of rows keep
// concurrent commits correct.
func (w *Writer) All(ctx context.Context, ops []Operation) []error {
	errs := w.batcher.All(ctx, ops)
	for i := range errs {
		errs[i] = callerError(errs[i])
	}
	return errs
}

// Admit refuses new work of a merchant that would not be committed soon, with a problem of
// kind overloaded. A merchant with a short queue is not refused because of another's long
// one.
func (w *Writer) Admit(merchant payment.ID) error {
	delay := w.batcher.QueueDelay(merchant)
	if delay <= maxQueueDelay {
		return nil
	}
	return problem.New(problem.Overloaded, "More requests are waiting than the gateway can commit in time. Send the same request again later.").
		WithRetryAfter(delay)
}

// commitBatch commits a batch in one transaction.
func (w *Writer) commitBatch(ctx context.Context, batch []Operation, refused []error) (err error) {
	var needs store.Needs
	for _, op := range batch {
		op.Needs(&needs)
	}
	reserved := w.reserve(needs.Capacity())
	var out store.Outcome
	returned := false
	defer func() {
		if !returned || errors.Is(err, store.ErrCommitUnknown) { // a panic may happen after the commit
			w.claimsUnknown(batch, &out, returned)
		}
		if !returned || err != nil {
			out = store.Outcome{}
		}
		w.accept(reserved, out)
	}()
	out, err = w.o.Store.Commit(ctx, &needs, reserved, func(l *store.Loaded, c *store.Changes) error {
		clear(refused)
		for i, op := range batch {
			before := c.Len()
			if refused[i] = op.Decide(l, c); refused[i] != nil && c.Len() != before {
				return fmt.Errorf("%T: %w", op, refused[i])
			}
		}
		return nil
	})
	returned = true
	return err
}

func (w *Writer) reserve(wanted store.Capacity) (reserved store.Capacity) {
	if w.o.Node == nil {
		return reserved
	}
	reserved.Node = w.o.Node.ID()
	if len(wanted.Notices) > 0 {
		reserved.Notices = w.o.Notices.Reserve(wanted.Notices)
	}
	if len(wanted.Deliveries) > 0 {
		reserved.Deliveries = w.o.Deliveries.Reserve(wanted.Deliveries)
	}
	return reserved
}

func (w *Writer) accept(reserved store.Capacity, out store.Outcome) {
	if w.o.Node == nil {
		return
	}
	if v := out.Claimed; len(reserved.Notices) > 0 || len(v.NoticesDue) > 0 {
		w.o.Notices.Accept(reserved.Notices, v.Notices, v.NoticesDue)
	}
	if v := out.Claimed; len(reserved.Deliveries) > 0 || len(v.DeliveriesDue) > 0 {
		w.o.Deliveries.Accept(reserved.Deliveries, v.Deliveries, v.DeliveriesDue)
	}
	if w.o.Announced != nil && len(out.Events) > 0 {
		w.o.Announced(out.Events)
	}
	if w.o.Created != nil && len(out.Orders) > 0 {
		w.o.Created(out.Orders)
	}
	if w.o.Changed != nil {
		for _, p := range out.Payins {
			w.o.Changed(p.Merchant, p.ID)
		}
	}
}

// claimsUnknown reports a batch with claims whose commit is unknown: a repeated run claims
// other rows, or none.
func (w *Writer) claimsUnknown(batch []Operation, out *store.Outcome, returned bool) {
	claims := slices.ContainsFunc(batch, func(op Operation) bool { return op.Class() == commit.Claim })
	if w.o.Node != nil && (claims || !returned || out.Claimed.Any()) {
		w.o.Node.ClaimsUnknown()
	}
}

func classify(err error) commit.Failure {
	switch {
	case errors.Is(err, store.ErrCommitUnknown):
		return commit.Unknown
	case errors.Is(err, store.ErrUnavailable):
		return commit.Fatal
	default:
		return commit.OneByOne
	}
}

// callerError converts an error of a commit into one for callers.
func callerError(err error) error {
	switch {
	case errors.Is(err, commit.ErrClosing):
		return problem.New(problem.Unavailable, "The gateway is shutting down. Send the same request again.").With(err)
	case errors.Is(err, commit.ErrFull):
		return problem.New(problem.Overloaded, "Too many requests are waiting. Send the same request again later.").With(err)
	default:
		return store.Problem(err)
	}
}
