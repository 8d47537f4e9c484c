package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/endpoint"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/payout"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/refund"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/search"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// CoreOptions configure a Core.
type CoreOptions struct {
	Store      *store.Store
	Env        env.Env
	Processors processor.Accounts
	Log        *slog.Logger
	Marker     cluster.Marker
	// Links are the URLs of a pay-in's pages in events; nil omits them.
	Links transition.Links
	// Changed is called after a commit that changed a pay-in; it may be nil.
	Changed func(merchant, payin payment.ID)
	// Retention is the time for which ended deliveries are kept; 0 keeps them forever.
	Retention time.Duration
	// Wakers are the wakers of the workers; nil creates them.
	Wakers Wakers
	// Steps are the steps of the workers that are not about use cases.
	Steps AppSteps

	// For tests and simulations: Spawn starts each call, RecordOnce does not retry recording a
	// result, and Wait waits for the heartbeats of other processes.
	Spawn      worker.Spawn
	RecordOnce bool
	Wait       func(ctx context.Context, d time.Duration) error
}

// Core is the gateway without its faces: the use cases and their background workers.
type Core struct {
	Node       *cluster.Node
	Writer     *write.Writer
	Cluster    *cluster.Cluster
	Merchants  *merchant.Service
	Payins     *payin.Service
	Payouts    *payout.Service
	Refunds    *refund.Service
	Disputes   *dispute.Service
	Reviews    *review.Service
	Outgoing   *outgoing.Executor
	Notices    *notice.Service
	Deliveries *delivery.Service
	Endpoints  *endpoint.Service
	Search     *search.Service

	Workers []WorkerSpec

	queue *notice.Queue
	heads *ledgerHeads
}

// NewCore assembles the use cases and their workers; nothing runs yet.
func NewCore(o CoreOptions) *Core {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Links == nil {
		o.Links = func(*payment.Payin) payment.Links { return payment.Links{} }
	}
	if o.Wakers == nil {
		o.Wakers = NewWakers(nil)
	}
	c := &Core{Node: cluster.NewNode(o.Env.Clock), heads: &ledgerHeads{store: o.Store, log: o.Log}}
	c.queue = notice.NewQueue(c.Node, o.Wakers[WorkerNotices], o.Spawn)
	deliveries := delivery.NewQueue(c.Node, o.Wakers[WorkerDeliver])
	c.Writer = write.New(write.Options{
		Store: o.Store, Env: o.Env, Log: o.Log, Node: c.Node, Notices: c.queue, Deliveries: deliveries, Changed: o.Changed,
		Announced: func(merchants []payment.ID) { c.Endpoints.Announced(merchants) },
		Created:   func(orders []store.NewOrder) { c.Search.Created(orders) },
	})
	c.Search = search.New(search.Options{Store: o.Store, Writer: c.Writer, Env: o.Env})
	c.Endpoints = endpoint.New(endpoint.Options{
		Store: o.Store, Writer: c.Writer, Env: o.Env, Registry: endpoint.NewRegistry(o.Store, o.Env.Clock, o.Log),
		Waker: o.Wakers[WorkerDispatch], Dispatched: o.Wakers[WorkerDeliver],
	})
	c.Cluster = cluster.New(cluster.Options{
		Node: c.Node, Store: o.Store, Writer: c.Writer, Env: o.Env, Log: o.Log, Marker: o.Marker, Wait: o.Wait,
		Released: func(n store.Node) {
			for _, name := range []string{WorkerSend, WorkerLookUp, WorkerAnswer, WorkerCharge, WorkerNotices, WorkerFeeds, WorkerDeliver} {
				o.Wakers[name].Wake()
			}
			c.Search.CatchUp(n.Clock) // what the other process had created
		},
	})
	c.useCases(&o, deliveries)
	c.Workers = c.workers(&o)
	return c
}

// useCases assembles the use cases.
func (c *Core) useCases(o *CoreOptions, deliveries *delivery.Queue) {
	recorder := worker.Recorder{Env: o.Env, Log: o.Log, Once: o.RecordOnce}
	c.Merchants = merchant.New(merchant.Options{Store: o.Store, Env: o.Env, Processors: o.Processors, Author: actor.Author{Actor: actor.System}})
	c.Payins = payin.New(payin.Options{
		Store: o.Store, Writer: c.Writer, Env: o.Env, Processors: o.Processors, Log: o.Log, Links: o.Links,
		Wanted: c.Endpoints.Registry.Wants, Node: c.Node, Recorder: recorder, ChargeWaker: o.Wakers[WorkerCharge], Spawn: o.Spawn,
	})
	c.Payouts = payout.New(payout.Options{
		Store: o.Store, Writer: c.Writer, Env: o.Env, Processors: o.Processors, RestoredAt: c.Node.RestoredAt, ProvedAt: c.Node.ProvedAt, Epoch: c.Node.Epoch,
		Frozen: c.Node.Frozen, History: c.Node.History, Wanted: c.Endpoints.Registry.Wants, Requested: o.Wakers[WorkerSend].Wake,
	})
	c.Refunds = refund.New(refund.Options{
		Store: o.Store, Writer: c.Writer, Env: o.Env, Processors: o.Processors, Frozen: c.Node.Frozen, History: c.Node.History, RestoredAt: c.Node.RestoredAt,
		Requested: o.Wakers[WorkerSend].Wake,
	})
	c.Disputes = dispute.New(dispute.Options{
		Store: o.Store, Writer: c.Writer, Env: o.Env, Links: o.Links, Answered: o.Wakers[WorkerAnswer].Wake,
	})
	c.Reviews = review.New(review.Options{Store: o.Store, Writer: c.Writer, Env: o.Env, Links: o.Links, Processors: o.Processors})
	c.Outgoing = outgoing.New(outgoing.Options{
		Store: o.Store, Writer: c.Writer, Node: c.Node, Env: o.Env, Processors: o.Processors, Log: o.Log, Recorder: recorder,
		SendWaker: o.Wakers[WorkerSend], LookUpWaker: o.Wakers[WorkerLookUp], AnswerWaker: o.Wakers[WorkerAnswer], Spawn: o.Spawn, Links: o.Links,
	})
	c.Notices = notice.New(notice.Options{
		Store: o.Store, Writer: c.Writer, Queue: c.queue, Payins: c.Payins, Transfers: c.Outgoing, Refunds: c.Refunds, Env: o.Env,
		Processors: o.Processors, Log: o.Log, Recorder: recorder, FeedWaker: o.Wakers[WorkerFeeds], ClearedWaker: o.Wakers[WorkerHeartbeat], Spawn: o.Spawn,
	})
	c.Deliveries = delivery.New(delivery.Options{
		Store: o.Store, Writer: c.Writer, Queue: deliveries, Env: o.Env, Log: o.Log, Recorder: recorder, Retention: o.Retention, Spawn: o.Spawn,
		Endpoints: c.Endpoints.Registry, Attempted: o.Wakers[WorkerDispatch], Ranges: o.Wakers[WorkerRanges],
	})
}

// Wait waits until no call of the workers is in flight.
func (c *Core) Wait() {
	c.Outgoing.Wait()
	c.Payins.Wait()
	c.Notices.Wait()
	c.Deliveries.Wait()
}

// Leave releases the claims of this process, for a clean shutdown. complete means that nothing of it
// is in flight.
func (c *Core) Leave(ctx context.Context, complete bool) error {
	c.Node.Lease.Drop()
	c.Deliveries.Leave(ctx)
	return c.Cluster.Leave(ctx, complete)
}
