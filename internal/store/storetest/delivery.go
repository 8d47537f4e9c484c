package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var deliveryTests = []test{
	{"an attempt is listed from its beginning", func(s *suite) {
		m, node, subject := s.merchant(), s.id(), s.id()
		s.commit(addEvents(m, subject, 1, hook))
		for i := range 2 {
			d := s.claimDeliveries(m, node, 10)[0]
			s.equal("delivery", values(d.EventNumber, d.Subject, d.URL, d.State, d.Attempts, d.ScheduleStep, d.ClaimedBy, d.NextAt),
				values(1, subject, hook, store.DeliveryPending, i+1, i, node, time.Time{}))
			sameFields(s, "as it is stored", s.delivery(d), d, "Event")
			s.equal("its event", d.Event, s.events(m)[0])
			attempts := s.attempts(m, 1)
			s.equal("on record", len(attempts), i+1)
			s.equal("under way", attempts[i], store.Attempt{Merchant: m.ID, Delivery: d.ID, URL: hook, Number: i + 1, CreatedAt: d.UpdatedAt})
			s.commit(endAttempt(d, 500, store.DeliveryPending, s.past()))
			got := s.attempts(m, 1)[i]
			s.equal("as it ended", values(got.Number, got.Status, got.Error, got.CreatedAt, got.EndedAt.IsZero()), values(i+1, 500, "e", d.UpdatedAt, false))
		}
		// A delivery that is returned was not attempted.
		d := s.claimDeliveries(m, node, 10)[0]
		s.commit(setDelivery(d, returned(s.past())))
		s.equal("attempts after it was returned", len(s.attempts(m, 1)), 2)
		s.equal("number of the next one", s.claimDeliveries(m, node, 1)[0].Attempts, 3)
	}},
	// If it is unknown whether an end was recorded, it is recorded again.
	{"the end of an attempt is recorded once", func(s *suite) {
		m := s.merchant()
		s.commit(addEvents(m, s.id(), 1, hook))
		d := s.claimDeliveries(m, s.id(), 10)[0]
		s.commit(finish(d))
		first, ended := s.attempts(m, 1), s.delivery(d)
		s.commit(endAttempt(d, 500, store.DeliveryPending, s.past()), endAttempt(d, 404, store.DeliveryPending, s.past()))
		s.equal("attempts and delivery", values(s.attempts(m, 1), s.delivery(d)), values(first, ended))
		s.equal("due", len(s.claimDeliveries(m, s.id(), 10)), 0)
	}},
	// A node that was declared dead is alive: its delivery belongs to another now.
	{"a delivery that another process took over is left alone, and the attempt is recorded", func(s *suite) {
		m, one, two := s.merchant(), s.node(), s.id()
		s.commit(addEvents(m, s.id(), 1, hook))
		lost := s.claimDeliveries(m, one, 10)[0]
		s.release(one)
		mine := s.claimDeliveries(m, two, 10)[0]
		s.equal("the lost attempt has ended", !s.attempts(m, 1)[0].EndedAt.IsZero(), false)
		s.commit(endAttempt(lost, 500, store.DeliveryExhausted, time.Time{}))
		list := s.attempts(m, 1) // it was made, and the current one goes on
		s.equal("attempts", len(list), 2)
		s.equal("status and end of each", values(list[0].Status, list[0].EndedAt.IsZero(), list[1].Status, list[1].EndedAt.IsZero()), values(500, false, 0, true))
		got := s.delivery(mine)
		s.equal("delivery", values(got.State, got.ClaimedBy, got.Attempts), values(store.DeliveryPending, two, 2))
		s.commit(finish(mine))
		s.equal("state, and due ones", values(s.delivery(mine).State, len(s.claimDeliveries(m, two, 10))), values(store.DeliveryDone, 0))
	}},
	// An attempt during which its process died is on record, and counts for no step of
	// the schedule: it may never have been made.
	{"an attempt that died with its process counts for no step of the schedule", func(s *suite) {
		m := s.merchant()
		s.commit(addEvents(m, s.id(), 1, hook))
		die := func() {
			node := s.node()
			s.equal("claimed", len(s.claimDeliveries(m, node, 1)), 1)
			s.release(node)
		}
		die()
		die()
		cutOff := s.attempts(m, 1)
		s.equal("on record", len(cutOff), 2)
		for i, a := range cutOff {
			s.equal("cut off", a, store.Attempt{Merchant: m.ID, Delivery: a.Delivery, URL: hook, Number: i + 1, CreatedAt: a.CreatedAt})
		}
		d := s.claimDeliveries(m, s.id(), 1)[0]
		s.equal("attempts and steps", values(d.Attempts, d.ScheduleStep), values(3, 0))
		s.commit(endAttempt(d, 500, store.DeliveryPending, s.past()))
		die()
		d = s.claimDeliveries(m, s.id(), 1)[0]
		s.equal("attempts and steps", values(d.Attempts, d.ScheduleStep), values(5, 1))
	}},
	{"several deliveries change in one commit, each by itself", func(s *suite) {
		m, other, node := s.merchant(), s.merchant(), s.node()
		s.commit(addEvents(m, s.id(), 4, hook), addEvents(other, s.id(), 1, hook))
		list, theirs := s.claimDeliveries(m, node, 10), s.claimDeliveries(other, node, 10)
		s.commit(setDelivery(list[0], returned(s.past())), setDelivery(list[1], returned(s.later())), finish(list[2]),
			setDelivery(theirs[0], returned(s.past())), setDelivery(list[0], func(d *store.Delivery) { d.ScheduleStep = 7 })) // twice
		due := s.claimDeliveries(m, s.id(), 10)
		s.equal("due", len(due), 1)
		s.equal("delivery that changed twice", values(due[0].ID, due[0].ScheduleStep), values(list[0].ID, 7))
		s.equal("due of the other merchant", len(s.claimDeliveries(other, s.id(), 10)), 1)
		for i, want := range []int{1, 0, 1, 1} { // claimed again, later, ended, still claimed
			s.equal(fmt.Sprint("attempts of event ", i+1), len(s.attempts(m, int64(i+1))), want)
		}
		s.equal("released", s.release(node), 1) // what ended or was returned is not claimed
	}},
	{"disabling a URL disables the pending deliveries of its order, claimed ones too", func(s *suite) {
		m, node := s.merchant(), s.id()
		p := s.payin(m, "r", func(p *payment.Payin) { p.WebhookURL = hook })
		s.add(p)
		id := p.Payin.ID
		s.commit(addEvents(m, id, 1, hook))
		flying := s.claimDeliveries(m, node, 1)[0]
		s.commit(addEvents(m, id, 1, hook), addEvents(m, id, 1, "https://other.example"), addEvents(m, s.id(), 1, hook))
		s.commit(addEvents(m, id, 1, hook), disable(m, id, hook), addEvents(m, id, 1, "https://third.example"))
		got := s.storedPayin(p) // merchants see no change
		s.equal("disabled, version and time", values(got.WebhookDisabled, got.Version, got.UpdatedAt), values(true, 1, p.Payin.UpdatedAt))

		// It was in flight, and fails: it is not attempted again.
		s.commit(endAttempt(flying, 500, store.DeliveryPending, s.past()))
		s.equal("state of the one in flight, and its answer", values(s.delivery(flying).State, s.attempts(m, 1)[0].Status), values(store.DeliveryDisabled, 500))
		var due []int64
		for _, d := range s.claimDeliveries(m, node, 10) {
			due = append(due, d.EventNumber)
		}
		s.equal("due, of all events", values(due, len(s.events(m))), values([]int64{3, 4, 6}, 6))
	}},
	// The order is locked first: a commit that changes it is waited for, and its event
	// is disabled too.
	{"disabling a URL disables the events of concurrent commits", func(s *suite) {
		m := s.merchant()
		for i := range 20 {
			p := s.payin(m, fmt.Sprint(i), func(p *payment.Payin) { p.WebhookURL = hook })
			s.add(p)
			s.concurrently(4, func(n int) error {
				if n == 0 {
					return s.try(disable(m, p.Payin.ID, hook))
				}
				return s.try(addOrderEvent(p))
			})
		}
		s.equal("due, of all events", values(len(s.claimDeliveries(m, s.id(), 100)), len(s.events(m))), values(0, 60))
	}},
	{"an event is delivered again with a complete schedule", func(s *suite) {
		m, node := s.merchant(), s.id()
		s.commit(addEvents(m, s.id(), 1, hook))
		e := s.events(m)[0]
		s.commit(endAttempt(s.claimDeliveries(m, node, 10)[0], 500, store.DeliveryPending, s.past()))
		second := s.claimDeliveries(m, node, 10)[0]
		s.equal("schedule step, and due while it is claimed", values(second.ScheduleStep, s.redeliver(e)), values(1, 0))
		s.commit(finish(second))
		s.equal("due", s.redeliver(e), 1)
		third := s.claimDeliveries(m, node, 10)[0]
		s.equal("attempts, step and state", values(third.Attempts, third.ScheduleStep, third.State), values(3, 0, store.DeliveryPending))
	}},
	{"the case of a delivery is open until it is closed", func(s *suite) {
		m, subject := s.merchant(), s.id()
		s.commit(addEvents(m, subject, 2, hook))
		list := s.claimDeliveries(m, s.id(), 10)
		var ids [2]payment.ID
		var never, before, after, other, last bool
		s.commit(hasOpenCase(list[0], &never))
		for i, d := range list {
			s.commit(openCase(m, store.CaseWebhook, subject, &ids[i]), setDelivery(d, func(d *store.Delivery) { d.Case = ids[i] }))
		}
		s.commit(hasOpenCase(list[0], &before), closeCase(m, &ids[0]), hasOpenCase(list[0], &after), hasOpenCase(list[1], &other),
			closeCases(m, subject, store.CaseWebhook), hasOpenCase(list[1], &last))
		s.equal("open: never, before, after, the other, at last", values(never, before, after, other, last), values(false, true, false, true, false))
		s.equal("open cases", len(s.openCases(m)), 0)
	}},
	{"the oldest due deliveries are read first, and future ones not at all", func(s *suite) {
		m, node := s.merchant(), s.id()
		s.commit(addEvents(m, s.id(), 3, hook))
		now := s.env.Clock.Now()
		for i, d := range s.claimDeliveries(m, node, 10) { // in an hour, now, an hour ago
			s.commit(endAttempt(d, 500, store.DeliveryPending, now.Add(time.Duration(1-i)*time.Hour)))
		}
		wantDue := func(want bool) {
			s.Helper()
			merchants := must(s.store.DeliveriesDue(s.Context(), now))
			s.equal("has due ones", slices.Contains(merchants, m.ID), want)
		}
		wantDue(true)
		for _, number := range []int64{3, 2} {
			list := s.claimDeliveries(m, node, 1)
			s.equal("claimed, and its event", values(len(list), list[0].EventNumber), values(1, number))
		}
		wantDue(false)
		s.equal("claimed", len(s.claimDeliveries(m, node, 1)), 0)
	}},
}

const hook = "https://shop.example/hook"

// claimDeliveries claims due deliveries of a merchant, and reports them.
func claimDeliveries(m store.Merchant, node payment.ID, limit int, claimed *[]store.Delivery) operation {
	return does(func(n *needs) { n.DueDeliveries(m.ID, limit) }, func(l *loaded, c *changes) {
		*claimed = nil
		for _, d := range l.DueDeliveries(m.ID) {
			d.Claim(node, l.Now())
			c.SetDelivery(d)
			*claimed = append(*claimed, d)
		}
	})
}

// claimDeliveries returns the claimed deliveries in the order of their events.
func (s *suite) claimDeliveries(m store.Merchant, node payment.ID, limit int) (claimed []store.Delivery) {
	s.Helper()
	s.commit(claimDeliveries(m, node, limit, &claimed))
	slices.SortFunc(claimed, func(a, b store.Delivery) int { return int(a.EventNumber - b.EventNumber) })
	return claimed
}

// endAttempt records the end of an attempt. If the delivery is still claimed as d
// is, it moves on: to be attempted again at a time, or to a final state.
func endAttempt(d store.Delivery, status int, state store.DeliveryState, next time.Time) operation {
	return does(func(n *needs) { n.Delivery(d.Merchant, d.ID) }, func(l *loaded, c *changes) {
		v, ok := l.Delivery(d.Merchant, d.ID)
		if !ok || v.Attempts < d.Attempts {
			return
		}
		c.AddAttempt(store.Attempt{
			Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, CreatedAt: d.UpdatedAt, Status: status, Latency: time.Second, Error: "e", Response: "r",
		})
		if v.ClaimedBy != d.ClaimedBy || v.Attempts != d.Attempts {
			return
		}
		v.ClaimedBy, v.ScheduleStep = payment.ID{}, v.ScheduleStep+1
		if v.UpdatedAt = l.Now(); v.State == store.DeliveryPending {
			v.State, v.NextAt = state, next
		}
		c.SetDelivery(v)
	})
}

// finish ends an attempt that succeeded.
func finish(d store.Delivery) operation { return endAttempt(d, 200, store.DeliveryDone, time.Time{}) }

// setDelivery changes a delivery.
func setDelivery(d store.Delivery, change func(d *store.Delivery)) operation {
	return set(func(n *needs) { n.Delivery(d.Merchant, d.ID) }, func(l *loaded) (store.Delivery, bool) { return l.Delivery(d.Merchant, d.ID) },
		(*changes).SetDelivery, change)
}

// returned undoes a claim.
func returned(at time.Time) func(d *store.Delivery) {
	return func(d *store.Delivery) { d.ClaimedBy, d.Attempts, d.NextAt = payment.ID{}, d.Attempts-1, at }
}

// disable disables the deliveries of an order to a URL, those of this commit too.
func disable(m store.Merchant, subject payment.ID, url string) operation {
	return does(func(n *needs) { n.PendingDeliveries(m.ID, subject, url) }, func(l *loaded, c *changes) {
		if p, ok := l.Payin(m.ID, subject); ok {
			p.WebhookDisabled = true
			c.SetPayin(p)
		}
		c.DisableURL(m.ID, subject, url)
		for _, d := range l.PendingDeliveries(m.ID, subject, url) {
			d.State, d.NextAt = store.DeliveryDisabled, time.Time{}
			c.SetDelivery(d)
		}
	})
}

// delivery is a delivery as it is stored.
func (s *suite) delivery(d store.Delivery) (v store.Delivery) {
	s.Helper()
	s.commit(does(func(n *needs) { n.Delivery(d.Merchant, d.ID) }, func(l *loaded, _ *changes) { v, _ = l.Delivery(d.Merchant, d.ID) }))
	return v
}

func (s *suite) attempts(m store.Merchant, number int64) []store.Attempt {
	return must(s.store.Attempts(s.Context(), m.ID, number))
}

// addOrderEvent adds an event of an order, to be delivered unless that is disabled.
func addOrderEvent(p *store.NewPayin) operation {
	m, id := store.Merchant{ID: p.Payin.Merchant}, p.Payin.ID
	return operation{func(n *needs) { n.Payin(m.ID, id) }, func(l *loaded, c *changes) error {
		url := hook
		if v, _ := l.Payin(m.ID, id); v.WebhookDisabled {
			url = ""
		}
		return addEvents(m, id, 1, url).decide(l, c)
	}}
}

// redeliver requests an event again, and returns how many deliveries are due by it.
func (s *suite) redeliver(e payment.Event) (n int64) {
	s.Helper()
	s.write(func(tx *store.AdminTx) (err error) {
		n, err = tx.Redeliver(s.Context(), &e)
		return err
	})
	return n
}

// hasOpenCase reports whether the case of a delivery is open.
func hasOpenCase(d store.Delivery, open *bool) operation {
	return does(func(n *needs) { n.Delivery(d.Merchant, d.ID); n.DeliveryCase(d.Merchant, d.ID) }, func(l *loaded, _ *changes) {
		v, _ := l.Delivery(d.Merchant, d.ID)
		*open = l.HasOpenCase(v)
	})
}
