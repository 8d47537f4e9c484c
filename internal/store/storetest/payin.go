package storetest

import (
	"errors"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var payinTests = []test{
	// Every commit reads, adds and writes: a lost change would show in the sum.
	{"concurrent changes of an order all count", func(s *suite) {
		const writers, rounds = 8, 10
		m := s.merchant()
		p, q := s.payin(m, "r"), s.payout(m, "r")
		s.add(p, q)
		s.concurrently(writers, func(int) error {
			for range rounds { // one commit for each order: the lock of one must not guard the other
				err := errors.Join(s.try(pay(p, 1)), s.try(setPayout(q, func(p *payment.Payout) { p.Lookups++ })))
				if err != nil {
					return err // a conflict, though the rows are locked
				}
			}
			return nil
		})
		const n = writers * rounds
		got, out := s.storedPayin(p), s.storedPayout(q)
		s.equal("changes and versions", values(int64(got.PaidAmount), got.Version, out.Lookups, out.Version), values(n, n+1, n, n+1))
	}},
	{"impossible amounts are refused", func(s *suite) {
		m := s.merchant()
		p, q := s.payin(m, "r"), s.payout(m, "r")
		s.add(p, q)
		for what, change := range map[string]func(p *payment.Payin){
			"paid below zero":              func(p *payment.Payin) { p.PaidAmount = -1 },
			"refunded beyond what is paid": func(p *payment.Payin) { p.PaidAmount, p.RefundedAmount = 5, 6 },
			"refunded below zero":          func(p *payment.Payin) { p.RefundedAmount = -1 },
		} {
			s.wantRefused(what, s.try(setPayin(p, change)))
		}
		for what, change := range map[string]func(p *payment.Payout){
			"returned beyond the amount": func(p *payment.Payout) { p.ReturnedAmount = p.Amount + 1 },
			"returned below zero":        func(p *payment.Payout) { p.ReturnedAmount = -1 },
		} {
			s.wantRefused(what, s.try(setPayout(q, change)))
		}
		free := s.payin(m, "free", func(p *payment.Payin) { p.Amount = 0 })
		s.wantRefused("an order of nothing", s.try(operation{needs: func(n *needs) { n.InsertPayin(free) }}))
		s.equal("versions", values(s.storedPayin(p).Version, s.storedPayout(q).Version), values(1, 1))
	}},
	{"expired pay-ins are due once", func(s *suite) {
		m, now := s.merchant(), s.now()
		expires := func(reference string, after time.Duration, status payment.PayinStatus) *store.NewPayin {
			return s.payin(m, reference, func(p *payment.Payin) { p.ExpiresAt, p.Status = now.Add(after), status })
		}
		late, later := expires("late", -time.Hour, payment.PayinPending), expires("later", 0, payment.PayinPending)
		s.add(expires("future", time.Microsecond, payment.PayinPending), later, late, expires("paid", -time.Hour, payment.PayinPaid))
		due := func(what string, limit int, want ...*store.NewPayin) {
			s.Helper()
			list := must(s.store.PayinsDue(s.Context(), now, limit))
			var refs []store.Ref
			for _, p := range want {
				refs = append(refs, store.Ref{Merchant: m.ID, ID: p.Payin.ID})
			}
			s.equal(what, list, refs)
		}
		due("due, oldest first", 10, late, later)
		due("the first", 1, late)
		s.commit(setPayin(late, func(p *payment.Payin) { p.Status = payment.PayinExpired }))
		due("due after one expired", 10, later)
		s.commit(setPayin(later, func(p *payment.Payin) { p.ExpiresAt = now.Add(time.Hour) }))
		due("due after one was prolonged", 10)
	}},
}

// storedPayin is a pay-in as it is stored.
func (s *suite) storedPayin(p *store.NewPayin) payment.Payin {
	return must(s.store.Payin(s.Context(), p.Payin.Merchant, p.Payin.ID))
}

// setPayin changes a pay-in, in its next version.
func setPayin(p *store.NewPayin, change func(p *payment.Payin)) operation {
	m, id := p.Payin.Merchant, p.Payin.ID
	return set(func(n *needs) { n.Payin(m, id) }, func(l *loaded) (payment.Payin, bool) { return l.Payin(m, id) },
		func(c *changes, v payment.Payin) { v.Version++; c.SetPayin(v) }, change)
}

// pay adds to the paid amount of a pay-in.
func pay(p *store.NewPayin, amount int64) operation {
	return setPayin(p, func(p *payment.Payin) { p.PaidAmount += cents(amount) })
}
