package storetest

import (
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var retentionTests = []test{
	{"finished deliveries are removed by age, with their attempts, and nothing else", func(s *suite) {
		m, other, node := s.merchant(), s.merchant(), s.id()
		s.commit(addEvents(m, s.id(), 7, hook), addEvents(other, s.id(), 1, hook))
		list := s.claimDeliveries(m, node, 6) // the seventh waits
		var id payment.ID
		s.commit(finish(list[0]), endAttempt(list[1], 500, store.DeliveryExhausted, time.Time{}), endAttempt(list[2], 410, store.DeliveryDisabled, time.Time{}),
			endAttempt(list[3], 500, store.DeliveryPending, s.later()), endAttempt(list[5], 500, store.DeliveryExhausted, time.Time{}),
			finish(s.claimDeliveries(other, node, 1)[0]), openCase(m, store.CaseWebhook, m.ID, &id))
		s.commit(setDelivery(list[5], func(d *store.Delivery) { d.Case = id }))

		s.equal("older than an hour", s.old(m, payment.ID{}, s.now().Add(-time.Hour), 10).Count, 0)
		var looked, finished int
		var removed int64
		for v := (store.OldDeliveries{Count: 4}); v.Count == 4; {
			v = s.old(m, v.Last, s.later(), 4)
			looked, finished, removed = looked+v.Count, finished+v.Finished, removed+s.remove(v, s.later())
		}
		s.equal("looked at, finished and removed", values(looked, finished, removed), values(7, 2, 2))
		for i, want := range []int{0, 1, 0, 1, 1, 1, 0} {
			s.equal("attempts", values(i, len(s.attempts(m, int64(i+1)))), values(i, want))
		}
		s.equal("of the other merchant", values(s.old(other, payment.ID{}, s.later(), 10).Count, len(s.attempts(other, 1))), values(1, 1))
		s.equal("events, and due ones", values(len(s.events(m)), len(s.claimDeliveries(m, node, 10))), values(7, 1))
		s.commit(closeCase(m, &id))
		s.equal("removed once its case is closed", s.removeAll(m), 1)
	}},
	// The range was read, and then one of its deliveries was requested again.
	{"a delivery that was requested again meanwhile stays", func(s *suite) {
		m, node := s.merchant(), s.id()
		s.commit(addEvents(m, s.id(), 2, hook))
		for _, d := range s.claimDeliveries(m, node, 2) {
			s.commit(finish(d))
		}
		v := s.old(m, payment.ID{}, s.later(), 10)
		s.redeliver(s.events(m)[0])
		s.equal("finished, and removed", values(v.Finished, s.remove(v, s.later())), values(2, 1))
		s.equal("attempts of the one that was requested", len(s.attempts(m, 1)), 1)
		again := s.claimDeliveries(m, node, 10)
		s.equal("due, and its attempts", values(len(again), again[0].Attempts), values(1, 2))

		// One that is claimed, or that ended a short time ago, stays as well.
		s.equal("removed while it is claimed", s.removeAll(m), 0)
		s.commit(finish(again[0]))
		s.equal("removed right after its end", s.remove(s.old(m, payment.ID{}, s.later(), 10), s.now().Add(-time.Minute)), 0)
	}},
	{"a removed delivery is not found by the process that had claimed it", func(s *suite) {
		m, one := s.merchant(), s.node()
		s.commit(addEvents(m, s.id(), 1, hook))
		lost := s.claimDeliveries(m, one, 10)[0]
		s.release(one)
		s.commit(finish(s.claimDeliveries(m, s.id(), 10)[0]))
		s.equal("attempts, and removed", values(len(s.attempts(m, 1)), s.removeAll(m)), values(2, 1))
		s.wantError(s.try(setDelivery(lost, returned(s.past()))), store.ErrNotFound)
		s.commit(finish(lost))
		s.equal("attempts of the removed one", len(s.attempts(m, 1)), 0)
	}},
	{"a removed delivery is created again, once, when its event is requested", func(s *suite) {
		m, node := s.merchant(), s.id()
		p := s.payin(m, "p", func(p *payment.Payin) { p.WebhookURL = hook })
		q := s.payout(m, "q", func(p *payment.Payout) { p.WebhookURL = "https://payouts.example" })
		s.add(p, q)
		s.commit(addEvents(m, p.Payin.ID, 1, hook), addEvents(m, q.Payout.ID, 1, q.Payout.WebhookURL), addEvents(m, s.id(), 1, hook))
		events := s.events(m)
		removeAll := func() int64 {
			for _, d := range s.claimDeliveries(m, node, 10) {
				s.commit(finish(d))
			}
			return s.removeAll(m)
		}
		s.equal("removed", removeAll(), 3)
		s.concurrently(4, func(int) error { s.redeliver(events[0]); return nil })
		s.equal("due of a payout's event, and of one without an order", values(s.redeliver(events[1]), s.redeliver(events[2])), values(1, 0))
		list := s.claimDeliveries(m, node, 10)
		s.equal("due", len(list), 2)
		for i, url := range []string{hook, q.Payout.WebhookURL} {
			d := list[i]
			s.equal("delivery", values(d.Event.ID, d.Subject, d.URL, d.Attempts, d.ScheduleStep), values(events[i].ID, events[i].Subject, url, 1, 0))
			s.equal("created while it is claimed", s.redeliver(events[i]), 0)
		}
		s.commit(finish(list[0]))
		s.equal("due, as it exists", s.redeliver(events[0]), 1)
		s.equal("deliveries", s.old(m, payment.ID{}, s.later(), 10).Count, 2)
		s.commit(finish(list[1]), disable(m, p.Payin.ID, hook))
		s.equal("removed", removeAll(), 2)
		s.equal("created after the receiver disabled the order's events", s.redeliver(events[0]), 0)
	}},
	{"the limit of removal only increases, by a day at most", func(s *suite) {
		const kept, day = 30 * 24 * time.Hour, 24 * time.Hour
		now := s.env.Clock.Now()
		s.write(func(tx *store.AdminTx) error { // else it is that of the template, by the clock of any test
			_, err := tx.Exec(s.Context(), "UPDATE installation SET created_at = $1", now.UnixMicro())
			return err
		})
		first := now.Add(-kept + time.Hour) // an hour from the begin
		for _, r := range []struct{ before, allowed, noted time.Time }{
			{first, first, first},
			{now.Add(-kept), now.Add(-kept), first},
			{now.AddDate(1, 0, 0), first.Add(day), first.Add(day)}, // by a clock a year ahead
			{now.AddDate(1, 0, 0), first.Add(2 * day), first.Add(2 * day)},
		} {
			var allowed time.Time
			s.write(func(tx *store.AdminTx) (err error) {
				allowed, err = tx.AllowRemoval(s.Context(), r.before, kept)
				return err
			})
			noted := must(s.store.Setting(s.Context(), store.SettingRemoved))
			s.equal("allowed, and on record", values(allowed, noted), values(r.allowed, strconv.FormatInt(r.noted.UnixMicro(), 10)))
		}
	}},
}

func (s *suite) remove(v store.OldDeliveries, before time.Time) (n int64) {
	s.Helper()
	s.write(func(tx *store.AdminTx) (err error) {
		n, err = tx.RemoveDeliveries(s.Context(), v, before)
		return err
	})
	return n
}

func (s *suite) old(m store.Merchant, after payment.ID, before time.Time, limit int) store.OldDeliveries {
	return must(s.store.OldDeliveries(s.Context(), m.ID, after, before, limit))
}

// removeAll removes all removable deliveries of a merchant, and returns how many.
func (s *suite) removeAll(m store.Merchant) int64 {
	s.Helper()
	return s.remove(s.old(m, payment.ID{}, s.later(), 100), s.later())
}
