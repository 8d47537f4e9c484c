package storetest

import (
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var externalTests = []test{
	{"a reference is used once by a merchant and kind of order, also when a commit is repeated", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		p, q := s.payin(m, "r"), s.payout(m, "r")
		s.equal("first", s.add(p, q, s.payin(other, "r"), s.payout(other, "r")), []bool{true, true, true, true})
		s.equal("second", s.add(s.payin(m, "r"), s.payout(m, "r")), []bool{false, false})
		s.equal("the first again", s.add(p, q), []bool{false, false}) // as after an unknown commit
		got, f, err := s.store.PayinByExternalID(s.Context(), m.ID, p.Payin.ExternalID)
		s.must(err)
		s.equal("pay-in that has the reference", values(got.ID, f), values(p.Payin.ID, p.Fingerprint))
		out, f, err := s.store.PayoutByExternalID(s.Context(), m.ID, q.Payout.ExternalID)
		s.must(err)
		s.equal("payout that has the reference", values(out.ID, f), values(q.Payout.ID, q.Fingerprint))
	}},
	// One statement for many rows must not fail if two are equal.
	{"a reference is used once, within a commit", func(s *suite) {
		m := s.merchant()
		first := s.payin(m, "a")
		s.equal("fresh pay-ins", s.add(first, s.payin(m, "b"), s.payin(m, "a"), s.payin(m, "c"), s.payin(m, "a"), s.payin(m, "b")),
			[]bool{true, true, false, true, false, false})
		s.equal("order of the reference", s.storedPayin(first).ReferenceID, "a")
		s.equal("fresh payouts", s.add(s.payout(m, "a"), s.payout(m, "b"), s.payout(m, "a")), []bool{true, true, false})
	}},
	{"a reference is used once by a thousand concurrent orders", func(s *suite) {
		m := s.merchant()
		fresh := make([]bool, 1000)
		s.concurrently(len(fresh), func(i int) error { return s.try(s.create(s.payin(m, "same"), &fresh[i])) })
		s.equal("fresh orders", len(slices.DeleteFunc(fresh, func(fresh bool) bool { return !fresh })), 1)
		s.equal("orders", s.payins(m, store.Filter{}), "[same]")
	}},
	{"references are kept byte for byte", func(s *suite) {
		m := s.merchant()
		for _, reference := range []string{
			"a", "A", "á", "a\u0301", "ａ", " a", "a ", "é", "e\u0301", "ß", "ss", "😀", "😁", "../etc", "%00", "'; DROP TABLE payins; --",
			"\u202eabc", "ﬁ", "fi", "İ", "i", "\u00ad", strings.Repeat("😀", 128), "\\x00", "$1", "?", "{}", "\"",
		} {
			p := s.payin(m, reference)
			s.equal("fresh, "+reference, s.add(p), []bool{true})
			s.equal("reference", s.storedPayin(p).ReferenceID, reference)
		}
	}},
	// An operation that refuses its payout releases the reference, also for the next
	// operation of the commit.
	{"a released reference is unused again", func(s *suite) {
		m := s.merchant()
		p, kept := s.payout(m, "r"), s.payout(m, "kept")
		refused := does(func(n *needs) { n.InsertPayout(p) }, func(_ *loaded, c *changes) {
			c.ReleaseReference(p, nil)
			s.equal("changes", c.Len(), 0)
		})
		next := does(func(n *needs) { n.InsertPayout(kept); n.Payout(m.ID, p.Payout.ID) }, func(l *loaded, _ *changes) {
			_, byID := l.Payout(m.ID, p.Payout.ID)
			_, _, byExternal := l.PayoutByExternalID(m.ID, p.Payout.ExternalID)
			s.equal("found by the next operation", values(byID, byExternal, l.Inserted(p.Payout.ID), l.Inserted(kept.Payout.ID)), "[false false false true]")
		})
		s.commit(refused, next)
		s.wantError(errorOf(s.store.Payout(s.Context(), m.ID, p.Payout.ID)), store.ErrNotFound)
		s.equal("the other is stored", s.storedPayout(kept).ID, kept.Payout.ID)
		s.equal("fresh", s.add(s.payout(m, "r")), []bool{true})
	}},
	// A static BR Code carries a part of a pay-in's id, nothing a part of a payout's.
	{"a pay-in is found by its complete or shortened external id, a payout by its complete one", func(s *suite) {
		m := s.merchant()
		p, q := s.payin(m, "r"), s.payout(m, "r")
		s.add(p, q, s.payin(m, "other"), s.payout(m, "other"))
		static, complete := p.Payin.ExternalID[:payment.ExternalIDStaticLength], q.Payout.ExternalID
		payins := map[string]payment.ID{static: p.Payin.ID, p.Payin.ExternalID: p.Payin.ID, static[:len(static)-1] + "~": {}, complete: {}}
		payouts := map[string]payment.ID{complete: q.Payout.ID, complete[:len(complete)-1]: {}, complete + "0": {}, "": {}}
		s.commit(does(func(n *needs) {
			for name := range payins {
				n.PayinByExternalID(m.ID, name)
			}
			for name := range payouts {
				n.PayoutByExternalID(m.ID, name)
			}
		}, func(l *loaded, _ *changes) {
			for name, want := range payins {
				got, _, ok := l.PayinByExternalID(m.ID, name)
				read, _, err := s.store.PayinByExternalID(s.Context(), m.ID, name)
				s.equal("pay-in of "+name, values(got.ID, ok, read.ID, err == nil), values(want, !want.IsZero(), want, !want.IsZero()))
			}
			for name, want := range payouts {
				got, _, ok := l.PayoutByExternalID(m.ID, name)
				read, _, err := s.store.PayoutByExternalID(s.Context(), m.ID, name)
				s.equal("payout of "+name, values(got.ID, ok, read.ID, err == nil), values(want, !want.IsZero(), want, !want.IsZero()))
			}
		}))
		for name, want := range map[string]payment.ID{static: m.ID, complete: m.ID, "not an id": {}, strings.Repeat("z", payment.ExternalIDLength): {}} {
			s.equal("merchant of "+name, must(s.store.MerchantOf(s.Context(), name)), want)
		}
	}},
	{"another merchant's order is not found", func(s *suite) {
		mine, theirs := s.merchant(), s.merchant()
		payin, payout := s.payin(theirs, "r"), s.payout(theirs, "r")
		p, q := payin.Payin, payout.Payout
		s.add(payin, payout)
		s.commit(addEvents(theirs, p.ID, 1, ""))
		event := s.events(theirs)[0].ID
		for _, of := range []payment.ID{theirs.ID, mine.ID} {
			want := map[bool]error{false: store.ErrNotFound}[of == theirs.ID]
			s.wantError(errorOf(s.store.Payin(s.Context(), of, p.ID)), want)
			s.wantError(errorOf(s.store.PayinPersonal(s.Context(), of, p.ID)), want)
			s.wantError(errorOf(s.store.Payout(s.Context(), of, q.ID)), want)
			s.wantError(errorOf(s.store.Event(s.Context(), of, event)), want)
			_, _, err := s.store.PayinByExternalID(s.Context(), of, p.ExternalID)
			s.wantError(err, want)
			_, _, err = s.store.PayoutByExternalID(s.Context(), of, q.ExternalID)
			s.wantError(err, want)
			static := p.ExternalID[:payment.ExternalIDStaticLength]
			s.commit(does(func(n *needs) { n.Payin(of, p.ID); n.Payout(of, q.ID); n.PayinByExternalID(of, static) }, func(l *loaded, _ *changes) {
				_, payin := l.Payin(of, p.ID)
				_, payout := l.Payout(of, q.ID)
				_, _, external := l.PayinByExternalID(of, static)
				s.equal("loaded", values(payin, payout, external), values(want == nil, want == nil, want == nil))
			}))
		}
	}},
}

// create stores a pay-in or payout, and reports whether it has its reference. The
// order that has it is loaded, with its own fingerprint.
func (s *suite) create(order any, fresh *bool) operation {
	report := func(l *loaded, mine, owner payment.ID, f []byte, ok bool) {
		*fresh = l.Inserted(mine)
		s.equal("loaded, and has the reference", values(ok, f, owner == mine), values(true, fingerprint(owner), *fresh || owner == mine))
	}
	if p, ok := order.(*store.NewPayin); ok {
		return does(func(n *needs) { n.InsertPayin(p) }, func(l *loaded, _ *changes) {
			owner, f, ok := l.PayinByExternalID(p.Payin.Merchant, p.Payin.ExternalID)
			report(l, p.Payin.ID, owner.ID, f, ok)
		})
	}
	p := order.(*store.NewPayout)
	return does(func(n *needs) { n.InsertPayout(p) }, func(l *loaded, _ *changes) {
		owner, f, ok := l.PayoutByExternalID(p.Payout.Merchant, p.Payout.ExternalID)
		report(l, p.Payout.ID, owner.ID, f, ok)
	})
}

// add stores orders in one commit, and returns which are new.
func (s *suite) add(orders ...any) []bool {
	s.Helper()
	fresh, ops := make([]bool, len(orders)), make([]operation, len(orders))
	for i := range orders {
		ops[i] = s.create(orders[i], &fresh[i])
	}
	s.commit(ops...)
	return fresh
}
