package storetest

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var commitTests = []test{
	{"a commit that fails or panics stores nothing", func(s *suite) {
		v := s.everything()
		s.wantError(s.try(v.operation, fail(errOnPurpose)), errOnPurpose)
		v.wantNothing("after an error of a decision")
		v = s.everything()
		s.wantRefused("a send of no payout", s.try(v.operation, addSends(s.send(s.payout(v.m, "never stored"), 1, s.id()))))
		v.wantNothing("after an error of the database")
		v = s.everything()
		func() {
			defer func() { s.equal("recovered", recover(), errOnPurpose) }()
			_ = s.try(v.operation, does(nil, func(*loaded, *changes) { panic(errOnPurpose) }))
		}()
		v.wantNothing("after a panic")
	}},
	{"a commit without needs or changes succeeds", func(s *suite) {
		out, err := s.tryWith(store.Capacity{}, does(nil, func(l *loaded, c *changes) {
			firstID, secondID := c.NewID(), c.NewID()
			s.equal("changes, time and ids", values(c.Len(), l.Now().IsZero(), firstID == secondID), values(0, false, false))
		}))
		s.must(err)
		s.equal("outcome", out, store.Outcome{})
	}},
	// The locks should make it impossible. The change of another order is undone.
	{"a row that changed behind its lock is a conflict, which undoes the commit", func(s *suite) {
		m := s.merchant()
		p, other, q := s.payin(m, "r"), s.payin(m, "other"), s.storedPayouts(m, "r")[0]
		s.add(p, other)
		d := s.dispute(m, m.Name)
		s.commit(addSends(s.send(q, 1, s.id())), addEvents(m, p.Payin.ID, 1, hook), moveDispute(d, "", "", nil))
		delivery := s.claimDeliveries(m, s.id(), 1)[0]
		var moved atomic.Int32
		var id payment.ID
		for text, op := range map[string]operation{
			"UPDATE payins SET version = 7 WHERE reference_id = 'r' AND merchant_id = $1": pay(p, 1),
			"UPDATE payouts SET version = 7 WHERE merchant_id = $1":                       setPayout(q, func(p *payment.Payout) { p.Lookups++ }),
			"DELETE FROM payout_sends WHERE merchant_id = $1":                             setSend(q, store.SendPaid, ""),
			"DELETE FROM deliveries WHERE merchant_id = $1":                               finish(delivery),
			"DELETE FROM disputes WHERE merchant_id = $1":                                 moveDispute(d, "OPEN", "WON", &moved),
		} {
			tries := 0
			err := s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
				tries++
				behind := operation{decide: func(*loaded, *changes) error { _, err := tx.Exec(s.Context(), text, m.ID[:]); return err }}
				return s.apply(tx, pay(other, 1), openCase(m, store.CaseOverpaid, m.ID, &id), behind, op)
			})
			s.wantError(err, store.ErrConflict)
			s.equal(text+": tries, versions and cases", values(tries, s.storedPayin(p).Version, s.storedPayin(other).Version, s.storedPayout(q).Version, len(s.openCases(m))),
				values(1, 1, 1, 1, 0))
		}
	}},
	{"an unknown commit is repeated, and stores everything once", func(s *suite) {
		for at, want := range map[env.Failpoint][]int{env.BeforeCommit: nothing, env.AfterCommit: storedOnce} {
			v := s.everything()
			s.unknownAt.Store(&at)
			s.wantError(s.try(v.operation), store.ErrCommitUnknown)
			s.unknownAt.Store(nil)
			s.equal("stored, "+string(at), v.count(), want)
			s.commit(v.operation)
			v.wantStored("repeated, " + string(at))
		}
	}},
	// The log has a line if a transaction had to run again.
	{"a commit that must run again starts from the beginning", func(s *suite) {
		v, before, tries := s.everything(), s.retries.Load(), 0
		s.commit(v.operation, operation{decide: func(*loaded, *changes) error {
			if tries++; tries < 3 {
				return fmt.Errorf("run again: %w", db.ErrRetry)
			}
			return nil
		}})
		s.equal("tries, and lines in the log", values(tries, s.retries.Load()-before), values(3, 2))
		v.wantStored("after it ran again")
		s.wantError(s.try(fail(db.ErrRetry)), store.ErrUnavailable)
	}},
	// Commits with the same needs in opposite orders never deadlock: none has
	// to run again.
	{"concurrent commits lock rows in one order", func(s *suite) {
		const rounds, n = 8, 40
		merchants := []store.Merchant{s.merchant(), s.merchant()}
		var ops []operation
		var orders []*store.NewPayin
		for i := range n {
			m := merchants[i%2]
			p, q := s.payin(m, fmt.Sprint(i)), s.storedPayouts(m, fmt.Sprint(i))[0]
			s.add(p)
			orders = append(orders, p)
			ops = append(ops, pay(p, 1), setPayout(q, func(p *payment.Payout) { p.Lookups++ }), post(m, ledger.Receive("bank", 2, 1)), addEvents(m, m.ID, 1, ""))
		}
		s.commit(ops...) // which opens the accounts
		before := s.retries.Load()
		for round := range rounds {
			s.concurrently(4, func(of int) error {
				list := slices.Clone(ops)
				var fresh []bool
				for i := range n { // each commit claims the same unique keys
					m, name := merchants[i%2], fmt.Sprint("round ", round, " ", i)
					list = append(list, s.create(s.payin(m, name), new(bool)), s.create(s.payout(m, name), new(bool)),
						receive(&fresh, s.receipt(m, name)), s.addNotices(m.Name, name))
				}
				if of%2 == 1 {
					slices.Reverse(list)
				}
				return s.try(list...)
			})
		}
		s.equal("commits that ran again", s.retries.Load()-before, 0)
		for _, p := range orders {
			s.equal("paid", s.storedPayin(p).PaidAmount, 1+4*rounds)
		}
	}},
	{"operations are part of a plain transaction", func(s *suite) {
		for _, end := range []error{errOnPurpose, nil} {
			v := s.everything()
			err := s.store.Administer(s.Context(), Operator, func(tx *store.AdminTx) error {
				s.must(s.apply(tx, v.operation))
				s.must(s.apply(tx, v.operation)) // which sees the first one
				s.must(tx.SetSetting(s.Context(), v.m.Name, "x"))
				return end
			})
			s.wantError(err, end)
			setting := must(s.store.Setting(s.Context(), v.m.Name))
			if s.equal("setting", setting, map[bool]string{true: "x"}[end == nil]); end == nil {
				v.wantStored("in a plain transaction")
			} else {
				v.wantNothing("in a plain transaction that fails")
			}
		}
	}},
	{"the outcome names the pay-ins that changed", func(s *suite) {
		m := s.merchant()
		p, other, q := s.payin(m, "1"), s.payin(m, "2"), s.payin(m, "3")
		s.add(p, other)
		out, err := s.tryWith(store.Capacity{}, pay(p, 1), pay(p, 1), s.create(q, new(bool)), operation{needs: func(n *needs) { n.Payin(m.ID, other.Payin.ID) }})
		s.must(err)
		s.equal("changed", slices.Compact(out.Payins), []store.Ref{{Merchant: m.ID, ID: p.Payin.ID}})
	}},
}

// everything is an operation that writes to each table, about one new merchant.
// Running it again is harmless.
type everything struct {
	*suite
	operation

	m store.Merchant
}

func (s *suite) everything() everything {
	m := s.merchant()
	p, q, r := s.payin(m, "r"), s.payout(m, "r"), s.receipt(m, "of "+m.Name)
	var fresh []bool
	var id payment.ID
	once := all(addEvents(m, p.Payin.ID, 2, hook), openCase(m, store.CaseOverpaid, p.Payin.ID, &id), pay(p, 1000), post(m, ledger.Receive("bank", 1000, 1)),
		setPayout(q, func(p *payment.Payout) { p.Lookups++ }), addSends(s.send(q, 1, s.id())))
	guarded := operation{once.needs, func(l *loaded, c *changes) error {
		if !l.Inserted(p.Payin.ID) || !l.Inserted(q.Payout.ID) {
			return nil
		}
		return once.decide(l, c)
	}}
	return everything{s, all(receive(&fresh, r), s.create(p, new(bool)), s.create(q, new(bool)), s.addNotices(m.Name, "n"), guarded), m}
}

// count counts its stored rows.
func (v *everything) count() []int {
	v.Helper()
	payouts := must(v.store.Payouts(v.Context(), v.m.ID, store.Filter{Limit: 10}))
	sends, version := 0, int64(0)
	for _, p := range payouts {
		list := must(v.store.Sends(v.Context(), v.m.ID, p.ID))
		sends, version = sends+len(list), version+p.Version
	}
	return []int{
		len(v.payins(v.m, store.Filter{})), len(payouts), sends, int(version), len(v.openCases(v.m)), len(v.postings(v.m)),
		len(v.receipts(v.m.ID, payment.ID{})), len(v.events(v.m)),
	}
}

var (
	storedOnce = []int{1, 1, 1, 2, 1, 3, 1, 2}
	nothing    = []int{0, 0, 0, 0, 0, 0, 0, 0}
)

// wantNothing expects no trace of it, and that it can be stored.
func (v *everything) wantNothing(why string) {
	v.Helper()
	v.equal(why, v.count(), nothing)
	v.wantDue(v.m, 0, 0)
	v.commit(v.operation)
	v.wantStored(why + ", stored")
}

// wantStored expects that it is stored once.
func (v *everything) wantStored(why string) {
	v.Helper()
	v.equal(why, v.count(), storedOnce)
	v.wantDue(v.m, 1, 2)
}

// apply is try within a plain transaction.
func (s *suite) apply(tx *store.AdminTx, ops ...operation) error {
	var n needs
	op := all(ops...)
	op.needs(&n)
	return tx.Apply(s.Context(), &n, op.decide)
}
