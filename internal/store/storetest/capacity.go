package storetest

import (
	"slices"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var capacityTests = []test{
	{"operations reserve capacity", func(s *suite) {
		one, two := s.id(), s.id()
		var n needs
		all(s.addNotices("bank", "a", "b"), s.addNotices("other", "c"), operation{needs: func(n *needs) { n.ExpectDeliveries(one, 2); n.ExpectDeliveries(two, 1) }},
			operation{needs: func(n *needs) { n.ExpectDeliveries(one, 3) }}).needs(&n)
		s.equal("notices and deliveries", values(n.Capacity().Notices, n.Capacity().Deliveries), values(map[string]int{"bank": 2, "other": 1}, map[payment.ID]int{one: 5, two: 1}))
	}},
	{"new work is claimed in its commit, until its node is released", func(s *suite) {
		m, node := s.merchant(), s.node()
		c := capacity(node, 10, m, 10)
		claimed := s.claimNew(c, m, 2, "n")
		s.equal("node, notices, deliveries, and due rows", values(claimed.Node, len(claimed.Notices), len(claimed.Deliveries), claimed.NoticesDue, claimed.DeliveriesDue),
			values(node, 1, 2, map[string]int{}, map[payment.ID]int{}))
		s.equal("the caller's capacity", c, capacity(node, 10, m, 10))
		n, list := claimed.Notices[0], claimed.Deliveries
		want := s.notice(m.Name, "n")
		want.Attempts, want.ClaimedBy = 1, node
		sameFields(s, "notice", n, want, "ReceivedAt")
		s.equal("has a time", n.ReceivedAt.IsZero(), false)
		for i, e := range s.events(m) {
			d := list[i]
			s.equal("event", d.Event, e)
			sameFields(s, "as it is stored", s.delivery(d), d, "Event")
			s.equal("delivery", values(d.EventNumber, d.ClaimedBy, d.Attempts, d.ScheduleStep, d.State, d.URL, d.NextAt.IsZero()),
				values(e.Number, node, 1, 0, store.DeliveryPending, hook, true))
			s.equal("attempts", s.attempts(m, e.Number), []store.Attempt{{Merchant: m.ID, Delivery: d.ID, URL: hook, Number: 1, CreatedAt: d.UpdatedAt}})
		}
		s.wantDue(m, 0, 0)
		s.commit(finish(list[0]))
		s.equal("released", s.release(node), 2) // the notice, and the delivery that has not ended
		freed := s.wantDue(m, 1, 1)[0]
		s.equal("delivery that is due", values(freed.ID, freed.Attempts, freed.ScheduleStep), values(list[1].ID, 2, 0))
	}},
	{"work beyond the capacity is due", func(s *suite) {
		m, other, node := s.merchant(), s.merchant(), s.node()
		out, err := s.tryWith(capacity(node, 1, m, 1), s.addNotices(m.Name, "x", "y", "z"), addEvents(m, m.ID, 3, hook), addEvents(other, other.ID, 2, hook))
		s.must(err)
		v := out.Claimed
		s.equal("claimed, and due", values(len(v.Notices), len(v.Deliveries), v.NoticesDue, v.DeliveriesDue), values(1, 1, map[string]int{m.Name: 2}, map[payment.ID]int{m.ID: 2, other.ID: 2}))
		for _, d := range s.wantDue(m, 2, 2) {
			s.equal("attempts, and claimed as well", values(d.Attempts, d.ID == v.Deliveries[0].ID), values(1, false))
		}
		s.wantDue(other, 0, 2)
	}},
	{"nothing is claimed for a node that is not registered", func(s *suite) {
		m, node := s.merchant(), s.node()
		s.release(node)
		for _, id := range []payment.ID{node, {}} {
			v := s.claimNew(capacity(id, 10, m, 10), m, 1, "of "+id.String())
			s.equal("any, and due", values(v.Any(), v.NoticesDue[m.Name], v.DeliveriesDue[m.ID]), values(false, 1, 1))
			s.wantDue(m, 1, 1)
		}
	}},
	{"a notice that was recorded before is not claimed again", func(s *suite) {
		m, node := s.merchant(), s.node()
		s.claimNew(capacity(node, 10, m, 0), m, 0, "a")
		v := s.claimNew(capacity(node, 10, m, 0), m, 0, "a", "d", "c", "d")
		var ids []string
		for _, n := range v.Notices {
			ids = append(ids, n.ID)
		}
		slices.Sort(ids)
		s.equal("claimed, and due", values(ids, len(v.NoticesDue), v.Any()), values([]string{"c", "d"}, 0, true))
		v = s.claimNew(capacity(node, 1, m, 0), m, 0, "a", "b")
		s.equal("claimed or due", len(v.Notices)+v.NoticesDue[m.Name], 1)
		s.wantDue(m, v.NoticesDue[m.Name], 0)
	}},
	{"a node is not released before its claims on insert are committed", func(s *suite) {
		m, node := s.merchant(), s.node()
		_, err := s.tryWith(capacity(node, 10, m, 10), s.addNotices(m.Name, "n"), addEvents(m, m.ID, 1, hook), s.releaseMustWait(node))
		s.must(err)
		s.equal("released", s.release(node), 2)
		s.wantDue(m, 1, 1)
	}},
	{"an unknown commit reports its claims, and is repeated without a claim", func(s *suite) {
		m, node := s.merchant(), s.node()
		for _, at := range []env.Failpoint{env.AfterCommit, ""} {
			s.unknownAt.Store(&at)
			out, err := s.tryWith(capacity(node, 1, m, 0), s.addNotices(m.Name, "n"))
			s.equal("unknown, and claimed", values(err != nil, out.Claimed.Any()), values(at != "", at != ""))
		}
		s.equal("released", s.release(node), 1)
	}},
}

// capacity is a node's capacity for notices of a processor of a merchant's name, and for the
// merchant's deliveries.
func capacity(node payment.ID, notices int, m store.Merchant, deliveries int) store.Capacity {
	return store.Capacity{Node: node, Notices: map[string]int{m.Name: notices}, Deliveries: map[payment.ID]int{m.ID: deliveries}}
}

// claimNew adds events of a merchant and notices of a processor of its name, with a
// capacity, and returns what was claimed.
func (s *suite) claimNew(c store.Capacity, m store.Merchant, events int, notices ...string) store.Claimed {
	s.Helper()
	out, err := s.tryWith(c, s.addNotices(m.Name, notices...), addEvents(m, m.ID, events, hook))
	s.must(err)
	return out.Claimed
}

// wantDue expects as many due notices and deliveries, and claims them.
func (s *suite) wantDue(m store.Merchant, notices, deliveries int) (list []store.Delivery) {
	s.Helper()
	list = s.claimDeliveries(m, s.id(), 10)
	s.equal("due notices and deliveries", values(len(s.claimNotices(m.Name, s.id())), len(list)), values(notices, deliveries))
	return list
}
