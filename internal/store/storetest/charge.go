package storetest

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var chargeTests = []test{
	{"a charge keeps all its fields, and its changes", func(s *suite) {
		want := filled(store.Charge{Merchant: s.merchant().ID, Payin: s.id(), Number: 1}, 1)
		s.commit(addCharges(want))
		sameFields(s, "charge", s.charge(want), want, "CreatedAt", "UpdatedAt")
		created := s.charge(want).CreatedAt
		want = filled(store.Charge{Merchant: want.Merchant, Payin: want.Payin, Number: 1, Account: want.Account, CreatedAt: created}, 1000)
		s.commit(setCharge(want, func(v *store.Charge) { *v = want }))
		sameFields(s, "changed charge", s.charge(want), want, "UpdatedAt")
		s.commit(setCharge(want, func(v *store.Charge) { v.NextAt = time.Time{} })) // for the other tests
		s.wantError(errorOf(s.store.ChargeOf(s.Context(), want.Merchant, s.id())), store.ErrNotFound)
	}},
	{"a pay-in has one charge of a number", func(s *suite) {
		v := store.Charge{Merchant: s.merchant().ID, Payin: s.id(), Number: 1}
		s.commit(addCharges(v), setCharge(v, func(v *store.Charge) { v.Outcome = "of the same commit" }))
		s.equal("outcome", s.charge(v).Outcome, "of the same commit")
		s.wantError(s.try(addCharges(v)), store.ErrConflict)
	}},
	{"a pay-in is tried at one account after another", func(s *suite) {
		first := store.Charge{Merchant: s.merchant().ID, Payin: s.id(), Number: 1, Account: "first", NextAt: s.past()}
		second := store.Charge{Merchant: first.Merchant, Payin: first.Payin, Number: 2, Account: "second"}
		s.commit(addCharges(first))
		s.commit(does(func(n *needs) { n.Charge(first.Merchant, first.Payin) }, func(l *loaded, c *changes) {
			v, _ := l.Charge(first.Merchant, first.Payin)
			v.NextAt, v.Outcome = time.Time{}, "refused"
			c.SetCharge(v)
			c.AddCharge(second)
			v, _ = l.Charge(first.Merchant, first.Payin)
			s.equal("the last one", v.Account, "second")
			v.Outcome = "of the same commit"
			c.SetCharge(v)
		}))
		s.commit(does(func(n *needs) { n.Charge(first.Merchant, first.Payin) }, func(l *loaded, _ *changes) {
			v, _ := l.Charge(first.Merchant, first.Payin)
			s.equal("loaded", values(v.Number, v.Outcome), values(int64(2), "of the same commit"))
			for account, tried := range map[string]bool{"first": true, "second": true, "third": false} {
				s.equal("tried at "+account, l.ChargedAt(first.Merchant, first.Payin, account), tried)
			}
		}))
		list := must(s.store.Charges(s.Context(), first.Merchant, first.Payin))
		s.equal("charges", values(len(list), list[0].Outcome, list[1].Outcome, s.charge(first).Number), values(2, "refused", "of the same commit", int64(2)))
	}},
	{"work on charges is due by account, and after its node died", func(s *suite) {
		m, node := s.merchant().ID, s.node()
		bank, other := s.Name(), s.Name()+" other"
		now := s.now()
		list := []store.Charge{
			{Account: bank, NextAt: now.Add(-time.Second), Number: 1}, {Account: bank, NextAt: s.later(), Number: 1},
			{Account: bank, Number: 1}, {Account: other, NextAt: now.Add(-time.Minute), Number: 1}, {Account: other, ClaimedBy: node, Number: 1},
		}
		for i := range list {
			list[i].Merchant, list[i].Payin = m, s.id()
		}
		s.commit(addCharges(list...))
		s.equal("accounts", must(s.store.AccountsWithCharges(s.Context(), s.env.Clock.Now())), []string{bank, other})
		var claimed, more []store.Charge
		s.commit(claimCharges(bank, node, 10, &claimed), claimCharges(other, s.id(), 10, &more))
		s.equal("claimed", values(len(claimed), claimed[0].Payin, len(more), more[0].Payin), values(1, list[0].Payin, 1, list[3].Payin))
		s.equal("accounts", len(must(s.store.AccountsWithCharges(s.Context(), s.env.Clock.Now()))), 0)
		s.equal("released", s.release(node), 2)
		s.commit(claimCharges(bank, s.id(), 10, &claimed), claimCharges(other, s.id(), 10, &more))
		s.equal("claimed", values(len(claimed), claimed[0].Payin, len(more), more[0].Payin), values(1, list[0].Payin, 1, list[4].Payin))
	}},
	{"work that is only a look-up is due by itself", func(s *suite) {
		m, account := s.merchant().ID, s.Name()
		var list []store.Charge
		for i, state := range []store.ChargeState{store.ChargeToCancel, store.ChargeFollowed, store.ChargeFollowed} {
			v := store.Charge{Merchant: m, Payin: s.id(), Number: 1, Account: account, State: state, NextAt: s.now().Add(time.Duration(i-10) * time.Second)}
			list = append(list, v)
		}
		s.commit(addCharges(list...))
		s.commit(does(func(n *needs) {
			n.FollowedCharges(account, 1)
			n.DueCharges(account, 10)
		}, func(l *loaded, c *changes) {
			followed := l.FollowedCharges(account)
			s.equal("followed", values(len(followed), followed[0].Payin), values(1, list[1].Payin))
			followed[0].NextAt = time.Time{}
			c.SetCharge(followed[0])
			s.equal("followed after its claim", len(l.FollowedCharges(account)), 0)
			due := l.DueCharges(account)
			s.equal("due", values(len(due), due[0].Payin, due[1].Payin), values(2, list[0].Payin, list[2].Payin))
		}))
	}},
	{"a charge scheduled by a clock that was ahead is due now", func(s *suite) {
		bank := s.Name()
		v := store.Charge{Merchant: s.merchant().ID, Payin: s.id(), Number: 1, Account: bank, NextAt: s.now().AddDate(1, 0, 0)}
		s.commit(addCharges(v))
		s.write(func(tx *store.AdminTx) error { return tx.RescheduleFuture(s.Context(), s.later(), 0) })
		var claimed []store.Charge
		s.commit(claimCharges(bank, s.id(), 10, &claimed))
		s.equal("claimed", len(claimed), 1)
	}},
}

func addCharges(list ...store.Charge) operation {
	return does(nil, func(_ *loaded, c *changes) {
		for _, v := range list {
			c.AddCharge(v)
		}
	})
}

func setCharge(v store.Charge, change func(v *store.Charge)) operation {
	return set(func(n *needs) { n.Charge(v.Merchant, v.Payin) }, func(l *loaded) (store.Charge, bool) { return l.Charge(v.Merchant, v.Payin) },
		(*changes).SetCharge, change)
}

func (s *suite) charge(v store.Charge) store.Charge {
	s.Helper()
	return must(s.store.ChargeOf(s.Context(), v.Merchant, v.Payin))
}

// claimCharges claims due charges of an account, and reports them.
func claimCharges(account string, node payment.ID, limit int, claimed *[]store.Charge) operation {
	return does(func(n *needs) { n.DueCharges(account, limit) }, func(l *loaded, c *changes) {
		*claimed = nil
		for _, v := range l.DueCharges(account) {
			v.NextAt, v.ClaimedBy = time.Time{}, node
			c.SetCharge(v)
			*claimed = append(*claimed, v)
		}
	})
}

func (s *suite) chargeQueue() claim {
	m, account := s.merchant(), s.Name()
	var list []store.Charge
	for range queueLength {
		list = append(list, store.Charge{Merchant: m.ID, Payin: s.id(), Number: 1, Account: account, NextAt: s.past()})
	}
	s.commit(addCharges(list...))
	return reporting(func(node payment.ID, limit int, list *[]store.Charge) operation {
		return claimCharges(account, node, limit, list)
	}, func(v store.Charge) any { return fmt.Sprint(v.Payin) })
}
