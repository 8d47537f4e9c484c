package storetest

import (
	"cmp"
	"sync/atomic"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var caseTests = []test{
	{"a dispute is unique, and moves from its present state", func(s *suite) {
		m := s.merchant()
		d := s.dispute(m, "D1")
		var moved atomic.Int32
		s.commit(moveDispute(d, "OPEN", "WON", &moved)) // adds it
		s.commit(moveDispute(d, "OPEN", "WON", &moved), moveDispute(d, "OPEN", "LOST", &moved), moveDispute(d, "WON", "REVERSED", &moved))
		s.equal("moves", moved.Load(), 2)
		ask := func(n *needs) { n.Dispute(m.ID, "bank", "D1"); n.Dispute(m.ID, "bank", "d1") }
		s.wantError(s.try(does(ask, func(_ *loaded, c *changes) { c.AddDispute(s.dispute(m, "D1")) })), store.ErrConflict)
		s.commit(does(ask, func(l *loaded, _ *changes) {
			got, _ := l.Dispute(m.ID, "bank", "D1")
			_, other := l.Dispute(m.ID, "bank", "d1")
			s.equal("id, status and another id", values(got.ID, got.Status, other), values(d.ID, payment.DisputeReversed, false))
		}))
		s.equal("status", must(s.store.DisputeByExternalID(s.Context(), m.ID, "bank", "D1")).Status, payment.DisputeReversed)
		s.wantError(errorOf(s.store.DisputeByExternalID(s.Context(), s.merchant().ID, "bank", "D1")), store.ErrNotFound)
		s.equal("found by id alone", must(s.store.FindDispute(s.Context(), d.ID)).ExternalID, "D1")
		d = s.dispute(m, "D0")
		d.Amount = 0
		s.wantRefused("a dispute of nothing", s.try(moveDispute(d, "", "", nil)))
	}},
	{"concurrent changes of a dispute happen once", func(s *suite) {
		d := s.dispute(s.merchant(), "D2")
		s.commit(moveDispute(d, "", "", nil))
		var moved atomic.Int32
		s.concurrently(8, func(int) error { return s.try(moveDispute(d, "OPEN", "LOST", &moved)) })
		s.equal("moves", moved.Load(), 1)
	}},
	{"open cases are listed, oldest first, with their parameters", func(s *suite) {
		m, subject := s.merchant(), s.id()
		kinds := []store.CaseKind{store.CaseOverpaid, store.CasePayoutUnknown, store.CaseOverpaid}
		var id payment.ID
		for _, kind := range kinds {
			s.commit(openCase(m, kind, subject, &id))
		}
		list := s.openCases(m)
		s.equal("open", len(list), len(kinds))
		for i, v := range list {
			s.equal("has an id and a time", values(v.ID.IsZero(), v.CreatedAt.IsZero()), values(false, false))
			s.equal("case", v, store.Case{
				Merchant: m.ID, ID: v.ID, Kind: kinds[i], Subject: subject, Amount: 7, Params: store.Params{"reason": "é \"quoted\""}, CreatedAt: v.CreatedAt,
			})
		}
		s.equal("oldest", must(s.store.OpenCases(s.Context(), 1)), list[:1])
	}},
	{"the open cases that stop payouts of a merchant or an account are listed", func(s *suite) {
		m, account := s.merchant(), "stopped-here"
		var ids [5]payment.ID
		for i, v := range []store.Case{{StopsPayouts: true}, {}, {StopsAccount: account}, {StopsPayouts: true}, {Kind: store.CaseAccountRefused}} {
			v.Merchant, v.Kind, v.Subject = m.ID, cmp.Or(v.Kind, store.CaseContradiction), m.ID
			s.commit(does(nil, func(_ *loaded, c *changes) { ids[i] = c.OpenCase(v) }))
		}
		s.commit(closeCase(m, &ids[3]))
		var got []any
		for _, v := range must(s.store.StoppingCases(s.Context())) {
			if v.Merchant == m.ID {
				got = append(got, v.ID, v.StopsPayouts, v.StopsAccount)
			}
		}
		s.equal("stopping", got, values(ids[0], true, "", ids[2], false, account, ids[4], false, ""))
	}},
	{"all cases of a kind and a subject are closed, of several subjects at once", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		subjects := []payment.ID{s.id(), s.id(), s.id()}
		var ops []operation
		var id payment.ID
		for _, of := range []store.Merchant{m, other} {
			for _, subject := range subjects {
				ops = append(ops, openCase(of, store.CaseWebhook, subject, &id), openCase(of, store.CaseWebhook, subject, &id), openCase(of, store.CaseDispute, subject, &id))
			}
		}
		s.commit(ops...)
		s.commit(closeCases(m, subjects[0], store.CaseWebhook), closeCases(m, subjects[1], store.CaseWebhook),
			closeCases(m, subjects[0], store.CaseWebhook), closeCases(other, subjects[0], store.CaseDispute))
		s.equal("open of each", values(len(s.openCases(m)), len(s.openCases(other))), values(3+2, 9-1))
		for kind, want := range map[store.CaseKind]bool{store.CaseWebhook: false, store.CaseDispute: true} {
			s.equal("has an open one", must(s.store.HasOpenCase(s.Context(), m.ID, subjects[0], kind)), want)
		}
	}},
	{"a case is closed by its id, once, also in the commit that opens it", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		var first, second, third, last payment.ID
		open := func(id *payment.ID) operation { return openCase(m, store.CaseWebhook, m.ID, id) }
		s.commit(open(&first), closeCases(m, m.ID, store.CaseWebhook), open(&second), closeCase(m, &second), open(&third), open(&last))
		s.commit(closeCase(other, &third))
		s.equal("open after another merchant closed it", len(s.openCases(m)), 2)
		s.commit(closeCase(m, &third), closeCase(m, &third), closeCase(m, &first))
		left := s.openCases(m)
		s.equal("open", values(len(left), left[0].ID), values(1, last))
	}},
}

func (s *suite) dispute(m store.Merchant, id string) payment.Dispute {
	return payment.Dispute{Merchant: m.ID, ID: s.id(), Payin: s.id(), Processor: "bank", ExternalID: id, Amount: 5, Status: payment.DisputeOpen}
}

// moveDispute adds a dispute, or moves it from one state to another and counts that.
func moveDispute(d payment.Dispute, was, to payment.DisputeStatus, moved *atomic.Int32) operation {
	return does(func(n *needs) { n.Dispute(d.Merchant, d.Processor, d.ExternalID) }, func(l *loaded, c *changes) {
		v, ok := l.Dispute(d.Merchant, d.Processor, d.ExternalID)
		switch {
		case !ok:
			c.AddDispute(d)
		case v.Status == was:
			v.Status = to
			c.SetDispute(v)
			moved.Add(1)
		}
	})
}

// openCase opens a case, and reports its id.
func openCase(m store.Merchant, kind store.CaseKind, subject payment.ID, id *payment.ID) operation {
	return does(nil, func(_ *loaded, c *changes) {
		*id = c.OpenCase(store.Case{Merchant: m.ID, Kind: kind, Subject: subject, Amount: 7, Params: store.Params{"reason": "é \"quoted\""}})
	})
}

func closeCase(m store.Merchant, id *payment.ID) operation {
	return does(nil, func(_ *loaded, c *changes) { c.CloseCase(m.ID, *id, store.ResolvedByProof) })
}

func closeCases(m store.Merchant, subject payment.ID, kind store.CaseKind) operation {
	return does(nil, func(_ *loaded, c *changes) { c.CloseCases(m.ID, subject, kind, store.ResolvedByProof) })
}

// openCases are the open cases of a merchant.
func (s *suite) openCases(m store.Merchant) (list []store.Case) {
	s.Helper()
	all := must(s.store.OpenCases(s.Context(), 1000))
	for i := range all {
		if all[i].Merchant == m.ID {
			list = append(list, all[i])
		}
	}
	return list
}
