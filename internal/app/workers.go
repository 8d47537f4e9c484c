package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// WorkerSpec describes a background worker. Step runs every Every, and when it is woken.
type WorkerSpec struct {
	Name  string
	Step  worker.Step
	Every time.Duration
	// MaxBackoff bounds the wait after failures, and so the delay after the database
	// becomes available again.
	MaxBackoff time.Duration
	Waker      *worker.Waker
}

// The names of the workers.
const (
	WorkerHeartbeat = "heartbeat"
	WorkerSend      = "send-payouts"
	WorkerLookUp    = "look-up-payouts"
	WorkerAnswer    = "answer-disputes"
	WorkerRemind    = "remind-of-disputes"
	WorkerNotices   = "apply-notices"
	WorkerFeeds     = "read-feeds"
	WorkerCharge    = "charge-payins"
	WorkerExpire    = "expire-payins"
	WorkerUndecided = "expire-approvals"
	WorkerSettle    = "settle-receivables"
	WorkerDeliver   = "send-deliveries"
	WorkerDispatch  = "dispatch-events"
	WorkerEndpoints = "follow-endpoints"
	WorkerFailed    = "disable-endpoints"
	WorkerRanges    = "redeliver-events"
	WorkerBatches   = "complete-batches"
	WorkerSearch    = "index-orders"
	WorkerRemove    = "remove-deliveries"
	WorkerAnalyze   = "analyze-tables"
	WorkerHeads     = "log-ledgers"
	WorkerAccounts  = "follow-accounts"
	WorkerRegister  = "register-notices"
	WorkerCheck     = "check-credentials"
	WorkerClock     = "follow-clock"
	WorkerPages     = "wake-pages"
	WorkerBalances  = "read-balances"
)

// AppSteps are the steps of workers that an App adds to those of a Core. A nil step
// omits its worker.
type AppSteps struct {
	// Accounts opens accounts that are new or have changed.
	Accounts worker.Step
	// Check suspends accounts whose processors refuse the credentials, and resumes them.
	Check worker.Step
	// Register keeps the gateway registered for notices at banks of the sandbox.
	Register worker.Step
	// Clock applies the sandbox's clock offset, which another gateway may have moved.
	Clock worker.Step
	// Balances reads the money of accounts at their processors.
	Balances worker.Step
	// Pages wakes waiting pages after changes by other processes.
	Pages worker.Step
}

// table is all background workers of a process that has joined the cluster, in the order in
// which they start. The heartbeat starts before the workers that claim work: a claim needs
// a live node.
var table = []struct {
	name              string
	every, maxBackoff time.Duration
	step              func(c *Core, o *CoreOptions) worker.Step
}{
	{WorkerHeartbeat, time.Second, time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Cluster.KeepAlive }},
	{WorkerSend, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Outgoing.Send }},
	{WorkerLookUp, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Outgoing.LookUp }},
	{WorkerAnswer, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Outgoing.SendAnswers }},
	{WorkerRemind, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Disputes.Remind }},
	{WorkerNotices, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Notices.Apply }},
	{WorkerFeeds, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Notices.ReadFeeds }},
	{WorkerCharge, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Payins.Charge }},
	{WorkerExpire, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Payins.Expire }},
	{WorkerUndecided, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Payouts.Expire }},
	{WorkerSettle, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Payins.Settle }},
	{WorkerDeliver, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Deliveries.Send }},
	{WorkerDispatch, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Endpoints.Dispatch }},
	{WorkerEndpoints, time.Second, time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Endpoints.Follow }},
	{WorkerFailed, 5 * time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Endpoints.DisableFailed }},
	{WorkerRanges, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Deliveries.RedeliverRanges }},
	{WorkerBatches, time.Second, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Payouts.CompleteBatches }},
	{WorkerSearch, 500 * time.Millisecond, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.Search.Index }},
	{WorkerRemove, time.Second, 5 * time.Second, removeOld},
	{WorkerAnalyze, time.Second, 5 * time.Second, func(_ *Core, o *CoreOptions) worker.Step { return analyzeTables(o.Store, o.Log) }},
	{WorkerHeads, time.Minute, 5 * time.Second, func(c *Core, _ *CoreOptions) worker.Step { return c.heads.step }},
	{WorkerAccounts, time.Second, time.Second, func(_ *Core, o *CoreOptions) worker.Step { return o.Steps.Accounts }},
	{WorkerCheck, time.Second, 5 * time.Second, func(_ *Core, o *CoreOptions) worker.Step { return o.Steps.Check }},
	{WorkerRegister, 30 * time.Second, 30 * time.Second, func(_ *Core, o *CoreOptions) worker.Step { return o.Steps.Register }},
	{WorkerClock, time.Second, time.Second, func(_ *Core, o *CoreOptions) worker.Step { return o.Steps.Clock }},
	{WorkerBalances, time.Minute, 5 * time.Minute, func(_ *Core, o *CoreOptions) worker.Step { return o.Steps.Balances }},
	{WorkerPages, 1500 * time.Millisecond, 30 * time.Second, func(_ *Core, o *CoreOptions) worker.Step { return o.Steps.Pages }},
}

// workers returns the workers of the table that have a step.
func (c *Core) workers(o *CoreOptions) []WorkerSpec {
	var list []WorkerSpec
	for _, row := range table {
		if step := row.step(c, o); step != nil {
			list = append(list, WorkerSpec{Name: row.name, Step: step, Every: row.every, MaxBackoff: row.maxBackoff, Waker: o.Wakers[row.name]})
		}
	}
	return list
}

// Wakers are the wakers of the workers, by their names.
type Wakers map[string]*worker.Waker

// NewWakers returns the waker of each worker. hook, if not nil, is called when a worker
// is woken.
func NewWakers(hook func(worker string)) Wakers {
	wakers := Wakers{}
	for _, row := range table {
		var own func()
		if hook != nil {
			own = func() { hook(row.name) }
		}
		wakers[row.name] = worker.NewWaker(own)
	}
	return wakers
}

// Wake wakes all workers, as after a jump of the clock.
func (w Wakers) Wake() {
	for _, row := range table {
		w[row.name].Wake()
	}
}

// removeOld removes old deliveries and counters of limits.
func removeOld(c *Core, _ *CoreOptions) worker.Step {
	return func(ctx context.Context) (int, error) {
		_, err := c.Payouts.RemoveCounters(ctx)
		did, other := c.Deliveries.RemoveOld(ctx)
		return did, errors.Join(err, other)
	}
}

// analyzeTables refreshes the database's statistics of tables that have grown. One run
// is always enough, so it returns 0.
func analyzeTables(s *store.Store, log *slog.Logger) worker.Step {
	return func(ctx context.Context) (int, error) {
		n, err := s.AnalyzeGrown(ctx)
		if n > 0 {
			log.InfoContext(ctx, "refreshed the statistics of tables that have grown", "tables", n)
		}
		return 0, err
	}
}

// NewWorkers returns the workers, not yet started.
func (c *Core) NewWorkers(e env.Env, log *slog.Logger) []*worker.Worker {
	list := make([]*worker.Worker, len(c.Workers))
	for i, w := range c.Workers {
		list[i] = w.build(e, log)
	}
	return list
}

func (w *WorkerSpec) build(e env.Env, log *slog.Logger) *worker.Worker {
	return worker.New(worker.Options{
		Name: w.Name, Step: w.Step, Waker: w.Waker, Every: w.Every, MaxBackoff: w.MaxBackoff, Clock: e.Clock, Random: e.Random, Log: log,
	})
}
