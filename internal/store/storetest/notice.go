package storetest

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var noticeTests = []test{
	{"a notice is recorded once, even if it is sent often", func(s *suite) {
		bank, node := s.Name(), s.id()
		s.commit(s.addNotices(bank, "a", "a"), s.addNotices("other", "a"), s.addNotices(bank, "a", "A"))
		s.commit(s.addNotices(bank, "a"))
		s.concurrently(100, func(int) error { return s.try(s.addNotices(bank, "storm")) })
		list := s.claimNotices(bank, node)
		s.equal("notices", len(list), 3)
		for _, n := range list {
			sameFields(s, "notice", n, store.Notice{
				Processor: bank, ID: n.ID, Headers: "h", Body: []byte("body of " + n.ID), State: store.NoticeReceived, Attempts: 1, ClaimedBy: node, ReceivedAt: n.ReceivedAt,
			})
			s.equal("has a time", n.ReceivedAt.IsZero(), false)
		}
	}},
	{"a notice is delayed, and applied or given up", func(s *suite) {
		bank, node := s.Name(), s.node()
		s.commit(s.addNotices(bank, "applied", "given up"))
		due := func(what string, want int) []store.Notice {
			s.Helper()
			list := s.claimNotices(bank, node)
			s.equal(what, len(list), want)
			return list
		}
		list := due("due", 2)
		s.commit(delay(list[1], s.later()), delay(list[0], s.later()))
		due("due before its time", 0)
		s.commit(delay(list[0], s.later()), delay(list[0], s.past())) // the last change stays
		again := due("due at its time", 1)[0]
		s.equal("attempts and last error", values(again.Attempts, again.LastError), values(2, "not yet"))
		s.equal("released", s.release(node), 1) // the node died while it had claimed the notice
		again = due("due after its node died", 1)[0]
		s.commit(finishNotice(again), does(nil, func(_ *loaded, c *changes) {
			v := list[1]
			v.State = store.NoticeDeadLetter
			c.SetNotice(v)
		}))
		// Neither late changes of a node that was declared dead nor a repetition reopen it.
		s.commit(delay(list[0], s.past()), delay(list[1], s.past()), s.addNotices(bank, "applied", "given up"))
		due("due after the end", 0)
	}},
}

func (s *suite) notice(processor, id string) store.Notice {
	return store.Notice{Processor: processor, ID: id, Headers: "h", Body: []byte("body of " + id), State: store.NoticeReceived}
}

// addNotices records notices of a processor in one operation.
func (s *suite) addNotices(processor string, ids ...string) operation {
	return operation{needs: func(n *needs) {
		for _, id := range ids {
			n.InsertNotice(s.store.NewNotice(s.notice(processor, id)))
		}
	}}
}

// claimNotices claims due notices of a processor, and reports them.
func claimNotices(processor string, node payment.ID, limit int, claimed *[]store.Notice) operation {
	return does(func(n *needs) { n.DueNotices(processor, limit) }, func(l *loaded, c *changes) {
		*claimed = nil
		for _, n := range l.DueNotices(processor) {
			n.NextAt, n.ClaimedBy, n.Attempts = time.Time{}, node, n.Attempts+1
			c.SetNotice(n)
			*claimed = append(*claimed, n)
		}
	})
}

// claimNotices claims all due notices of a processor.
func (s *suite) claimNotices(processor string, node payment.ID) (mine []store.Notice) {
	s.Helper()
	s.commit(claimNotices(processor, node, 1000, &mine))
	for _, n := range mine {
		s.equal("processor", n.Processor, processor)
	}
	return mine
}

// delay schedules a notice.
func delay(n store.Notice, at time.Time) operation {
	return does(nil, func(_ *loaded, c *changes) {
		n.NextAt, n.ClaimedBy, n.LastError = at, payment.ID{}, "not yet"
		c.SetNotice(n)
	})
}

func finishNotice(n store.Notice) operation {
	return does(nil, func(_ *loaded, c *changes) { c.FinishNotice(n) })
}
