package write_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// An operation that fails in any way has no effect and gets its error; other operations of
// its batch do not fail.
func TestOthersOfTheBatchDoNotFail(t *testing.T) {
	changed := func(end func(l *store.Loaded, c *store.Changes) error) func(name string) *work {
		return func(name string) *work {
			op := sets(name)
			op.decide = func(l *store.Loaded, c *store.Changes) error {
				c.SetSetting(name, "done")
				return end(l, c)
			}
			return op
		}
	}
	unchanged := func(end func() error) func(string) *work {
		return func(string) *work {
			return &work{decide: func(*store.Loaded, *store.Changes) error { return end() }}
		}
	}
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		for name, fails := range map[string]func(name string) *work{
			"refusal":              unchanged(func() error { return problem.New(problem.InvalidState, "not now") }),
			"error":                unchanged(func() error { return errBroken }),
			"panic":                unchanged(func() error { panic("a bug") }),
			"error after a change": changed(func(*store.Loaded, *store.Changes) error { return errBroken }),
			"panic after a change": changed(func(*store.Loaded, *store.Changes) error { panic("a bug") }),
			"conflict when it is saved": changed(func(_ *store.Loaded, c *store.Changes) error {
				c.SetSend(store.Send{Merchant: g.Merchant.ID, Payout: payment.ID{1}, Number: 1, Outcome: store.SendPaid})
				return nil
			}),
			"a row that the database refuses": changed(func(_ *store.Loaded, c *store.Changes) error {
				c.AddReceipt(payment.Receipt{Merchant: g.Merchant.ID, ID: payment.ID{1}, Amount: -1})
				return nil
			}),
			"balances that were not asked for": changed(func(_ *store.Loaded, c *store.Changes) error {
				return c.Post(g.Merchant.ID, g.Merchant.ID, ledger.Fund(coretest.BankName, 1))
			}),
		} {
			errs := g.Writer.All(t.Context(), []write.Operation{sets(name + " first"), fails(name + " failed"), sets(name + " last")})
			if errs[0] != nil || errs[1] == nil || errs[2] != nil {
				t.Errorf("%s: answered %v", name, errs)
			}
			if !isSet(g, name+" first") || !isSet(g, name+" last") {
				t.Errorf("%s: another operation is not committed", name)
			}
			if isSet(g, name+" failed") {
				t.Errorf("%s: the failed operation had an effect", name)
			}
		}
	})
}

// Batches lock rows in one order, independent of the order of their operations: two batches
// with the same merchants, orders and accounts in opposite orders do not deadlock.
func TestBatchesDoNotDeadlock(t *testing.T) {
	g := coretest.New(t, "postgres")
	var orders []payment.Payin
	merchants := map[payment.ID]store.Merchant{}
	for range 6 {
		m := g.For(t).Merchant
		merchants[m.ID] = m
		orders = append(orders, g.Payin(m, "order", ""))
	}
	batch := func(orders []payment.Payin, round int) (ops []write.Operation) {
		for i, p := range orders {
			ops = append(ops, &work{merchant: p.Merchant, needs: func(n *store.Needs) {
				n.Payin(p.Merchant, p.ID)
				n.Balances(p.Merchant)
				n.InsertNotice(g.Store.NewNotice(store.Notice{Processor: coretest.BankName, ID: p.ID.String() + time.Duration(round).String()}))
			}, decide: func(l *store.Loaded, c *store.Changes) error {
				p, _ := l.Payin(p.Merchant, p.ID)
				p.Version++
				c.SetPayin(p)
				c.AddEvent(payment.Event{Merchant: p.Merchant, Type: payment.EventPayinUnderpaid, Subject: p.ID, Version: p.Version}, []byte("{}"), "")
				return c.Post(p.Merchant, p.ID, ledger.Fund(coretest.BankName, money.Cents(i+1)))
			}})
		}
		return ops
	}
	const rounds = 25
	backwards := slices.Clone(orders)
	slices.Reverse(backwards)
	g.Until(func() {
		var both sync.WaitGroup
		for _, list := range [][]payment.Payin{orders, backwards} {
			both.Go(func() {
				for i := range rounds {
					if err := errors.Join(g.Writer.All(t.Context(), batch(list, i))...); err != nil {
						t.Error(err)
					}
				}
			})
		}
		both.Wait()
	})
	for _, p := range orders {
		g.Merchant = merchants[p.Merchant]
		g.WantBalances(coretest.Opening+rounds*7, 0)
	}
	if n := deadlocks(g); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// The same applies to claims of unique keys: two processes get the same requests and notices
// in opposite orders.
func TestClaimsDoNotDeadlock(t *testing.T) {
	g := coretest.New(t, "postgres")
	g.Must(g.Merchants.Fund(t.Context(), g.Merchant, 1_000_000_00))
	other := g.Second()
	batch := func(g *coretest.Gateway, round int) (ops []write.Operation) {
		for i := range 60 {
			name := fmt.Sprint(round, "-", i)
			in, err := g.Payins.NewCreateOp(g.Merchant, coretest.PayinRequest(name, ""))
			g.Must(err)
			out, err := g.Payouts.NewRequestOp(g.Merchant, coretest.PayoutRequest(name, 1))
			g.Must(err)
			notice := runs(payment.ID{}, nothing)
			notice.needs = func(n *store.Needs) {
				n.InsertNotice(g.Store.NewNotice(store.Notice{Processor: coretest.BankName, ID: name}))
			}
			receive, err := g.Payins.NewReceive(t.Context(), coretest.BankName, in.Payin.ExternalID, processor.ChargeReport{
				Lookup: processor.Found, Payments: []processor.Payment{{ID: name, Amount: 100_00, PaidAt: g.Clock.Now()}},
			}, nil)
			g.Must(err)
			ops = append(ops, in, out, notice, receive)
		}
		return ops
	}
	const rounds = 10
	g.Until(func() {
		for i := range rounds {
			one, two := batch(g, i), batch(other, i)
			slices.Reverse(two)
			var both sync.WaitGroup
			for _, all := range []func() []error{
				func() []error { return g.Writer.All(t.Context(), one) },
				func() []error { return other.Writer.All(t.Context(), two) },
			} {
				both.Go(func() {
					if err := errors.Join(all()...); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		}
	})
	g.WantBalances(coretest.Opening+1_000_000_00+rounds*60*(100_00-1), rounds*60)
	g.WantProven()
	other.Must(other.Store.Close())
	if n := deadlocks(g); n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}

// deadlocks counts those that the server has resolved in the gateway's database. Its
// sessions report them when they end.
func deadlocks(g *coretest.Gateway) (n int) {
	g.T.Helper()
	g.Must(g.Store.Close())
	d, err := sql.Open("pgx", g.Database())
	g.Must(err)
	defer func() { g.Must(d.Close()) }()
	for sessions := 1; sessions > 0; {
		g.Must(d.QueryRowContext(g.T.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").Scan(&sessions))
	}
	g.Must(d.QueryRowContext(g.T.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n))
	return n
}

// A commit whose outcome is unknown runs again with the same ids: the request succeeds and
// has its effect once.
func TestUnknownCommitRunsAgain(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			var cuts *atomic.Int64
			coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
				var held money.Cents
				for _, amount := range []money.Cents{300_00, 600_00} { // of 1000.00 and of 700.00: the first would fit twice, the second not
					cuts.Store(2)
					var p payment.Payout
					var replayed bool
					var err error
					g.Until(func() {
						p, replayed, err = g.Payouts.Request(t.Context(), g.Merchant, coretest.PayoutRequest(amount.String(), int64(amount)))
					})
					if err != nil || replayed || p.Status != payment.PayoutPending || cuts.Load() != 0 {
						t.Errorf("%s: payout is %s, replayed %v, %v, %d cuts left", amount, p.Status, replayed, err, cuts.Load())
					}
					held += amount
					g.WantBalances(coretest.Opening-held, held)
					g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
				}
				cuts.Store(2)
				var in payment.Payin
				var replayed bool
				var err error
				g.Until(func() { in, replayed, err = g.Payins.Create(t.Context(), g.Merchant, coretest.PayinRequest("r", "")) })
				if err != nil || replayed || cuts.Load() != 0 {
					t.Errorf("pay-in %s, replayed %v, %v, %d cuts left", in.ID, replayed, err, cuts.Load())
				}
				g.WantPayin(in, payment.PayinPending, 0, 0)

				g.Heartbeat() // the clock was advanced meanwhile
				g.Bank.Receive(in.ExternalID, "pay-1", 100_00)
				cuts.Store(2)
				g.Until(func() {
					g.ReadFeeds()
					g.Heartbeat() // it releases the claims of unknown commits
					g.ReadFeeds()
				})
				g.WantPayin(in, payment.PayinPaid, 100_00, 1)
				g.WantBalances(coretest.Opening-held+100_00, held)
				g.WantEvents(payment.EventPayinPaid)
				g.WantProven()
			}, func(e *env.Env) { cuts = coretest.CutCommits(e, when) })
		})
	}
}

// If the database remains unavailable, the batch gives up and all its operations fail.
func TestUnknownCommitIsGivenUp(t *testing.T) {
	var cuts *atomic.Int64
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		cuts.Store(1000)
		var errs []error
		g.Until(func() { errs = g.Writer.All(t.Context(), []write.Operation{sets("a"), sets("b")}) })
		if !problem.Is(errs[0], problem.Unavailable) || !problem.Is(errs[1], problem.Unavailable) {
			t.Errorf("answered %v", errs)
		}
		if tries := 1000 - cuts.Load(); tries != 9 || isSet(g, "a") {
			t.Errorf("tried %d times; committed %v", tries, isSet(g, "a"))
		}
		cuts.Store(0)
	}, func(e *env.Env) { cuts = coretest.CutCommits(e, env.BeforeCommit) })
}
