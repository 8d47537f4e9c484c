package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// nothing is a decision that changes nothing.
func nothing(*store.Loaded, *store.Changes) error { return nil }

// A new order is fresh if its commit claimed its reference. One whose reference is
// taken is not, in the same commit or a later one, and the order that has it can be
// read with the fingerprint of its request.
func TestFreshOrders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m, other := createMerchant(t, s, "m"), createMerchant(t, s, "other")
		request := func(want []bool, ids ...payment.ID) {
			t.Helper()
			var payins []*store.NewPayin
			var payouts []*store.NewPayout
			for i, id := range ids {
				of := &m
				if i == len(ids)-1 { // the last is another merchant's
					of = &other
				}
				payins, payouts = append(payins, newPayin(t, s, of, id, "r")), append(payouts, newPayout(t, s, of, id, "r"))
			}
			must(t, commit(t, s, func(n *store.Needs) {
				for i := range ids {
					n.InsertPayin(payins[i])
					n.InsertPayout(payouts[i])
				}
			}, func(l *store.Loaded, _ *store.Changes) error {
				for i, id := range ids {
					p, fingerprint, found := l.PayinByExternalID(payins[i].Payin.Merchant, payins[i].Payin.ExternalID)
					if l.Inserted(id) != want[i] || !found || (p.ID == id) != want[i] || string(fingerprint) != "fingerprint of r" {
						t.Errorf("%v: fresh is %v; the reference has %v, %q, %v", id, l.Inserted(id), p.ID, fingerprint, found)
					}
					q, fingerprint, found := l.PayoutByExternalID(payouts[i].Payout.Merchant, payouts[i].Payout.ExternalID)
					if !found || (q.ID == id) != want[i] || string(fingerprint) != "fingerprint of r" || q.Beneficiary.PIXKey != "ana@example.com" {
						t.Errorf("%v: the payout's reference has %v, %q, %v", id, q, fingerprint, found)
					}
				}
				return nil
			}))
		}
		request([]bool{true, false, true}, payment.ID{1}, payment.ID{2}, payment.ID{3})
		request([]bool{false, false}, payment.ID{4}, payment.ID{5})
	})
}

// The same operations again, with the same ids, after a commit whose outcome is
// unknown: fresh if it was not stored, and stored once in either case.
func TestFreshAfterUnknownCommit(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e := systemEnv()
			var fail env.Failpoint
			e.OnFailpoint = func(f env.Failpoint) error {
				if f == fail {
					return errors.New("the connection broke here")
				}
				return nil
			}
			s := storetest.Open(t, storetest.Prepare(t, engine, e))
			m := createMerchant(t, s, "m")
			events := 0
			for _, at := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
				p, q := newPayin(t, s, &m, payment.ID{byte(len(at))}, string(at)), newPayout(t, s, &m, payment.ID{byte(len(at))}, string(at))
				r := &payment.Receipt{Merchant: m.ID, ID: payment.ID{9, byte(len(at))}, Processor: "bank", ExternalID: string(at), Amount: 1, Applied: 1}
				var fresh []bool
				run := func() error {
					return commit(t, s, func(n *store.Needs) {
						n.InsertPayin(p)
						n.InsertPayout(q)
						n.Receipts(r)
					}, func(l *store.Loaded, c *store.Changes) error {
						if fresh = []bool{l.Inserted(p.Payin.ID), l.Inserted(r.ID)}; fresh[0] {
							c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: p.Payin.ID}, []byte(`{}`), "")
							c.AddReceipt(*r)
						}
						return nil
					})
				}
				fail = at
				if err := run(); !errors.Is(err, store.ErrCommitUnknown) {
					t.Fatalf("%s: %v", at, err)
				}
				fail = ""
				must(t, run())
				if want := at == env.BeforeCommit; !slices.Equal(fresh, []bool{want, want}) {
					t.Errorf("%s: run again, fresh is %v", at, fresh)
				}
				if _, err := s.Payin(t.Context(), m.ID, p.Payin.ID); err != nil {
					t.Errorf("%s: %v", at, err)
				}
				events++
				if n, err := s.LastEvent(t.Context(), m.ID); n != int64(events) || err != nil {
					t.Errorf("%s: the last event has number %d, %v, want %d", at, n, err, events)
				}
			}
		})
	}
}

// A reference that an operation claims and releases is unused again, in the same
// commit and in later ones.
func TestReleasedReference(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		for run := range 2 {
			q := newPayout(t, s, &m, payment.ID{byte(run + 1)}, "r")
			must(t, commit(t, s, func(n *store.Needs) { n.InsertPayout(q) }, func(l *store.Loaded, c *store.Changes) error {
				if !l.Inserted(q.Payout.ID) {
					t.Errorf("run %d: the reference is taken", run)
				}
				c.ReleaseReference(q, nil)
				if _, _, found := l.PayoutByExternalID(m.ID, q.Payout.ExternalID); found || l.Inserted(q.Payout.ID) || c.Len() != 0 {
					t.Errorf("run %d: the payout is found after its release, or counts as a change", run)
				}
				return nil
			}))
			if _, err := s.Payout(t.Context(), m.ID, q.Payout.ID); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("run %d: %v", run, err)
			}
		}
	})
}

// An error of a decision undoes the claims and everything that was decided before.
func TestRefusedDecisionStoresNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		p := newPayin(t, s, &m, payment.ID{1}, "r")
		needs := func(n *store.Needs) { n.InsertPayin(p); n.Balances(m.ID) }
		err := commit(t, s, needs, func(_ *store.Loaded, c *store.Changes) error {
			must(t, c.Post(m.ID, p.Payin.ID, ledger.Fund("bank", 5)))
			c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid}, []byte(`{}`), "https://a.example")
			return errUndo
		})
		if err != errUndo {
			t.Errorf("the error became %v", err)
		}
		for _, table := range []string{"payins", "postings", "balances", "events", "event_counters", "deliveries"} {
			if n := countRows(t, s, table); n != 0 {
				t.Errorf("%s has %d rows", table, n)
			}
		}
		must(t, commit(t, s, needs, func(l *store.Loaded, _ *store.Changes) error {
			if !l.Inserted(p.Payin.ID) {
				t.Error("the reference is taken")
			}
			return nil
		}))
	})
}

// An event whose data is not a JSON object, and an entry of a merchant whose
// accounts were not loaded, are bugs that store nothing.
func TestFaultsOfDecisions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		err := commit(t, s, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error {
			c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid}, []byte(`[]`), "")
			return nil
		})
		if !errors.Is(err, payment.ErrEventData) {
			t.Errorf("an event without an object: %v", err)
		}
		err = commit(t, s, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error { return c.Post(m.ID, m.ID, ledger.Fund("bank", 5)) })
		if err == nil {
			t.Error("an entry of accounts that were not loaded was posted")
		}
		err = commit(t, s, func(n *store.Needs) { n.Balances(m.ID) }, func(_ *store.Loaded, c *store.Changes) error {
			return c.Post(m.ID, m.ID, ledger.HoldPayout(5, 0)) // of no money
		})
		if err == nil || countRows(t, s, "postings")+countRows(t, s, "events") != 0 {
			t.Errorf("an entry without its money: %v", err)
		}
	})
}

// countRows counts the rows of a table.
func countRows(t *testing.T, s *store.Store, table string) int {
	t.Helper()
	return query[int](t, s, "SELECT count(*) FROM "+table)[0]
}

// The outcome names the pay-ins that changed, and what was claimed; it is empty for
// a commit that changed nothing.
func TestOutcome(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		node := payment.ID{7}
		write(t, s, func(tx *store.AdminTx) error { return tx.RegisterNode(t.Context(), node) })
		p := newPayin(t, s, &m, payment.ID{1}, "r")
		must(t, commit(t, s, func(n *store.Needs) { n.InsertPayin(p) }, nothing))
		run := func(node payment.ID) store.Outcome {
			t.Helper()
			var n store.Needs
			n.Payin(m.ID, payment.ID{1})
			out, err := s.Commit(t.Context(), &n, store.Capacity{Node: node, Deliveries: map[payment.ID]int{m.ID: 1}}, func(l *store.Loaded, c *store.Changes) error {
				p, _ := l.Payin(m.ID, payment.ID{1})
				p.Version++
				c.SetPayin(p)
				for range 3 {
					c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: p.ID}, []byte(`{}`), "https://a.example")
				}
				return nil
			})
			must(t, err)
			return out
		}
		out := run(node)
		if !slices.Equal(out.Payins, []store.Ref{{Merchant: m.ID, ID: payment.ID{1}}}) {
			t.Errorf("changed %v", out.Payins)
		}
		if v := out.Claimed; v.Node != node || len(v.Deliveries) != 1 || v.DeliveriesDue[m.ID] != 2 || v.Deliveries[0].EventNumber != 1 || v.Deliveries[0].ClaimedBy != node ||
			len(v.Deliveries[0].Event.Body) == 0 || !v.Any() {
			t.Errorf("claimed %+v", v)
		}
		if v := run(payment.ID{8}).Claimed; len(v.Deliveries) != 0 || v.DeliveriesDue[m.ID] != 3 || v.Any() {
			t.Errorf("a node that is not registered claimed %+v", v)
		}
		var n store.Needs
		if out, err := s.Commit(t.Context(), &n, store.Capacity{}, nothing); err != nil || len(out.Payins) != 0 || out.Claimed.Any() {
			t.Errorf("a commit without changes: %+v, %v", out, err)
		}
	})
}
