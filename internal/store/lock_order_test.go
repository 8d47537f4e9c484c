package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// locking is a database with two of each kind of row.
type locking struct {
	*testing.T

	s          *store.Store
	ids        *env.IDs
	merchants  []store.Merchant
	payins     []payment.Payin
	payouts    []payment.Payout
	deliveries []payment.ID
	cases      []payment.ID
	undo       atomic.Bool  // each commit
	reruns     atomic.Int64 // of transactions
}

// lockedRow is how operations name one of two rows, before the transaction, and
// change it.
type lockedRow struct {
	need   func(v *locking, n *store.Needs, i int)
	change func(v *locking, c *store.Changes, i int)
}

var lockedRows = map[string]lockedRow{
	"pay-ins": {need: func(v *locking, n *store.Needs, i int) { n.Payin(v.merchants[0].ID, v.payins[i].ID) }},
	"pay-ins by external id": {need: func(v *locking, n *store.Needs, i int) {
		n.PayinByExternalID(v.merchants[0].ID, v.payins[i].ExternalID)
	}},
	"payouts": {need: func(v *locking, n *store.Needs, i int) { n.Payout(v.merchants[0].ID, v.payouts[i].ID) }},
	"payouts by external id": {need: func(v *locking, n *store.Needs, i int) {
		n.PayoutByExternalID(v.merchants[0].ID, v.payouts[i].ExternalID)
	}},
	"disputes":   {need: func(v *locking, n *store.Needs, i int) { n.Dispute(v.merchants[0].ID, "bank", fmt.Sprint(i)) }},
	"deliveries": {need: func(v *locking, n *store.Needs, i int) { n.Delivery(v.merchants[0].ID, v.deliveries[i]) }},
	"balances":   {need: func(v *locking, n *store.Needs, i int) { n.Balances(v.merchants[i].ID) }},
	"new pay-ins": {need: func(v *locking, n *store.Needs, i int) {
		n.InsertPayin(newPayin(v.T, v.s, &v.merchants[0], v.id(), fmt.Sprintf("new %d", i)))
	}},
	"new payouts": {need: func(v *locking, n *store.Needs, i int) {
		n.InsertPayout(newPayout(v.T, v.s, &v.merchants[0], v.id(), fmt.Sprintf("new %d", i)))
	}},
	"receipts": {need: func(v *locking, n *store.Needs, i int) {
		n.Receipts(&payment.Receipt{Merchant: v.merchants[0].ID, ID: v.id(), Processor: "bank", ExternalID: fmt.Sprint(i), Amount: 1})
	}},
	"notices": {need: func(v *locking, n *store.Needs, i int) {
		n.InsertNotice(v.s.NewNotice(store.Notice{Processor: "bank", ID: fmt.Sprint(i)}))
	}},
	"feeds": {need: func(_ *locking, n *store.Needs, i int) {
		k := store.FeedKey{Account: "bank", Feed: fmt.Sprint(i)}
		n.NewFeed(store.Feed{FeedKey: k})
		n.Feed(k)
	}},
	"charges": {need: func(v *locking, n *store.Needs, i int) { n.Charge(v.merchants[0].ID, v.payins[i].ID) }},
	"charges of names": {need: func(v *locking, n *store.Needs, i int) {
		n.PayinByExternalID(v.merchants[0].ID, v.payins[i].ExternalID)
		n.ChargeByExternalID(v.merchants[0].ID, v.payins[i].ExternalID)
	}},
	"found transfers": {need: func(v *locking, n *store.Needs, i int) { n.FoundTransfer(v.merchants[i].ID, fmt.Sprint(i)) }},
	"events": {change: func(v *locking, c *store.Changes, i int) {
		c.AddEvent(payment.Event{Merchant: v.merchants[i].ID, Type: payment.EventPayinPaid}, []byte("{}"), "")
	}},
	"first entries": {
		need: func(v *locking, n *store.Needs, i int) { n.Balances(v.merchants[2+i].ID) },
		change: func(v *locking, c *store.Changes, i int) {
			must(v.T, c.Post(v.merchants[2+i].ID, payment.ID{}, ledger.Fund("bank", 5)))
		},
	},
	"cases": {change: func(v *locking, c *store.Changes, i int) {
		c.CloseCase(v.merchants[0].ID, v.cases[i], store.ResolvedByProof)
	}},
	"cases by id": {need: func(v *locking, n *store.Needs, i int) { n.Case(v.merchants[0].ID, v.cases[i]) }},
	"cases by subject": {change: func(v *locking, c *store.Changes, i int) {
		c.CloseCases(v.merchants[0].ID, v.payins[i].ID, store.CaseNotice, store.ResolvedByProof)
	}},
	"settings": {change: func(_ *locking, c *store.Changes, i int) { c.SetSetting(fmt.Sprint(i), "new") }},
}

// races is how often each race is run: of two transactions that wait for the same
// one, either may continue first.
const races = 4

// Two commits that lock the same two rows, named by their operations in opposite
// order, do not deadlock. A third transaction holds one of the rows until both wait,
// so that a deadlock could occur.
func TestOppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	v := newLocking(t)
	for name, row := range lockedRows {
		for held := range 2 {
			t.Run(fmt.Sprintf("%s, the lock of row %d held", name, held), func(t *testing.T) {
				v.T = t
				v.reruns.Store(0)
				for range races {
					v.race(row, held)
				}
				if n := v.reruns.Load(); n > 0 {
					t.Errorf("%d transactions ran again", n)
				}
			})
		}
	}
}

// race commits both orders while the lock of a row is held. All that they write is
// undone at COMMIT, for the next race.
func (v *locking) race(row lockedRow, held int) {
	var work sync.WaitGroup
	err := v.s.Administer(v.Context(), storetest.Operator, func(tx *store.AdminTx) error {
		if err := tx.Apply(v.Context(), v.needs(row, held), v.decide(row, held)); err != nil {
			return err
		}
		for waiting, order := range [][]int{{0, 1}, {1, 0}} {
			n, decide := v.needs(row, order...), v.decide(row, order...)
			work.Go(func() {
				if _, err := v.s.Commit(v.Context(), n, store.Capacity{}, decide); !errors.Is(err, errUndo) {
					v.Errorf("order %v: %v", order, err)
				}
			})
			v.awaitLocks(waiting + 1)
		}
		return errUndo // releases the lock
	})
	if !errors.Is(err, errUndo) {
		v.Error(err)
	}
	work.Wait()
}

// A claim of a due part of a refund and a commit about its pay-in lock both rows in one order,
// whichever comes first while a third transaction holds the refund.
func TestClaimsOfRefundsDoNotDeadlock(t *testing.T) {
	t.Parallel()
	v := newLocking(t)
	m, of := v.merchants[0].ID, v.addRefund()
	claim := func(n *store.Needs) {
		n.DueRefundParts(store.DueRefundParts{Account: "bank", Queue: store.ToSend, Limit: 10})
	}
	about := func(n *store.Needs) { n.RefundsOf(m, v.payins[0].ID) }
	for name, order := range map[string][]func(*store.Needs){"claim first": {claim, about}, "claim last": {about, claim}} {
		t.Run(name, func(t *testing.T) {
			v.T = t
			v.reruns.Store(0)
			var work sync.WaitGroup
			err := v.s.Transact(t.Context(), func(tx *store.Tx) error {
				var n store.Needs
				n.Refund(m, of)
				if err := tx.Apply(t.Context(), &n, v.decide(lockedRow{})); err != nil {
					return err
				}
				for i, needs := range order {
					var ended atomic.Bool
					work.Go(func() {
						defer ended.Store(true)
						var n store.Needs
						needs(&n)
						if _, err := v.s.Commit(t.Context(), &n, store.Capacity{}, v.decide(lockedRow{})); !errors.Is(err, errUndo) {
							t.Error(err)
						}
					})
					v.awaitLocksOr(i+1, &ended) // a claim skips a part that is locked
				}
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Error(err)
			}
			work.Wait()
			if n := v.reruns.Load(); n > 0 {
				t.Errorf("%d transactions ran again", n)
			}
		})
	}
}

// addRefund adds a refund of the first pay-in, with a part that is due.
func (v *locking) addRefund() payment.ID {
	m, id := v.merchants[0].ID, v.id()
	v.undo.Store(false)
	defer v.undo.Store(true)
	_, err := v.s.Commit(v.Context(), &store.Needs{}, store.Capacity{}, func(l *store.Loaded, c *store.Changes) error {
		c.AddRefund(payment.Refund{Merchant: m, ID: id, Payin: v.payins[0].ID, ExternalID: "refund", ReferenceID: "refund", Amount: 1, Status: payment.RefundPending, Version: 1}, nil,
			payment.RefundPart{Merchant: m, Refund: id, Number: 1, Payin: v.payins[0].ID, Processor: "bank", ExternalID: "part", Amount: 1, Effect: effect.Effect{State: effect.Queued, NextAt: l.Now()}})
		return nil
	})
	must(v.T, err)
	return id
}

func (v *locking) needs(row lockedRow, order ...int) *store.Needs {
	n := &store.Needs{}
	for _, i := range order {
		if row.need != nil {
			row.need(v, n, i)
		}
	}
	return n
}

func (v *locking) decide(row lockedRow, order ...int) func(*store.Loaded, *store.Changes) error {
	return func(_ *store.Loaded, c *store.Changes) error {
		for _, i := range order {
			if row.change != nil {
				row.change(v, c, i)
			}
		}
		return nil
	}
}

// awaitLocks returns when so many transactions wait for a lock.
func (v *locking) awaitLocks(want int) { v.Helper(); v.awaitLocksOr(want, new(atomic.Bool)) }

// awaitLocksOr is awaitLocks, unless the last of them has ended.
func (v *locking) awaitLocksOr(want int, ended *atomic.Bool) {
	v.Helper()
	const text = "SELECT count(*) FROM pg_sleep(0.001), pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	for began := time.Now(); query[int](v.T, v.s, text)[0] != want && !ended.Load(); {
		if time.Since(began) > 30*time.Second {
			v.Fatalf("there are not %d transactions that wait for a lock", want)
		}
	}
}

func (v *locking) id() payment.ID { return v.ids.NewID(time.Now()) }

var errUndo = errors.New("undo")

// rerunCounter is a log that counts the transactions that run again.
type rerunCounter struct{ n *atomic.Int64 }

func (r rerunCounter) Enabled(context.Context, slog.Level) bool { return true }
func (r rerunCounter) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r rerunCounter) WithGroup(string) slog.Handler            { return r }
func (r rerunCounter) Handle(_ context.Context, line slog.Record) error {
	if line.Message == "transaction is retried" {
		r.n.Add(1)
	}
	return nil
}

func newLocking(t *testing.T) *locking {
	t.Helper()
	v := &locking{T: t}
	e := systemEnv()
	v.ids = e.IDs
	e.OnFailpoint = func(f env.Failpoint) error {
		if f == env.BeforeCommit && v.undo.Load() {
			return errUndo
		}
		return nil
	}
	o := storetest.Prepare(t, "postgres", e)
	o.Log = slog.New(rerunCounter{&v.reruns})
	v.s = storetest.Open(t, o)
	for i := range 4 { // the last two have no accounts
		v.merchants = append(v.merchants, createMerchant(t, v.s, fmt.Sprint(i)))
	}
	m := &v.merchants[0]
	var n store.Needs
	for i := range 2 {
		p, q := newPayin(t, v.s, m, v.id(), fmt.Sprint(i)), newPayout(t, v.s, m, v.id(), fmt.Sprint(i))
		v.payins, v.payouts = append(v.payins, p.Payin), append(v.payouts, q.Payout)
		n.InsertPayin(p)
		n.InsertPayout(q)
		n.Dispute(m.ID, "bank", fmt.Sprint(i))
		n.Balances(v.merchants[i].ID)
	}
	_, err := v.s.Commit(t.Context(), &n, store.Capacity{}, func(_ *store.Loaded, c *store.Changes) error {
		for i := range 2 {
			subject := v.payins[i].ID
			c.AddCharge(store.Charge{Merchant: m.ID, Payin: subject, Number: 1, Account: "bank"})
			c.AddDispute(payment.Dispute{Merchant: m.ID, ID: c.NewID(), Payin: subject, Processor: "bank", ExternalID: fmt.Sprint(i), Amount: 1, Status: payment.DisputeOpen})
			c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: subject}, []byte("{}"), "https://a.example")
			c.AddEvent(payment.Event{Merchant: v.merchants[1].ID, Type: payment.EventPayinPaid}, []byte("{}"), "")
			v.cases = append(v.cases, c.OpenCase(store.Case{Merchant: m.ID, Kind: store.CaseNotice, Subject: subject}))
			c.SetSetting(fmt.Sprint(i), "")
			must(t, c.Post(v.merchants[i].ID, subject, ledger.Fund("bank", 5)))
		}
		return nil
	})
	must(t, err)
	for _, id := range query[[]byte](t, v.s, "SELECT id FROM deliveries") {
		v.deliveries = append(v.deliveries, payment.ID(id))
	}
	v.undo.Store(true)
	return v
}
