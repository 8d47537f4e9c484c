package store_test

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// orders is a merchant with a pay-in, a payout and what belongs to them, each with
// the id or number 1.
type orders struct {
	*testing.T

	s *store.Store
	m store.Merchant
}

var first = payment.ID{1}

func newOrders(t *testing.T, s *store.Store) *orders {
	t.Helper()
	v := &orders{T: t, s: s, m: createMerchant(t, s, "m")}
	write(t, s, func(tx *store.AdminTx) error { return tx.RegisterNode(t.Context(), first) })
	r := &payment.Receipt{Merchant: v.m.ID, ID: first, Processor: "bank", ExternalID: "1", Amount: 1, Applied: 1}
	must(t, commit(t, s, func(n *store.Needs) {
		n.InsertPayin(newPayin(t, s, &v.m, first, "r"))
		n.InsertPayout(newPayout(t, s, &v.m, first, "r"))
		n.Receipts(r)
		n.Dispute(v.m.ID, "bank", "1")
		n.Balances(v.m.ID)
	}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddReceipt(*r)
		c.AddSend(store.Send{Merchant: v.m.ID, Payout: first, Number: 1, Outcome: store.SendIntent})
		c.AddDispute(payment.Dispute{Merchant: v.m.ID, ID: first, Payin: first, Processor: "bank", ExternalID: "1", Amount: 1, Status: payment.DisputeOpen})
		c.AddEvent(payment.Event{Merchant: v.m.ID, Type: payment.EventPayinPaid, Subject: first}, []byte(`{}`), "https://a.example")
		return c.Post(v.m.ID, first, ledger.Fund("bank", 100))
	}))
	write(t, s, func(tx *store.AdminTx) error {
		return tx.ExecOne(t.Context(), "UPDATE deliveries SET id = $1", first[:])
	})
	return v
}

// needs reads everything of the orders.
func (v *orders) needs() *store.Needs {
	n := &store.Needs{}
	n.Payin(v.m.ID, first)
	n.Payout(v.m.ID, first)
	n.Sends(v.m.ID, first)
	n.Dispute(v.m.ID, "bank", "1")
	n.Delivery(v.m.ID, first)
	n.Heartbeat(first)
	n.Balances(v.m.ID)
	return n
}

// conflicts are changes that meet another state than was loaded. before is run
// between loading and saving; empty if the change itself is the error.
var conflicts = map[string]struct {
	before string
	change func(v *orders, l *store.Loaded, c *store.Changes)
}{
	"a pay-in of another version": {"UPDATE payins SET version = version + 1", func(v *orders, l *store.Loaded, c *store.Changes) {
		p, _ := l.Payin(v.m.ID, first)
		c.SetPayin(p)
	}},
	"a pay-in that is gone": {"DELETE FROM payins", func(v *orders, l *store.Loaded, c *store.Changes) {
		p, _ := l.Payin(v.m.ID, first)
		p.Version++
		c.SetPayin(p)
	}},
	"a payout of another version": {"UPDATE payouts SET version = version + 1", func(v *orders, l *store.Loaded, c *store.Changes) {
		p, _ := l.Payout(v.m.ID, first)
		p.Version++
		c.SetPayout(p)
	}},
	"a send that is gone": {"DELETE FROM payout_sends", func(v *orders, l *store.Loaded, c *store.Changes) { c.SetSend(l.Sends(v.m.ID, first)[0]) }},
	"a dispute that is gone": {"DELETE FROM disputes", func(v *orders, l *store.Loaded, c *store.Changes) {
		d, _ := l.Dispute(v.m.ID, "bank", "1")
		c.SetDispute(d)
	}},
	"a delivery that is gone": {"DELETE FROM deliveries", func(v *orders, l *store.Loaded, c *store.Changes) {
		d, _ := l.Delivery(v.m.ID, first)
		c.SetDelivery(d)
	}},
	"a node that is gone": {"DELETE FROM nodes", func(_ *orders, l *store.Loaded, c *store.Changes) {
		n, _ := l.Node(first)
		c.SetNode(n)
	}},
	"a send whose number is taken": {"UPDATE payout_sends SET outcome = 'refused'", func(v *orders, _ *store.Loaded, c *store.Changes) {
		c.AddSend(store.Send{Merchant: v.m.ID, Payout: first, Number: 1, Outcome: store.SendIntent})
	}},
	"a second undecided send": {"", func(v *orders, _ *store.Loaded, c *store.Changes) {
		c.AddSend(store.Send{Merchant: v.m.ID, Payout: first, Number: 2, Outcome: store.SendIntent})
	}},
	"a receipt that is stored": {"", func(v *orders, _ *store.Loaded, c *store.Changes) {
		c.AddReceipt(payment.Receipt{Merchant: v.m.ID, ID: first, Processor: "bank", ExternalID: "1", Amount: 1})
	}},
	"a dispute that is stored": {"", func(v *orders, _ *store.Loaded, c *store.Changes) {
		c.AddDispute(payment.Dispute{Merchant: v.m.ID, ID: payment.ID{2}, Payin: first, Processor: "bank", ExternalID: "1", Amount: 1, Status: payment.DisputeOpen})
	}},
}

// A change that meets another state than was loaded is ErrConflict, and nothing of
// its transaction is stored.
func TestConflicts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newOrders(t, s)
		for name, conflict := range conflicts {
			err := s.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error {
				return tx.Apply(t.Context(), v.needs(), func(l *store.Loaded, c *store.Changes) error {
					c.SetSetting(name, "stored")
					conflict.change(v, l, c)
					if conflict.before == "" {
						return nil
					}
					return tx.ExecOne(t.Context(), conflict.before)
				})
			})
			if !errors.Is(err, store.ErrConflict) {
				t.Errorf("%s: %v", name, err)
			}
			if value, err := s.Setting(t.Context(), name); value != "" || err != nil {
				t.Errorf("%s: its transaction is stored: %q, %v", name, value, err)
			}
		}
	})
}

// Accounts that changed behind the lock make the transaction run again: no posting
// continues from a balance that is not there.
func TestChangedBalancesRunAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newOrders(t, s)
		for name, text := range map[string]string{
			"another posting":   "UPDATE balances SET postings = postings + 1 WHERE account = 'available'",
			"another entry":     "UPDATE balances SET entry_number = entry_number + 1 WHERE account = 'available'",
			"a further account": "INSERT INTO balances SELECT merchant_id, 'fees', 0, 1, 0, entry_hash, 0 FROM balances WHERE account = 'available'",
		} {
			runs := 0
			must(t, s.Administer(t.Context(), storetest.Operator, func(tx *store.AdminTx) error {
				runs++
				return tx.Apply(t.Context(), v.needs(), func(_ *store.Loaded, c *store.Changes) error {
					if runs == 1 {
						must(t, tx.ExecOne(t.Context(), text))
					}
					return c.Post(v.m.ID, first, ledger.Fund("bank", 100))
				})
			}))
			if runs != 2 {
				t.Errorf("%s: %d runs, want 2", name, runs)
			}
		}
		if b, err := s.Balances(t.Context(), v.m.ID); b[ledger.Available] != 400 || b[ledger.Clearing("bank")] != -400 || err != nil {
			t.Errorf("the balances are %v, %v", b, err)
		}
		if rows := query[int64](t, s, "SELECT balance_after FROM postings WHERE account = 'available' ORDER BY entry_id"); len(rows) != 4 || rows[3] != 400 {
			t.Errorf("the postings end at %v", rows)
		}
	})
}

// An account that two transactions open at the same time is opened once.
func TestAccountOpenedTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m")
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				errs <- commit(t, s, func(n *store.Needs) { n.Balances(m.ID) }, func(_ *store.Loaded, c *store.Changes) error {
					return c.Post(m.ID, first, ledger.Fund("other", 5))
				})
			}()
		}
		for range cap(errs) {
			must(t, <-errs)
		}
		if b, err := s.Balances(t.Context(), m.ID); b[ledger.Clearing("other")] != -40 || b[ledger.Available] != 40 || err != nil {
			t.Errorf("the balances are %v, %v", b, err)
		}
	})
}

// Every version of a row is written, even if it changes twice in one commit, and a
// later decision sees earlier changes.
func TestTwoChangesOfARow(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newOrders(t, s)
		ctx, m := t.Context(), v.m.ID
		n := v.needs()
		second := newPayin(t, s, &v.m, payment.ID{2}, "second")
		n.InsertPayin(second)
		_, err := s.Commit(ctx, n, store.Capacity{}, func(l *store.Loaded, c *store.Changes) error {
			for run := range 2 {
				p, _ := l.Payin(m, first)
				q, _ := l.Payout(m, first)
				d, _ := l.Dispute(m, "bank", "1")
				delivery, _ := l.Delivery(m, first)
				send := l.Sends(m, first)[0]
				node, _ := l.Node(first)
				wantRun(t, run, p.Version, q.Version, int64(delivery.Attempts+1), node.Heartbeat, int64(len(d.Status)-3), int64(len(send.Evidence)+1))
				p.Version, q.Version, delivery.Attempts, node.Heartbeat = p.Version+1, q.Version+1, delivery.Attempts+1, node.Heartbeat+1
				d.Status, send.Evidence = d.Status+"+", send.Evidence+"+"
				c.SetPayin(p)
				c.SetPayout(q)
				c.SetDispute(d)
				c.SetDelivery(delivery)
				c.SetSend(send)
				c.SetNode(node)
				c.SetSetting("name", send.Evidence)
				must(t, c.Post(m, first, ledger.Fund("bank", 1)))
				wantRun(t, run, int64(l.Balances(m)[ledger.Available])-100)
			}
			p, _ := l.Payin(m, payment.ID{2}) // of a row that changes once
			p.Version++
			c.SetPayin(p)
			return nil
		})
		must(t, err)
		p, err1 := s.Payin(ctx, m, first)
		q, err2 := s.Payout(ctx, m, first)
		other, err3 := s.Payin(ctx, m, payment.ID{2})
		d, err4 := s.DisputeByExternalID(ctx, m, "bank", "1")
		sends, err5 := s.Sends(ctx, m, first)
		value, err6 := s.Setting(ctx, "name")
		must(t, errors.Join(err1, err2, err3, err4, err5, err6))
		if p.Version != 3 || q.Version != 3 || other.Version != 2 || d.Status != "OPEN++" || sends[0].Evidence != "++" || value != "++" {
			t.Errorf("stored: pay-ins in version %d and %d, payout in %d, dispute %s, send %+v, setting %s", p.Version, other.Version, q.Version, d.Status, sends[0], value)
		}
		for text, want := range map[string]int{"SELECT attempts FROM deliveries": 2, "SELECT heartbeat FROM nodes": 3, "SELECT balance FROM balances WHERE account = 'available'": 102} {
			if got := query[int](t, s, text)[0]; got != want {
				t.Errorf("%s: %d, want %d", text, got, want)
			}
		}
	})
}

// wantRun compares values that are 1 in the first of two runs and 2 in the second.
func wantRun(t *testing.T, run int, values ...int64) {
	t.Helper()
	for i, v := range values {
		if v != int64(run)+1 {
			t.Errorf("run %d: value %d is %d", run, i, v)
		}
	}
}

// Of two closings of a case in one commit that name the same the first stays; a case
// that the commit opens can be closed by its id and by its subject too.
func TestCaseClosings(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		m := createMerchant(t, s, "m").ID
		byID := func(c *store.Changes, id payment.ID) { c.CloseCase(m, id, store.ResolvedByProof) }
		byID2 := func(c *store.Changes, id payment.ID) { c.CloseCase(m, id, store.ResolvedByDelivery) }
		bySubject := func(c *store.Changes, _ payment.ID) {
			c.CloseCases(m, first, store.CaseNotice, store.ResolvedByNewCase)
		}
		bySubject2 := func(c *store.Changes, _ payment.ID) {
			c.CloseCases(m, first, store.CaseNotice, store.ResolvedByDelivery)
		}
		for name, c := range map[string]struct {
			close []func(*store.Changes, payment.ID)
			want  store.Resolution
		}{
			"by id":            {[]func(*store.Changes, payment.ID){byID}, store.ResolvedByProof},
			"by subject":       {[]func(*store.Changes, payment.ID){bySubject}, store.ResolvedByNewCase},
			"twice by id":      {[]func(*store.Changes, payment.ID){byID, byID2}, store.ResolvedByProof},
			"twice by subject": {[]func(*store.Changes, payment.ID){bySubject, bySubject2}, store.ResolvedByNewCase},
			"both":             {[]func(*store.Changes, payment.ID){byID, bySubject, byID2}, store.ResolvedByProof},
			"not":              {nil, ""},
		} {
			for _, opened := range []string{"in the same commit", "before"} {
				var id payment.ID
				open := func(c *store.Changes) {
					id = c.OpenCase(store.Case{Merchant: m, Kind: store.CaseNotice, Subject: first})
				}
				if opened == "before" {
					must(t, commit(t, s, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error { open(c); return nil }))
				}
				must(t, commit(t, s, func(*store.Needs) {}, func(_ *store.Loaded, changes *store.Changes) error {
					if opened != "before" {
						open(changes)
					}
					changes.OpenCase(store.Case{Merchant: m, Kind: store.CaseNotice, Subject: m}) // about another subject
					changes.OpenCase(store.Case{Merchant: m, Kind: store.CaseDispute, Subject: first})
					for _, f := range c.close {
						f(changes, id)
					}
					return nil
				}))
				if got := query[string](t, s, "SELECT resolution FROM cases WHERE id = $1", id[:]); len(got) != 1 || got[0] != string(c.want) {
					t.Errorf("%s, opened %s: resolution %q, want %q", name, opened, got, c.want)
				}
				if open, err := s.HasOpenCase(t.Context(), m, first, store.CaseNotice); open != (c.want == "") || err != nil {
					t.Errorf("%s, opened %s: open is %v, %v", name, opened, open, err)
				}
				write(t, s, func(tx *store.AdminTx) error {
					if n, err := tx.ExecCount(t.Context(), "DELETE FROM cases WHERE closed_at = 0 AND id <> $1", id[:]); n != 2 || err != nil {
						t.Errorf("%s, opened %s: %d other cases are open, %v", name, opened, n, err)
					}
					_, err := tx.Exec(t.Context(), "DELETE FROM cases")
					return err
				})
			}
		}
	})
}
