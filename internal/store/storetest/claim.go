package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var claimTests = []test{
	{"concurrent claimers never share a payout", func(s *suite) { claimedOnce(s, s.payoutQueue()) }},
	{"concurrent claimers never share a delivery", func(s *suite) { claimedOnce(s, s.deliveryQueue()) }},
	{"concurrent claimers never share a notice", func(s *suite) { claimedOnce(s, s.noticeQueue()) }},
	{"concurrent claimers never share a charge", func(s *suite) { claimedOnce(s, s.chargeQueue()) }},
	{"operations of one commit never share a charge", func(s *suite) { claimedOnceInACommit(s, s.chargeQueue()) }},
	{"operations of one commit never share a payout", func(s *suite) { claimedOnceInACommit(s, s.payoutQueue()) }},
	{"operations of one commit never share a delivery", func(s *suite) { claimedOnceInACommit(s, s.deliveryQueue()) }},
	{"operations of one commit never share a notice", func(s *suite) { claimedOnceInACommit(s, s.noticeQueue()) }},
	// A claim sees the changes of due rows by earlier operations of its commit; for example,
	// a process that was declared dead ends a notice.
	{"a row that an operation changed is not claimed by the next", func(s *suite) {
		m, bank := s.merchant(), s.Name()
		list := s.storedPayouts(m, "1", "2", "3", "4", "5")
		s.commit(addEvents(m, s.id(), 4, hook), s.addNotices(bank, "finished", "delayed", "due"))
		due := s.claimDeliveries(m, s.id(), 10)
		for _, d := range due {
			s.commit(setDelivery(d, returned(s.past())))
		}
		var toSendNow, toLookUpNow []payment.Payout
		var deliveries []store.Delivery
		var notices []store.Notice
		s.commit(setPayout(list[0], func(p *payment.Payout) { p.Step = payment.StepUnknown }),
			setPayout(list[1], func(p *payment.Payout) { p.NextAt = s.later() }),
			setPayout(list[2], func(p *payment.Payout) { p.NextAt, p.Step = time.Time{}, payment.StepDone }),
			setPayout(list[3], func(p *payment.Payout) { p.ClaimedBy = s.id() }),
			setDelivery(due[0], func(d *store.Delivery) { d.NextAt = s.later() }),
			setDelivery(due[1], func(d *store.Delivery) { d.ClaimedBy = s.id() }),
			setDelivery(due[2], func(d *store.Delivery) { d.State, d.NextAt = store.DeliveryDone, time.Time{} }),
			finishNotice(s.notice(bank, "finished")), delay(s.notice(bank, "delayed"), s.later()),
			claimPayouts(toSend(m, 10), s.id(), &toSendNow), claimPayouts(toLookUp(m, 10), s.id(), &toLookUpNow),
			claimDeliveries(m, s.id(), 10, &deliveries), claimNotices(bank, s.id(), 10, &notices))
		s.equal("claimed", values(len(toSendNow), len(toLookUpNow), len(deliveries), len(notices)), values(1, 0, 1, 1))
		s.equal("the claimed ones", values(toSendNow[0].ID, deliveries[0].ID, notices[0].ID), values(list[4].Payout.ID, due[3].ID, "due"))
	}},
}

// queueLength is how many rows a queue has: a multiple of four.
const queueLength = 60

// claim is an operation that claims rows of a queue for a node, and adds them to a
// list.
type claim func(node payment.ID, limit int, claimed *[]any) operation

// reporting turns an operation that reports rows into a claim.
func reporting[T any](claim func(node payment.ID, limit int, list *[]T) operation, name func(T) any) claim {
	return func(node payment.ID, limit int, claimed *[]any) operation {
		var list []T
		return all(claim(node, limit, &list), does(nil, func(*loaded, *changes) {
			*claimed = nil
			for _, v := range list {
				*claimed = append(*claimed, name(v))
			}
		}))
	}
}

func (s *suite) payoutQueue() claim {
	m := s.merchant()
	var orders []any
	for i := range queueLength {
		orders = append(orders, s.payout(m, fmt.Sprint(i)))
	}
	s.add(orders...)
	return reporting(func(node payment.ID, limit int, list *[]payment.Payout) operation {
		return claimPayouts(toSend(m, limit), node, list)
	}, func(p payment.Payout) any { return p.ID })
}

func (s *suite) deliveryQueue() claim {
	m := s.merchant()
	s.commit(addEvents(m, s.id(), queueLength, hook))
	return reporting(func(node payment.ID, limit int, list *[]store.Delivery) operation {
		return claimDeliveries(m, node, limit, list)
	}, func(d store.Delivery) any { return d.ID })
}

func (s *suite) noticeQueue() claim {
	bank := s.Name()
	for i := range queueLength {
		s.commit(s.addNotices(bank, fmt.Sprint(i)))
	}
	return reporting(func(node payment.ID, limit int, list *[]store.Notice) operation {
		return claimNotices(bank, node, limit, list)
	}, func(n store.Notice) any { return n.ID })
}

func claimedOnce(s *suite, c claim) {
	var mu sync.Mutex
	claims := map[any]payment.ID{}
	rounds := func(int) error {
		node := s.id()
		for {
			var list []any
			if err := s.try(c(node, 5, &list)); err != nil || len(list) == 0 {
				return err
			}
			mu.Lock()
			for _, v := range list {
				if other, ok := claims[v]; ok {
					mu.Unlock()
					return fmt.Errorf("%v was claimed by %s and by %s", v, other, node)
				}
				claims[v] = node
			}
			mu.Unlock()
		}
	}
	s.concurrently(4, rounds)
	s.must(rounds(0)) // rows that others were claiming were skipped
	s.equal("claimed", len(claims), queueLength)
}

func claimedOnceInACommit(s *suite, c claim) {
	var one, other, next []any
	s.commit(c(s.id(), 15, &one), c(s.id(), 15, &other))
	s.commit(c(s.id(), queueLength, &next))
	every := slices.Concat(one, other, next)
	distinct := map[any]bool{}
	for _, v := range every {
		distinct[v] = true
	}
	s.equal("claimed, and distinct ones", values(len(every), len(distinct)), values(queueLength, queueLength))
}
