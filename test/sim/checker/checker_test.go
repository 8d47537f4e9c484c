package checker

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// The checker reports no violations of a correct gateway.
func TestSoundDatabase(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.runPayins()
		s.runPayouts()
		s.runDeliveries()
		s.refundAtPanel("back")
		s.must(s.Notices.Record(s.ctx, bankName, "n2", "", []byte("unreadable")))
		s.checker.Damaged["notices"] = true // its case is that of a damaged one
		s.applyNotices()
		s.wantSound()
		for _, o := range s.checker.orderList {
			if history := s.checker.History(o.externalID); !strings.Contains(history, "PENDING created") {
				s.t.Errorf("the history of %s is %q", o.reference, history)
			}
		}
	})
}

// runPayins runs pay-ins through partial, late and disputed payments.
func (s *scene) runPayins() {
	s.t.Helper()
	p := s.payin("parts", 100, hookURL)
	s.pay(p.ExternalID, "P1", 40)
	s.pay(p.ExternalID, "P2", 90)
	p = s.payin("late", 100, "")
	s.clock.Advance(2 * time.Hour)
	_, err := s.Payins.Expire(s.ctx)
	s.must(err)
	s.pay(p.ExternalID, "L1", 100)
	p = s.payin("canceled", 100, hookURL)
	_, err = s.Payins.Cancel(s.ctx, s.merchant.ID, p.ID)
	s.must(err)
	s.records.Orders[len(s.records.Orders)-1].Canceled = true
	s.pay(p.ExternalID, "K1", 99)
	s.send(refused) // out-new
	p = s.payin("reversed", 90_000, hookURL)
	s.pay(p.ExternalID, "R1", 90_000)
	s.payout("spent", 150_000)
	s.dispute(p.ExternalID, 90_000, processor.DisputeReversed)
	s.send(refused)
	s.payin("registered", registered, hookURL)
	p = s.payin("refused", 100, hookURL)
	s.report(p.ExternalID, processor.ChargeReport{State: processor.ChargeOpen, Failure: &payment.Failure{Code: "a", Message: "b"}})
	s.report(p.ExternalID, processor.ChargeReport{State: processor.ChargeAnalysis})
	s.report(p.ExternalID, processor.ChargeReport{State: processor.ChargeFailed})
	s.pay(p.ExternalID, "F1", 100)
	s.wantSound()
}

// runPayouts runs payouts through unknown outcomes, returns and a death.
func (s *scene) runPayouts() {
	s.t.Helper()
	s.clock.Advance(time.Minute)
	s.lookUp(found(processor.TransferPaid, 0)) // out-sent
	p := s.payout("canceled", 10)
	_, err := s.Payouts.Cancel(s.ctx, s.merchant.ID, p.ID)
	s.must(err)
	s.payout("doubtful", 300)
	s.send(processor.TransferAnswer{Outcome: processor.NotSent})
	s.clock.Advance(time.Minute)
	s.send(processor.TransferAnswer{Outcome: processor.Unknown})
	s.clock.Advance(time.Minute)
	s.lookUp(processor.TransferReport{Lookup: processor.NotFound})
	s.send(processor.TransferAnswer{Outcome: processor.Unknown})
	s.clock.Advance(time.Minute)
	s.lookUp(processor.TransferReport{Lookup: processor.LookupUnknown})
	s.clock.Advance(time.Minute)
	s.lookUp(found(processor.TransferPaid, 100))
	s.payout("back", 50)
	s.claimSend()
	s.must(s.Cluster.Leave(s.ctx, true))
	s.must(s.Cluster.Join(s.ctx, cluster.Mark{}, true))
	s.clock.Advance(time.Minute)
	s.lookUp(found(processor.TransferPaid, 50))
	s.payout("contradicted", 60)
	s.send(done(processor.TransferProcessing))
	s.clock.Advance(time.Minute)
	s.lookUp(processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: 61})
	s.wantSound()
}

// runDeliveries lets receivers fail, disable events, and request events again.
func (s *scene) runDeliveries() {
	s.t.Helper()
	for range webhookAttempts {
		if s.deliver(500) == 0 {
			s.t.Fatal("nothing is delivered")
		}
		s.clock.Advance(time.Hour)
	}
	p := s.payin("gone", 100, hookURL)
	s.pay(p.ExternalID, "G1", 60)
	s.deliver(410)
	s.pay(p.ExternalID, "G2", 60)
	if s.deliver(200) != 0 {
		s.t.Error("a receiver that disabled the events receives one")
	}
	p = s.payin("again", 100, hookURL)
	s.withLease(func(ctx context.Context) { // it is claimed when it is created, and returned
		s.pay(p.ExternalID, "G3", 100)
		s.Node.Lease.Drop()
		s.Deliveries.Leave(ctx)
	})
	s.deliver(200)
	events, err := s.store.Events(s.ctx, s.merchant.ID, 0, 1000)
	s.must(err)
	last := events[len(events)-1]
	s.redeliver(last)
	s.deliver(200)
	s.redeliverExhausted(events)
	s.removeOld()
	s.redeliver(last)
	s.deliver(200)
}

func (s *scene) redeliver(e payment.Event) {
	s.t.Helper()
	s.checker.RequestedAgain(payment.PublicEventID(e.ID))
	s.must(s.Deliveries.Redeliver(s.ctx, s.merchant.ID, e.ID))
}

// redeliverExhausted requests two exhausted events again: one is delivered, which closes
// its case, and one is exhausted again.
func (s *scene) redeliverExhausted(events []payment.Event) {
	s.t.Helper()
	var exhausted []payment.Event
	for _, e := range events {
		if d := s.checker.eventIDs[payment.PublicEventID(e.ID)].delivery; d != nil && d.state == "exhausted" {
			exhausted = append(exhausted, e)
		}
	}
	if len(exhausted) < 2 {
		s.t.Fatalf("%d deliveries are exhausted", len(exhausted))
	}
	s.redeliver(exhausted[0])
	if s.deliver(200) != 1 {
		s.t.Fatal("an exhausted event is not sent again")
	}
	s.redeliver(exhausted[1])
	for range webhookAttempts {
		s.deliver(500)
		s.clock.Advance(time.Hour)
	}
	s.wantSound()
}

// removeOld removes finished deliveries for their age.
func (s *scene) removeOld() {
	s.t.Helper()
	s.checker.Retention, s.checker.Now = retention, s.clock.Now
	s.clock.Advance(2 * retention)
	count := func() (n int) {
		s.must(s.raw.QueryRowContext(s.ctx, "SELECT count(*) FROM deliveries").Scan(&n))
		return n
	}
	before := count()
	_, err := s.Deliveries.RemoveOld(s.ctx)
	s.must(err)
	s.commit()
	if after := count(); after == before || after == 0 { // those with an open case stay
		s.t.Errorf("of %d deliveries %d are left", before, after)
	}
	s.wantSound()
}

// Every corruption of a correct database is reported as the rule that it breaks.
func TestCorruptionsAreReported(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.relax()
		pending := s.pendingEvent()
		seen := map[string]bool{}
		for _, c := range corruptions {
			if seen[c.name] {
				s.t.Errorf("two corruptions have the name %q", c.name)
			}
			seen[c.name] = true
			statements := make([]string, len(c.sql))
			for i, text := range c.sql {
				statements[i] = pending.Replace(text)
			}
			s.want(c.name, s.corrupt(statements, nil), c.invariant, c.words)
		}
	})
}

// pendingEvent puts the public id and the number of an undelivered event into statements.
func (s *scene) pendingEvent() *strings.Replacer {
	s.t.Helper()
	for _, o := range s.checker.orderList {
		for _, e := range o.events {
			if e.delivery != nil && e.delivery.state == "pending" {
				return strings.NewReplacer("{pending}", publicEventID(e.key.id), "{number}", strconv.FormatInt(e.number, 10))
			}
		}
	}
	s.t.Fatal("no delivery is pending")
	return nil
}

// Old finished deliveries may be removed, but not others, nor attempts alone.
func TestRemovalIsBounded(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.relax()
		s.checker.Retention, s.checker.Now = retention, s.clock.Now
		const attempts, deliveries = "DELETE FROM delivery_attempts", "DELETE FROM deliveries WHERE state = "
		s.want("a young delivery", s.corrupt([]string{attempts, deliveries + "'delivered'"}, nil), Events, "was deleted")
		s.clock.Advance(2 * retention)
		if found := s.corrupt([]string{attempts, deliveries + "'delivered'"}, nil); len(found) > 0 {
			s.t.Errorf("an old delivery: %+v", found)
		}
		s.want("a pending delivery", s.corrupt([]string{deliveries + "'pending'"}, nil), Events, "was deleted")
		s.want("attempts alone", s.corrupt([]string{attempts}, nil), Events, "but the delivery is not")
		s.exhaust("in-open")
		s.clock.Advance(2 * retention)
		const exhausted = "DELETE FROM delivery_attempts WHERE delivery_id IN (SELECT id FROM deliveries WHERE state = 'exhausted')"
		s.want("an exhausted delivery with an open case", s.corrupt([]string{exhausted, deliveries + "'exhausted'"}, nil), Events, "was deleted")
	})
}

// exhaust cancels a pay-in, and refuses the event that follows until it is exhausted.
func (s *scene) exhaust(reference string) {
	s.t.Helper()
	s.deliver(200)
	id, err := payment.ParseID(s.records.order(reference).ID)
	s.must(err)
	_, err = s.Payins.Cancel(s.ctx, s.merchant.ID, id)
	s.must(err)
	for range webhookAttempts {
		if s.deliver(500) != 1 {
			s.t.Fatal("nothing is delivered")
		}
		s.clock.Advance(time.Hour)
	}
}

// The body of an event is decrypted and compared with its order.
func TestEventBodies(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		o := s.records.order("in-open")
		for i, b := range eventBodies {
			body := strings.NewReplacer("{id}", o.ID, "{external}", o.ExternalID).Replace(b.body)
			sealed := s.keys.Seal(db.AssociatedData{Table: "events", Merchant: s.merchant.ID, ID: payment.ID([]byte(freshID)), Column: "body"}, []byte(body))
			event := []string{cancelOpen, addEvent + `SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.canceled', id, version, $2, created_at
				FROM payins WHERE reference_id = 'in-open'`}
			found := s.corrupt(event, sealed)
			s.want(b.name, found, Events, b.words)
			if i == 0 && len(found) != 1 {
				s.t.Errorf("more violations: %+v", found)
			}
			if i == 0 {
				found = s.corrupt(append(event, addDelivery+"SELECT merchant_id, $1, number, subject_id, 'x', 'pending', 0, 0, 1, $2, $2, 1, 1, '', 0 FROM events WHERE id = $1"), sealed)
				s.want("a delivery to another URL", found, Events, "to x begins as pending")
			}
		}
	})
}

// An event reaches a receiver only during an attempt, although its sender may
// have been declared dead by then.
func TestArrivalsAreExpected(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		p := s.payin("early", 100, hookURL)
		s.pay(p.ExternalID, "E1", 100)
		events, err := s.store.Events(s.ctx, s.merchant.ID, 0, 10)
		s.must(err)
		id := payment.PublicEventID(events[0].ID)
		unexpected := func(when string) {
			s.t.Helper()
			s.checker.Arrived(id)
			s.want(when, s.checker.takeViolations(), Events, "no attempt to deliver it is in progress")
		}
		unexpected("before it is claimed")
		list := s.claimDeliveries()
		s.checker.Arrived(id)
		s.must(s.Cluster.Leave(s.ctx, true))
		s.checker.Arrived(id)
		s.wantSound()
		s.endAttempt(list[0], 500)
		s.wantSound()
		unexpected("after its end")
	})
}

// The request of a sender that was declared dead may arrive after the delivery was
// removed for its age, if the clock was ahead meanwhile.
func TestArrivalAfterRemoval(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		pay := func(reference string) {
			s.pay(s.payin(reference, 100, hookURL).ExternalID, reference, 100)
		}
		pay("abandoned")
		s.claimDeliveries()
		s.must(s.Cluster.Leave(s.ctx, true))
		s.must(s.Cluster.Join(s.ctx, cluster.Mark{}, true))
		pay("ended")
		s.clock.Advance(time.Minute)
		if sent := s.deliver(200); sent != 2 {
			s.t.Fatalf("%d events are sent", sent)
		}
		pay("pending")
		events, err := s.store.Events(s.ctx, s.merchant.ID, 0, 10)
		s.must(err)
		s.removeOld()
		arrived := func(e payment.Event) []Violation {
			s.checker.Arrived(payment.PublicEventID(e.ID))
			return s.checker.takeViolations()
		}
		if found := arrived(events[0]); len(found) > 0 {
			s.t.Errorf("%+v", found)
		}
		s.want("every attempt ended", arrived(events[1]), Events, "no attempt to deliver it is in progress")
	})
}
