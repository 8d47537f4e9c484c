package storetest

import (
	"errors"
	"sync/atomic"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var sendTests = []test{
	{"at most one send of a payout is undecided", func(s *suite) {
		node := s.id()
		p := s.storedPayouts(s.merchant(), "r")[0]
		number := int64(0)
		for _, undecided := range []store.SendOutcome{store.SendIntent, store.SendAccepted, store.SendUnknown} {
			s.equal("is undecided", undecided.Undecided(), true)
			for _, decided := range []store.SendOutcome{store.SendNotFound, store.SendNotSent, store.SendRefused, store.SendPaid, store.SendFailed} {
				s.equal("is undecided", decided.Undecided(), false)
				number++
				s.commit(addSends(s.send(p, number, node)))
				s.commit(setSend(p, undecided, ""))
				s.wantError(s.try(addSends(s.send(p, number+1, node))), store.ErrConflict)
				s.commit(setSend(p, decided, "because"))
			}
		}
		list := s.sends(p)
		s.equal("sends", len(list), 15)
		for i := range list {
			s.equal("number and evidence", values(list[i].Number, list[i].Evidence), values(i+1, "because"))
		}
	}},
	{"concurrent sends of a payout begin once", func(s *suite) {
		node, p := s.id(), s.storedPayouts(s.merchant(), "r")[0]
		var begun atomic.Int32
		s.concurrently(8, func(i int) error {
			err := s.try(does(nil, func(_ *loaded, c *changes) { c.AddSend(s.send(p, 1+int64(i), node)) })) // which locks nothing
			if err == nil {
				begun.Add(1)
			} else if !errors.Is(err, store.ErrConflict) {
				return err
			}
			return nil
		})
		s.equal("sends that began, and sends", values(begun.Load(), len(s.sends(p))), values(1, 1))
	}},
	{"sends of several payouts are all recorded, or none", func(s *suite) {
		m, node := s.merchant(), s.id()
		list := s.storedPayouts(m, "1", "2")
		s.commit(addSends(s.send(list[0], 1, node)))
		s.wantError(s.try(addSends(s.send(list[1], 1, node), s.send(list[0], 2, node))), store.ErrConflict)
		s.equal("sends of the other", len(s.sends(list[1])), 0)
		s.wantRefused("a send of no payout", s.try(addSends(s.send(s.payout(m, "not stored"), 1, node))))
	}},
	{"due payouts come with their sends", func(s *suite) {
		m := s.merchant()
		list := s.storedPayouts(m, "1", "2")
		s.commit(addSends(s.send(list[0], 1, s.id())), setSend(list[0], store.SendNotFound, ""))
		s.commit(does(func(n *needs) { n.DuePayouts(toSend(m, 10)) }, func(l *loaded, _ *changes) {
			for i, p := range l.DuePayouts(toSend(m, 10)) {
				s.equal("payout and number of sends", values(p.ID, len(l.Sends(m.ID, p.ID))), values(list[i].Payout.ID, 1-i))
			}
			s.equal("due", len(l.DuePayouts(toSend(m, 10))), 2)
		}))
	}},
}

// send is the intent to send a payout.
func (s *suite) send(p *store.NewPayout, number int64, node payment.ID) store.Send {
	return store.Send{
		Merchant: p.Payout.Merchant, Payout: p.Payout.ID, Number: number, Processor: "bank", Node: node,
		Deadline: s.later(), Outcome: store.SendIntent,
	}
}

// addSends records the intents of sends, in one operation.
func addSends(list ...store.Send) operation {
	return does(func(n *needs) {
		for i := range list {
			n.Payout(list[i].Merchant, list[i].Payout)
			n.Sends(list[i].Merchant, list[i].Payout)
		}
	}, func(_ *loaded, c *changes) {
		for i := range list {
			c.AddSend(list[i])
		}
	})
}

// setSend moves the last send of a payout to an outcome.
func setSend(p *store.NewPayout, outcome store.SendOutcome, evidence string) operation {
	m, id := p.Payout.Merchant, p.Payout.ID
	ask := func(n *needs) { n.Payout(m, id); n.Sends(m, id) }
	last := func(l *loaded) (v store.Send, ok bool) {
		if sends := l.Sends(m, id); len(sends) > 0 {
			return sends[len(sends)-1], true
		}
		return v, false
	}
	return set(ask, last, (*changes).SetSend, func(v *store.Send) { v.Outcome, v.Evidence = outcome, evidence })
}

func (s *suite) sends(p *store.NewPayout) []store.Send {
	return must(s.store.Sends(s.Context(), p.Payout.Merchant, p.Payout.ID))
}
