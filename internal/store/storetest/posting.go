package storetest

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var postingTests = []test{
	{"each posting has the balance of its merchant's account after it", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		s.commit(post(other, ledger.Fund("bank", 7)), post(m, ledger.Fund("bank", 100), ledger.HoldPayout(60, 1)), post(m, ledger.PayPayout("bank", 60, 1)))
		s.commit(post(m, ledger.Receive("bank", 50, 2)))
		s.wantBalances(other, ledger.Balances{ledger.Available: 7, ledger.Clearing("bank"): -7})
		s.wantBalances(m, ledger.Balances{ledger.Available: 87, ledger.Held: 0, ledger.Fees: 3, ledger.Clearing("bank"): -90})
		sums, kinds := map[payment.ID]money.Cents{}, map[ledger.Kind]bool{}
		for _, p := range s.postings(m) {
			sums[p.Entry] += p.Amount
			kinds[p.Kind] = true
			s.equal("subject, and whether it has a time", values(p.Subject, !p.CreatedAt.IsZero()), values(m.ID, true))
		}
		s.equal("entries and kinds", values(len(sums), len(kinds)), values(4, 4))
		for _, sum := range sums {
			s.equal("sum of an entry", sum, 0)
		}
	}},
	{"a refused entry posts nothing", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		s.commit(post(m, ledger.Fund("bank", 100)))
		s.wantError(s.try(post(m, ledger.HoldPayout(101, 0))), ledger.ErrInsufficient)
		s.wantError(s.try(post(m, ledger.HoldPayout(0, 0))), ledger.ErrMalformed)
		s.wantError(s.try(post(other, ledger.HoldPayout(1, 0))), ledger.ErrInsufficient)
		refused := does(nil, func(l *loaded, c *changes) {
			before := c.Len()
			s.wantError(c.Post(m.ID, m.ID, ledger.HoldPayout(500, 0)), ledger.ErrInsufficient)
			if c.Post(other.ID, m.ID, ledger.Fund("bank", 1)) == nil || l.Balances(other.ID) != nil {
				s.Error("posted to accounts that were not loaded")
			}
			s.equal("changes", c.Len(), before)
		})
		s.commit(refused, post(m, ledger.HoldPayout(40, 0)), refused) // others of its commit are not affected
		s.wantBalances(m, ledger.Balances{ledger.Available: 60, ledger.Held: 40, ledger.Clearing("bank"): -100})
		s.equal("postings", values(len(s.postings(m)), len(s.postings(other))), values(4, 0))
	}},
	{"concurrent entries add up", func(s *suite) {
		const writers, rounds = 16, 8
		m := s.merchant()
		s.concurrently(writers, func(int) (err error) {
			for i := 0; i < rounds && err == nil; i++ {
				err = s.try(post(m, ledger.Receive("bank", 10, 1), ledger.HoldPayout(2, 0)))
			}
			return err
		})
		const n = writers * rounds
		s.wantBalances(m, ledger.Balances{ledger.Available: n * 7, ledger.Held: n * 2, ledger.Fees: n, ledger.Clearing("bank"): -n * 10})
	}},
	// If the balance is enough for seven of twenty holds, seven succeed.
	{"concurrent holds never exceed the balance", func(s *suite) {
		m := s.merchant()
		s.commit(post(m, ledger.Fund("bank", 79)))
		var held atomic.Int32
		s.concurrently(20, func(int) error {
			err := s.try(post(m, ledger.HoldPayout(10, 1)))
			if err == nil {
				held.Add(1)
			} else if !errors.Is(err, ledger.ErrInsufficient) {
				return err
			}
			return nil
		})
		s.equal("holds", held.Load(), 7)
		s.wantBalances(m, ledger.Balances{ledger.Available: 2, ledger.Held: 77, ledger.Clearing("bank"): -79})
	}},
	{"an account that commits open at once is opened once", func(s *suite) {
		m := s.merchant()
		s.concurrently(4, func(int) error { return s.try(post(m, ledger.ReceiveUnapplied("bank", 5))) })
		s.wantBalances(m, ledger.Balances{ledger.Available: 0, ledger.Unapplied: 20, ledger.Clearing("bank"): -20})
	}},
	// Money received while a merchant's first debt is posted repays it: a commit that waited
	// for the balances must see accounts that were opened meanwhile.
	{"a debt that another commit opens is seen", func(s *suite) {
		for range 30 {
			m := s.merchant()
			s.commit(post(m, ledger.Fund("bank", 100)))
			s.concurrently(2, func(i int) error {
				return s.try(operation{func(n *needs) { n.Balances(m.ID) }, func(l *loaded, c *changes) error {
					b := l.Balances(m.ID)
					if i == 0 {
						return c.Post(m.ID, m.ID, ledger.OpenDispute(0, b[ledger.Available], 200))
					}
					err := c.Post(m.ID, m.ID, ledger.Receive("bank", 30, 0))
					if e, due := ledger.RepayOwed(b[ledger.Available], b[ledger.Owed]); due && err == nil {
						err = c.Post(m.ID, m.ID, e)
					}
					return err
				}})
			})
			s.wantBalances(m, ledger.Balances{ledger.Available: 0, ledger.Owed: -70, ledger.Disputed: 200, ledger.Clearing("bank"): -130})
		}
	}},
	// The clock of the process that wrote the last entry may have been ahead.
	{"times of entries never decrease, unless a clock was wrong by a day", func(s *suite) {
		m := s.merchant()
		s.commit(post(m, ledger.Fund("bank", 100)))
		ahead := func(by time.Duration) (was, is time.Time) {
			s.write(func(tx *store.AdminTx) error {
				return tx.ExecOne(s.Context(), "UPDATE balances SET entry_at = entry_at + $1 WHERE account = 'available' AND merchant_id = $2", by.Microseconds(), m.ID[:])
			})
			was = s.postings(m)[0].CreatedAt
			s.commit(post(m, ledger.HoldPayout(1, 0)))
			list := s.postings(m)
			return was.Add(by), list[len(list)-1].CreatedAt
		}
		was, is := ahead(time.Hour)
		s.equal("time after one that was ahead", is, was)
		if was, is := ahead(48 * time.Hour); !is.Before(was) {
			s.Errorf("an entry at %s follows one of a clock that was wrong", is)
		}
	}},
	{"balances have 64 bits", func(s *suite) {
		m := s.merchant()
		s.commit(post(m, ledger.Fund("bank", math.MaxInt64)))
		s.wantRefused("a sum beyond 64 bits", s.try(post(m, ledger.Fund("bank", 1))))
		s.wantBalances(m, ledger.Balances{ledger.Available: math.MaxInt64, ledger.Clearing("bank"): -math.MaxInt64})
	}},
}

// cents shortens amounts in tests.
func cents(n int64) money.Cents { return money.Cents(n) }

// post posts entries about a merchant itself.
func post(m store.Merchant, entries ...ledger.Entry) operation {
	return operation{func(n *needs) { n.Balances(m.ID) }, func(_ *loaded, c *changes) error {
		for _, e := range entries {
			if err := c.Post(m.ID, m.ID, e); err != nil {
				return err
			}
		}
		return nil
	}}
}

// wantBalances expects a merchant's balances. They must equal the sums of the
// postings, whose balances must form one chain from zero to each balance.
func (s *suite) wantBalances(m store.Merchant, want ledger.Balances) {
	s.Helper()
	balances := must(s.store.Balances(s.Context(), m.ID))
	s.equal("balances", balances, want)
	sums := ledger.Balances{ledger.Available: 0} // opened with the first account
	type link struct {
		account ledger.Account
		balance money.Cents
	}
	open := map[link]int{}
	for _, p := range s.postings(m) {
		sums[p.Account] += p.Amount
		open[link{p.Account, p.BalanceAfter - p.Amount}]--
		open[link{p.Account, p.BalanceAfter}]++
	}
	for account, balance := range balances {
		open[link{account, 0}]++
		open[link{account, balance}]--
	}
	for end, n := range open {
		if n != 0 {
			s.Errorf("postings to %s are not a chain at %d cents", end.account, end.balance)
		}
	}
	s.equal("sums of the postings", sums, balances)
	for _, p := range must(s.store.Verify(s.Context(), m.ID)) {
		if p.Check == "chain" && len(p.Defects) > 0 {
			s.Errorf("the chain of entries: %+v", p.Defects)
		}
	}
}

// postings reads all postings of a merchant, in small pages.
func (s *suite) postings(m store.Merchant) (all []store.Posting) {
	s.Helper()
	var last store.Posting
	for {
		page := must(s.store.Postings(s.Context(), m.ID, last, 7))
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		last = page[len(page)-1]
	}
}
