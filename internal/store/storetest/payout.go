package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var payoutTests = []test{
	{"payouts are due by processor and step, oldest first, and future ones are not", func(s *suite) {
		m := s.merchant()
		now := s.env.Clock.Now()
		at := func(reference string, step payment.PayoutStep, processor string, after time.Duration) *store.NewPayout {
			return s.payout(m, reference, func(p *payment.Payout) { p.Step, p.Processor, p.NextAt = step, processor, now.Add(after) })
		}
		queued, other := at("q", payment.StepQueued, "bank", -time.Second), at("o", payment.StepQueued, "other", -time.Millisecond)
		unknown, accepted := at("u", payment.StepUnknown, "bank", -time.Minute), at("a", payment.StepAccepted, "bank", -time.Hour)
		s.add(queued, unknown, accepted, other, at("r", payment.StepReview, "bank", -time.Hour), at("f", payment.StepQueued, "bank", time.Hour))
		due := func(what string, queue store.PayoutQueue, want ...store.Due) {
			s.Helper()
			list := must(s.store.PayoutsDue(s.Context(), now, queue))
			s.equal(what, slices.DeleteFunc(list, func(d store.Due) bool { return d.Merchant != m.ID }), want)
		}
		since := func(p *store.NewPayout) store.Due {
			return store.Due{Merchant: m.ID, Processor: p.Payout.Processor, Since: p.Payout.NextAt}
		}
		claim := func(from store.DuePayouts, want ...*store.NewPayout) {
			s.Helper()
			list := s.claimPayouts(from, s.id())
			s.equal("claimed", len(list), len(want))
			for i, p := range want {
				s.equal("claimed payout, with its beneficiary", values(list[i].ID, list[i].Beneficiary), values(p.Payout.ID, p.Payout.Beneficiary))
			}
		}
		due("to send, at each processor, since the oldest", store.ToSend, since(queued), since(other))
		due("to look up, since the oldest", store.ToLookUp, since(accepted))
		claim(toSend(m, 10), queued)
		due("to send next", store.ToSend, since(other))
		claim(toLookUp(m, 1), accepted)
		claim(toLookUp(m, 10), unknown)
		due("to look up when all are claimed", store.ToLookUp)
	}},
	// An operation that claims must not see a payout that its own operation has not
	// decided yet, or has refused.
	{"a payout is not due before the commit that creates it", func(s *suite) {
		m := s.merchant()
		p, refused := s.payout(m, "r"), s.payout(m, "refused")
		var before, after []payment.Payout
		refuse := does(func(n *needs) { n.InsertPayout(refused) }, func(_ *loaded, c *changes) { c.ReleaseReference(refused, nil) })
		s.commit(claimPayouts(toSend(m, 10), s.id(), &before), s.create(p, new(bool)), refuse, claimPayouts(toSend(m, 11), s.id(), &after))
		s.equal("claimed in the commit that creates it", len(before)+len(after), 0)
		s.equal("claimed next", len(s.claimPayouts(toSend(m, 10), s.id())), 1)
	}},
	{"a backlog of one merchant hides no other", func(s *suite) {
		many, one := s.merchant(), s.merchant()
		orders := []any{s.payout(one, "1")}
		for i := range 600 {
			orders = append(orders, s.payout(many, fmt.Sprint(i), func(p *payment.Payout) { p.NextAt = p.NextAt.Add(-time.Hour) }))
		}
		s.add(orders...)
		due := must(s.store.PayoutsDue(s.Context(), s.env.Clock.Now(), store.ToSend))
		s.equal("the other is due", slices.ContainsFunc(due, func(d store.Due) bool { return d.Merchant == one.ID }), true)
	}},
}

// storedPayout is a payout as it is stored.
func (s *suite) storedPayout(p *store.NewPayout) payment.Payout {
	return must(s.store.Payout(s.Context(), p.Payout.Merchant, p.Payout.ID))
}

// storedPayouts stores payouts of some references.
func (s *suite) storedPayouts(m store.Merchant, references ...string) (list []*store.NewPayout) {
	s.Helper()
	var orders []any
	for i, reference := range references { // each is due after the one before
		list = append(list, s.payout(m, reference, func(p *payment.Payout) { p.NextAt = s.past().Add(time.Duration(i) * time.Microsecond) }))
		orders = append(orders, list[i])
	}
	s.add(orders...)
	return list
}

// setPayout changes a payout, in its next version.
func setPayout(p *store.NewPayout, change func(p *payment.Payout)) operation {
	m, id := p.Payout.Merchant, p.Payout.ID
	return set(func(n *needs) { n.Payout(m, id) }, func(l *loaded) (payment.Payout, bool) { return l.Payout(m, id) },
		func(c *changes, v payment.Payout) { v.Version++; c.SetPayout(v) }, change)
}

// claimPayouts claims due payouts for a node, and reports them.
func claimPayouts(due store.DuePayouts, node payment.ID, claimed *[]payment.Payout) operation {
	return does(func(n *needs) { n.DuePayouts(due) }, func(l *loaded, c *changes) {
		*claimed = nil
		for _, p := range l.DuePayouts(due) {
			p.ClaimedBy, p.NextAt = node, time.Time{}
			*claimed = append(*claimed, c.SetPayout(p))
		}
	})
}

func (s *suite) claimPayouts(due store.DuePayouts, node payment.ID) (claimed []payment.Payout) {
	s.Helper()
	s.commit(claimPayouts(due, node, &claimed))
	return claimed
}

func toSend(m store.Merchant, limit int) store.DuePayouts {
	return store.DuePayouts{Merchant: m.ID, Processor: "bank", Queue: store.ToSend, Limit: limit}
}

func toLookUp(m store.Merchant, limit int) store.DuePayouts {
	return store.DuePayouts{Merchant: m.ID, Processor: "bank", Queue: store.ToLookUp, Limit: limit}
}
