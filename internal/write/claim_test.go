package write_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// queues counts reserved slots and records claims. It is the node too.
type queues struct {
	g     *coretest.Gateway
	limit int // slots of each kind; 0 for as many as are wanted
	notices, deliveries,
	reservedNotices, reservedDeliveries,
	due, unknown int
}

// ID implements [write.Node].
func (q *queues) ID() payment.ID { return q.g.Node.ID() }

// ClaimsUnknown implements [write.Node].
func (q *queues) ClaimsUnknown() {
	q.unknown++
	q.g.Node.ClaimsUnknown()
}

func (q *queues) slots(n int) int {
	if q.limit > 0 {
		return min(n, q.limit)
	}
	return n
}

// noticeQueue is queues as [write.Notices].
type noticeQueue struct{ *queues }

// Reserve implements [write.Notices].
func (q noticeQueue) Reserve(wanted map[string]int) map[string]int {
	reserved := map[string]int{}
	for account, n := range wanted {
		reserved[account] = q.slots(n)
		q.reservedNotices += reserved[account]
	}
	return reserved
}

// Accept implements [write.Notices].
func (q noticeQueue) Accept(reserved map[string]int, claimed []store.Notice, due map[string]int) {
	for n := range maps.Values(reserved) {
		q.reservedNotices -= n
	}
	q.notices += len(claimed)
	for n := range maps.Values(due) {
		q.due += n
	}
}

// deliveryQueue is queues as [write.Deliveries].
type deliveryQueue struct{ *queues }

// Reserve implements [write.Deliveries].
func (q deliveryQueue) Reserve(wanted map[payment.ID]int) map[payment.ID]int {
	reserved := map[payment.ID]int{}
	for m, n := range wanted {
		reserved[m] = q.slots(n)
		q.reservedDeliveries += reserved[m]
	}
	return reserved
}

// Accept implements [write.Deliveries].
func (q deliveryQueue) Accept(reserved map[payment.ID]int, claimed []store.Delivery, due map[payment.ID]int) {
	for n := range maps.Values(reserved) {
		q.reservedDeliveries -= n
	}
	q.deliveries += len(claimed)
	for n := range maps.Values(due) {
		q.due += n
	}
}

// claiming is a writer that claims for queues of a test.
func claiming(g *coretest.Gateway) (*write.Writer, *queues) {
	q := &queues{g: g}
	return write.New(write.Options{Store: g.Store, Env: g.Env, Log: g.Logger(), Node: q, Notices: noticeQueue{q}, Deliveries: deliveryQueue{q}}), q
}

// want compares how much was claimed; no slot may stay reserved.
func (q *queues) want(notices, deliveries, due int) {
	q.g.T.Helper()
	if q.notices != notices || q.deliveries != deliveries || q.due != due {
		q.g.T.Errorf("claimed %d notices and %d deliveries, %d are due; want %d, %d and %d", q.notices, q.deliveries, q.due, notices, deliveries, due)
	}
	if q.reservedNotices != 0 || q.reservedDeliveries != 0 {
		q.g.T.Errorf("%d and %d slots are still reserved", q.reservedNotices, q.reservedDeliveries)
	}
}

// creates creates a due notice and a due delivery of the merchant, and returns end's result.
func creates(g *coretest.Gateway, p payment.Payin, name string, end func() error) *work {
	return &work{merchant: p.Merchant, needs: func(n *store.Needs) {
		n.InsertNotice(g.Store.NewNotice(store.Notice{Processor: coretest.BankName, ID: name, Body: []byte(name)}))
		n.ExpectDeliveries(p.Merchant, 1)
	}, decide: func(_ *store.Loaded, c *store.Changes) error {
		e := payment.Event{Merchant: p.Merchant, Type: payment.EventPayinUnderpaid, Subject: p.ID, Version: 2}
		c.AddEvent(e, []byte("{}"), "https://shop.example/hook")
		return end()
	}}
}

func fine() error { return nil }

// due counts the notices and deliveries that any process could claim.
func due(g *coretest.Gateway) (notices, deliveries int) {
	g.T.Helper()
	none := errors.New("nothing is to be changed")
	var needs store.Needs
	needs.DueNotices(coretest.BankName, 1000)
	needs.DueDeliveries(g.Merchant.ID, 1000)
	err := g.Store.Transact(g.T.Context(), func(tx *store.Tx) error {
		return tx.Apply(g.T.Context(), &needs, func(l *store.Loaded, _ *store.Changes) error {
			notices, deliveries = len(l.DueNotices(coretest.BankName)), len(l.DueDeliveries(g.Merchant.ID))
			return none
		})
	})
	if !errors.Is(err, none) {
		g.T.Fatal(err)
	}
	return notices, deliveries
}

func wantDue(g *coretest.Gateway, notices, deliveries int) {
	g.T.Helper()
	if n, d := due(g); n != notices || d != deliveries {
		g.T.Errorf("%d notices and %d deliveries are due, want %d and %d", n, d, notices, deliveries)
	}
}

// Queues get the committed claims only; other reserved slots are released, once.
func TestQueuesGetWhatIsCommitted(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		w, q := claiming(g)
		p := g.Payin(g.Merchant, "order", "")
		all := func(ops ...write.Operation) []error { return w.All(t.Context(), ops) }
		g.Must(errors.Join(all(creates(g, p, "a", fine), creates(g, p, "b", fine))...))
		q.want(2, 2, 0)

		broken := func() error { return errBroken }
		panics := func() error { panic("a bug") }
		errs := all(creates(g, p, "c", fine), creates(g, p, "broken", broken), creates(g, p, "d", fine), creates(g, p, "panics", panics))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil || errs[3] == nil {
			t.Errorf("answered %v", errs)
		}
		q.want(4, 4, 0)
		wantDue(g, 0, 0)

		// A notice that is already stored is not claimed, and its slot is released.
		g.Must(errors.Join(all(creates(g, p, "a", fine))...))
		q.want(4, 5, 0)
	})
}

// Work beyond the reserved slots is due for any process.
func TestBeyondTheSlotsIsDue(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		w, q := claiming(g)
		q.limit = 2
		p := g.Payin(g.Merchant, "order", "")
		var ops []write.Operation
		for i := range 5 {
			ops = append(ops, creates(g, p, fmt.Sprint(i), fine))
		}
		g.Must(errors.Join(w.All(t.Context(), ops)...))
		q.want(2, 2, 6)
		wantDue(g, 3, 3)
	})
}

// A transaction that runs again after a lost race claims the work of its last run.
func TestRunAgainClaimsOnce(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		w, q := claiming(g)
		p := g.Payin(g.Merchant, "order", "")
		tries := 0
		g.Until(func() {
			g.Must(errors.Join(w.All(t.Context(), []write.Operation{creates(g, p, "a", func() error {
				if tries++; tries < 3 {
					return db.ErrRetry
				}
				return nil
			})})...))
		})
		if tries != 3 {
			t.Errorf("ran %d times", tries)
		}
		q.want(1, 1, 0)
		wantDue(g, 0, 0)
	})
}

// The claims of an unknown commit are unknown: the batch runs again, and the next heartbeat
// releases them.
func TestClaimsOfAnUnknownCommit(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			var cuts *atomic.Int64
			coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
				w, q := claiming(g)
				p := g.Payin(g.Merchant, "order", "")
				before := g.Node.ID()
				cuts.Store(2)
				g.Until(func() { g.Must(errors.Join(w.All(t.Context(), []write.Operation{creates(g, p, "n", fine)})...)) })
				if cuts.Load() != 0 || q.unknown != 2 {
					t.Fatalf("%d cuts are left, claims were unknown %d times", cuts.Load(), q.unknown)
				}
				if when == env.AfterCommit {
					q.want(0, 1, 0) // the notice is already stored, without a claim; there are three events
				} else {
					q.want(1, 1, 0)
				}
				wantDue(g, 0, 0)
				g.Heartbeat()
				if g.Node.ID() == before {
					t.Error("the node still has its old id")
				}
				if notices, deliveries := due(g); notices != 1 || deliveries == 0 {
					t.Errorf("after a heartbeat %d notices and %d deliveries are due", notices, deliveries)
				}
				// An unknown commit without claims does not matter.
				before = g.Node.ID()
				cuts.Store(2)
				g.Until(func() { g.Must(w.Do(t.Context(), sets("x"))) })
				g.Heartbeat()
				if q.unknown != 2 || g.Node.ID() != before {
					t.Error("joined again without a reason")
				}
			}, func(e *env.Env) { cuts = coretest.CutCommits(e, when) })
		})
	}
}

// A panic after the commit leaves no orphaned claims.
func TestPanicBehindTheCommit(t *testing.T) {
	var armed atomic.Bool
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		w, q := claiming(g)
		p := g.Payin(g.Merchant, "order", "")
		before := g.Node.ID()
		armed.Store(true)
		if err := w.Do(t.Context(), creates(g, p, "a", fine)); err == nil {
			t.Error("a panic returned no error")
		}
		q.want(0, 0, 0)
		g.Heartbeat()
		wantDue(g, 1, 1)
		if g.Node.ID() == before {
			t.Error("the node still has its old id")
		}
	}, func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == env.AfterCommit && armed.CompareAndSwap(true, false) {
				panic("a bug")
			}
			return nil
		}
	})
}

// A process that is not registered, or was declared dead, claims nothing.
func TestDeadNodeClaimsNothing(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		w, q := claiming(g)
		p := g.Payin(g.Merchant, "order", "")
		g.Must(g.Leave(context.Background(), true))
		g.Must(w.Do(t.Context(), creates(g, p, "a", fine)))
		q.want(0, 0, 2)
		wantDue(g, 1, 1)
	})
}

// A process without queues, such as a command of the operator, claims nothing.
func TestWriterWithoutANode(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		w := write.New(write.Options{Store: g.Store, Env: g.Env, Log: g.Logger()})
		g.Must(w.Do(t.Context(), creates(g, g.Payin(g.Merchant, "order", ""), "a", fine)))
		wantDue(g, 1, 1)
	})
}

// Changed pay-ins are reported after their commit, and only then.
func TestChangedPayinsAreReported(t *testing.T) {
	coretest.EachEngine(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		var changed []payment.ID
		q := &queues{g: g}
		w := write.New(write.Options{
			Store: g.Store, Env: g.Env, Log: g.Logger(), Node: q, Notices: noticeQueue{q}, Deliveries: deliveryQueue{q},
			Changed: func(merchant, payin payment.ID) {
				if got, err := g.Store.Payin(t.Context(), merchant, payin); err != nil || got.Status != payment.PayinCanceled {
					t.Errorf("reported before the commit: %s, %v", got.Status, err)
				}
				changed = append(changed, payin)
			},
		})
		g.Must(w.Do(t.Context(), g.Payins.NewCancel(p.Merchant, p.ID)))
		g.Must(w.Do(t.Context(), g.Payins.NewCancel(p.Merchant, p.ID))) // changes nothing
		if len(changed) != 1 || changed[0] != p.ID {
			t.Errorf("reported %v", changed)
		}
	})
}
