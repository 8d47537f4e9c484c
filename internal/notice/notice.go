// Package notice processes notices and feeds from processors: verify, store raw, apply.
//
// A notice is a hint: it is verified, stored raw, and acknowledged. A worker then
// queries the processor about its subject, and money moves on that answer. Feeds cover
// lost notices.
package notice

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// Notices claimed at once, of all accounts and of one, and those of one that query its
// processor at a time: an account that hangs delays no other.
const (
	noticeSlots       = 256
	noticesPerAccount = noticeSlots / 2
	querySlots        = 64
)

// queryTimeout bounds one query to a processor.
const queryTimeout = 10 * time.Second

// Payins books processors' reports about charges.
type Payins interface {
	Receive(ctx context.Context, processorName, externalID string, report processor.ChargeReport, notice *store.Notice) error
	ReportInvalidPayment(ctx context.Context, processorName string, p *processor.Payment) error
}

// Transfers records processors' reports about transfers.
type Transfers interface {
	RecordNotice(ctx context.Context, processorName, externalID string, report processor.TransferReport, notice *store.Notice) (known bool, err error)
	RecordRefundReport(ctx context.Context, part payment.RefundPart, report processor.TransferReport, notice *store.Notice) error
}

// Options configure a Service.
type Options struct {
	Store      *store.Store
	Writer     *write.Writer
	Queue      *Queue
	Payins     Payins
	Transfers  Transfers
	Refunds    Refunds
	Env        env.Env
	Processors processor.Accounts
	Log        *slog.Logger
	Recorder   worker.Recorder
	// FeedWaker wakes the worker that reads feeds.
	FeedWaker *worker.Waker
	// Spawn starts the reading of a feed; see [worker.Spawn].
	Spawn worker.Spawn
}

// Service records and applies notices, and reads feeds.
type Service struct {
	Options

	queries slots // for queries in flight
	feeds   *worker.Pool
	turn    int // of the accounts whose notices are claimed
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{Options: o, queries: slots{of: map[string]chan struct{}{}}, feeds: worker.NewPool(feedSlots, o.FeedWaker, o.Spawn)}
}

// Queue contains the notices that this process has claimed but not started to apply,
// and the slots for more. A notice that this process stores is claimed in the same
// commit if a slot is free and no older notice is due.
type Queue struct {
	node  *cluster.Node
	pool  *worker.Pool
	waker *worker.Waker

	mu      sync.Mutex
	backlog worker.Backlog
	claimed []store.Notice
	pending map[string]int // claimed notices that are not ended, by account
}

// NewQueue returns an empty queue of a node, which wakes the worker that applies
// notices.
func NewQueue(node *cluster.Node, waker *worker.Waker, spawn worker.Spawn) *Queue {
	return &Queue{node: node, pool: worker.NewPool(noticeSlots, waker, spawn), waker: waker, pending: map[string]int{}}
}

var _ write.Notices = (*Queue)(nil)

// Reserve implements [write.Notices].
func (q *Queue) Reserve(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.backlog.More || !q.node.Lease.Valid() {
		return 0
	}
	for _, pending := range q.pending { // any account may be that of the notices
		n = min(n, noticesPerAccount-pending)
	}
	return q.pool.Reserve(min(n, noticesPerAccount))
}

// Free is the number of free slots.
func (q *Queue) Free() int { return q.pool.Free() }

// capacity is the number of notices of an account that may still be claimed.
func (q *Queue) capacity(account string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return noticesPerAccount - q.pending[account]
}

// shares divides a limit equally between accounts, within the capacity of each.
func (q *Queue) shares(accounts []string, limit int) []int {
	list := make([]int, len(accounts))
	for i, account := range accounts {
		list[i] = max(0, min((limit+i)/len(accounts), q.capacity(account)))
	}
	return list
}

// begin counts claimed notices as pending; end counts one of them as ended.
func (q *Queue) begin(claimed []store.Notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range claimed {
		q.pending[claimed[i].Processor]++
	}
}

func (q *Queue) end(account string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pending[account]--; q.pending[account] == 0 {
		delete(q.pending, account)
	}
}

// Accept implements [write.Notices].
func (q *Queue) Accept(reserved int, claimed []store.Notice, due int) {
	q.pool.Release(reserved - len(claimed))
	q.begin(claimed)
	q.mu.Lock()
	q.claimed = append(q.claimed, claimed...)
	if due > 0 {
		q.backlog.More = true
	}
	q.mu.Unlock()
	if len(claimed)+due > 0 {
		q.waker.Wake()
	}
}

// take takes the notices that were claimed when they were stored.
func (q *Queue) take() []store.Notice {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.claimed
	q.claimed = nil
	return list
}

// reserveClaim reserves slots for a claim of due notices. If no more are known to be
// due, it leaves as many for notices stored meanwhile.
func (q *Queue) reserveClaim() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	free := q.pool.Free()
	switch {
	case !q.backlog.Worth(free, q.pool.Size()):
		return 0
	case !q.backlog.More:
		free = (free + 1) / 2
	}
	return q.pool.Reserve(free)
}

// slots are the slots of each account for queries.
type slots struct {
	mu sync.Mutex
	of map[string]chan struct{}
}

func (s *slots) get(account string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[account] == nil {
		s.of[account] = make(chan struct{}, querySlots)
	}
	return s.of[account]
}

// noteClaim records whether more notices are due than a claim took.
func (q *Queue) noteClaim(more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.backlog.More = more
}

// Wait returns when no notice is being applied and no feed is being read.
func (s *Service) Wait() {
	s.Queue.pool.Wait()
	s.feeds.Wait()
}

// Record stores a verified notice as received, before it is answered. A notice with
// the id of a stored one is not stored again, unless the processor uses an id for several
// notices: then each one is stored, under its id and one of ours.
func (s *Service) Record(ctx context.Context, processorName, noticeID, headers string, body []byte) error {
	if proc := s.Processors.Find(processorName); proc != nil && proc.Profile().NoticeIDsRepeat {
		noticeID += "/" + payment.ID(s.Env.IDs.NewID(s.Env.Clock.Now())).String()
	}
	return s.Writer.Do(ctx, &record{s.Store.NewNotice(store.Notice{Processor: processorName, ID: noticeID, Headers: headers, Body: body})})
}

// record is the operation that stores a notice.
type record struct{ notice *store.NewNotice }

// Merchant implements [write.Operation].
func (v *record) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *record) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *record) Needs(n *store.Needs) { n.InsertNotice(v.notice) }

// Decide implements [write.Operation].
func (v *record) Decide(*store.Loaded, *store.Changes) error { return nil }
