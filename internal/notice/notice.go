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

// Limits of the notices of one account that are claimed at once, and of those that query its
// processor at a time: an account that hangs takes no slot of another. claimMax bounds the notices
// that one commit claims.
const (
	noticeSlots = 128
	querySlots  = 64
	claimMax    = 256
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
	DamagedPaidLate(p *payment.Payout, report *processor.TransferReport) (store.Case, bool)
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
	// ClearedWaker wakes the worker that learns that an account's lists were read; it may be nil.
	ClearedWaker *worker.Waker
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
// and the slots of each account for more. A notice that this process stores is claimed in
// the same commit if its account has a free slot and no older notice that is due.
type Queue struct {
	node  *cluster.Node
	pools *worker.Pools
	waker *worker.Waker

	mu       sync.Mutex
	backlogs map[string]*worker.Backlog // by account
	claimed  []store.Notice
}

// NewQueue returns an empty queue of a node, which wakes the worker that applies
// notices.
func NewQueue(node *cluster.Node, waker *worker.Waker, spawn worker.Spawn) *Queue {
	return &Queue{node: node, pools: worker.NewPools(noticeSlots, waker, spawn), waker: waker, backlogs: map[string]*worker.Backlog{}}
}

var _ write.Notices = (*Queue)(nil)

// backlog is an account's backlog; the caller holds the lock.
func (q *Queue) backlog(account string) *worker.Backlog {
	b := q.backlogs[account]
	if b == nil {
		b = &worker.Backlog{}
		q.backlogs[account] = b
	}
	return b
}

func (q *Queue) pool(account string) *worker.Pool { return q.pools.Of(account, noticeSlots) }

// Reserve implements [write.Notices].
func (q *Queue) Reserve(wanted map[string]int) map[string]int {
	if !q.node.Lease.Valid() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	reserved := make(map[string]int, len(wanted))
	for account, n := range wanted {
		if q.backlog(account).More {
			continue
		}
		if n = q.pool(account).Reserve(n); n > 0 {
			reserved[account] = n
		}
	}
	return reserved
}

// Free is the number of free slots of an account.
func (q *Queue) Free(account string) int { return q.pool(account).Free() }

// Accept implements [write.Notices].
func (q *Queue) Accept(reserved map[string]int, claimed []store.Notice, due map[string]int) {
	unused := reserved
	for i := range claimed {
		unused[claimed[i].Processor]--
	}
	for account, n := range unused {
		q.pool(account).Release(n)
	}
	q.mu.Lock()
	q.claimed = append(q.claimed, claimed...)
	for account := range due {
		q.backlog(account).More = true
	}
	q.mu.Unlock()
	if len(claimed)+len(due) > 0 {
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

// ready reports whether a claim of an account's notices is worth its commit, if some are due.
func (q *Queue) ready(account string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.worth(account)
}

// worth is ready for a caller that holds the lock.
func (q *Queue) worth(account string) bool {
	pool := q.pool(account)
	return q.backlog(account).Worth(pool.Free(), pool.Size())
}

// share is an account's part of a claim.
type share struct {
	account string
	limit   int // notices, each with a slot
	found   int // that were due, up to the limit
	claimed int // and could be opened
}

// reserveClaim reserves up to most slots to claim the notices of accounts that have due
// ones, in equal shares. If no more of an account are known to be due, it leaves as many
// slots for notices stored meanwhile. Accounts for which a claim is not worth its commit
// get no share.
func (q *Queue) reserveClaim(accounts []string, most int) (list []share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, account := range accounts {
		if q.worth(account) {
			list = append(list, share{account: account})
		} else {
			q.backlog(account).More = true
		}
	}
	for i := range list {
		v := &list[i]
		free := q.pool(v.account).Free()
		if !q.backlog(v.account).More {
			free = (free + 1) / 2
		}
		v.limit = q.pool(v.account).Reserve(min(free, (most+i)/len(list)))
	}
	return list
}

// endClaim releases the slots that a claim did not use, and records whether more notices
// are due than it took.
func (q *Queue) endClaim(list []share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, v := range list {
		q.pool(v.account).Release(v.limit - v.claimed)
		q.backlog(v.account).Claimed(v.limit, v.found)
	}
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

// Wait returns when no notice is being applied and no feed is being read.
func (s *Service) Wait() {
	s.Queue.pools.Wait()
	s.feeds.Wait()
}

// Record stores a verified notice as received, before it is answered. A notice with the id of a
// stored one is not stored again. If the processor uses an id for several notices, each one is
// stored, under its id and one of ours.
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
