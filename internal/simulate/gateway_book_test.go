package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Nothing is reported of what the gateway does by itself, on its longer ways.
func TestSoundBooks(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		v.payinsLive()
		v.payoutsLive()
		v.newsLive()
		v.sound()
		for _, o := range v.book.inOrder {
			if story := v.book.story(o.external); !strings.Contains(story, "PENDING created") {
				v.t.Errorf("the story of %s is %q", o.reference, story)
			}
		}
	})
}

// payinsLive takes pay-ins through partial, late and contested payments.
func (v *shop) payinsLive() {
	v.t.Helper()
	p := v.sell("parts", 100, hookURL)
	v.pay(p.ExternalID, "P1", 40)
	v.pay(p.ExternalID, "P2", 90)
	p = v.sell("late", 100, "")
	v.clock.Advance(2 * time.Hour)
	if _, err := v.flow.ExpirePayins(v.t.Context(), 10); err != nil {
		v.t.Fatal(err)
	}
	v.pay(p.ExternalID, "L1", 100)
	p = v.sell("canceled", 100, hookURL)
	_, err := v.flow.CancelPayin(v.t.Context(), v.m.ID, p.ID)
	v.must(err)
	v.books.acks[len(v.books.acks)-1].canceled = true
	v.pay(p.ExternalID, "K1", 99)
	refused := processor.TransferAnswer{Outcome: processor.Refused, Evidence: "422"}
	v.send(refused) // out-new
	p = v.sell("reversed", 90_000, hookURL)
	v.pay(p.ExternalID, "R1", 90_000)
	v.withdraw("spent", 150_000)
	v.dispute(p.ExternalID, 90_000, processor.DisputeReversed)
	v.send(refused)
	v.sell("registered", registered, hookURL)
	p = v.sell("refused", 100, hookURL)
	v.report(p.ExternalID, processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeOpen, Failure: &payment.Failure{Code: "a", Message: "b"}})
	v.report(p.ExternalID, processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeAnalysis})
	v.report(p.ExternalID, processor.ChargeReport{Lookup: processor.Found, State: processor.ChargeFailed})
	v.pay(p.ExternalID, "F1", 100)
	v.sound()
}

// payoutsLive takes payouts through unknown outcomes, returns and a death.
func (v *shop) payoutsLive() {
	v.t.Helper()
	v.clock.Advance(time.Minute)
	v.ask(processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid}) // out-sent
	p := v.withdraw("canceled", 10)
	_, err := v.flow.CancelPayout(v.t.Context(), v.m.ID, p.ID)
	v.must(err)
	v.withdraw("doubtful", 300)
	v.send(processor.TransferAnswer{Outcome: processor.NotSent})
	v.clock.Advance(time.Minute)
	v.send(processor.TransferAnswer{Outcome: processor.Unknown})
	v.clock.Advance(time.Minute)
	v.ask(processor.TransferReport{Lookup: processor.NotFound})
	v.send(processor.TransferAnswer{Outcome: processor.Unknown})
	v.clock.Advance(time.Minute)
	v.ask(processor.TransferReport{Lookup: processor.LookupUnknown})
	v.clock.Advance(time.Minute)
	v.ask(processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Returned: 100})
	v.withdraw("back", 50)
	_, _, err = v.flow.BeginSends(v.t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
	v.must(err)
	v.must(v.flow.Leave(v.t.Context()))
	v.must(v.flow.Join(v.t.Context(), 0, false))
	v.clock.Advance(time.Minute)
	v.ask(processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Returned: 50})
	v.withdraw("odd", 60)
	v.send(bankSays(processor.TransferProcessing))
	v.clock.Advance(time.Minute)
	list, err := v.flow.ClaimQuestions(v.t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
	v.must(err)
	v.must(v.flow.SettlePayout(v.t.Context(), list[0], processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, Amount: 61}))
	v.sound()
}

// newsLive lets receivers fail, want no more, and ask again.
func (v *shop) newsLive() {
	v.t.Helper()
	for range 11 {
		if v.deliver(500) == 0 {
			v.t.Fatal("nothing is delivered")
		}
		v.clock.Advance(time.Hour)
	}
	p := v.sell("gone", 100, hookURL)
	v.pay(p.ExternalID, "G1", 60)
	v.deliver(410)
	v.pay(p.ExternalID, "G2", 60)
	if v.deliver(200) != 0 {
		v.t.Error("a receiver that wants no more news gets some")
	}
	q := v.sell("again", 100, hookURL)
	v.pay(q.ExternalID, "G3", 100)
	back, err := v.flow.ClaimDeliveries(v.t.Context(), v.m.ID, 1)
	v.must(err)
	if len(back) != 1 {
		v.t.Fatalf("%d deliveries are due", len(back))
	}
	back[0].NextAt = v.clock.Now()
	v.must(v.flow.ReturnDeliveries(v.t.Context(), back[0].Merchant, back[:1]))
	v.deliver(200)
	events, err := v.store.Events(v.t.Context(), v.m.ID, 0, 1000)
	v.must(err)
	last := events[len(events)-1]
	v.book.redeliver(payment.PublicEventID(last.ID))
	v.must(v.flow.Redeliver(v.t.Context(), v.m.ID, last.ID))
	v.deliver(200)
	v.forget(last)
	for {
		notices, err := v.flow.ClaimNotices(v.t.Context(), 10)
		v.must(err)
		if len(notices) == 0 {
			break
		}
		v.must(v.flow.StickNotice(v.t.Context(), notices[0], payment.ID{}, "It says nothing."))
	}
}

// Every corruption of a sound database is reported, as the rule that it breaks.
func TestCorruptionsAreReported(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		v.lax()
		seen := map[string]bool{}
		for _, c := range corruptions {
			if seen[c.name] {
				v.t.Errorf("two corruptions are called %q", c.name)
			}
			seen[c.name] = true
			expect(v.t, c.name, v.corrupt(c.sql, nil), c.invariant, c.says)
		}
	})
}

// Where finished deliveries may go, others may not, nor young ones, nor attempts
// alone.
func TestRemovalIsBounded(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		v.lax()
		v.book.retention, v.book.now = time.Hour, v.clock.Now
		const attempts, deliveries = "DELETE FROM delivery_attempts", "DELETE FROM deliveries WHERE state = "
		expect(v.t, "a young delivery goes", v.corrupt([]string{attempts, deliveries + "'delivered'"}, nil), "I7", "was deleted")
		v.clock.Advance(2 * time.Hour)
		if found := v.corrupt([]string{attempts, deliveries + "'delivered'"}, nil); len(found) > 0 {
			v.t.Errorf("an old delivery goes: %+v", found)
		}
		expect(v.t, "one that waits goes", v.corrupt([]string{deliveries + "'pending'"}, nil), "I7", "was deleted")
		expect(v.t, "attempts go alone", v.corrupt([]string{attempts}, nil), "I7", "and the delivery is not")
	})
}

// The words of an event are read, and held against the order.
func TestWordsOfNews(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		a := v.books.ack("in-open")
		for i, w := range newsWords {
			body := strings.NewReplacer("{id}", a.id, "{external}", a.externalID).Replace(w.body)
			place := store.Place{Table: "events", Merchant: v.m.ID, ID: payment.ID([]byte(freshID)), Column: "body"}
			sealed := v.keys.Seal(place, []byte(body))
			news := []string{cancelOpen, addEvent + `SELECT merchant_id, (SELECT max(number) + 1 FROM events), $1, 'payin.canceled', id, version, $2, created_at
				FROM payins WHERE reference_id = 'in-open'`}
			found := v.corrupt(news, sealed)
			expect(v.t, w.name, found, "I7", w.says)
			if i == 0 && len(found) != 1 {
				v.t.Errorf("besides: %+v", found)
			}
			if i == 0 {
				found = v.corrupt(append(news, addDelivery+"SELECT merchant_id, $1, number, subject_id, 'x', 'pending', 0, 1, $2, 1, 1 FROM events WHERE id = $1"), sealed)
				expect(v.t, "a delivery to elsewhere", found, "I7", "to x begins as pending")
			}
		}
	})
}

// expect looks for a report of a rule with these words.
func expect(t *testing.T, name string, found []violation, invariant, words string) {
	t.Helper()
	for _, broken := range found {
		if broken.invariant == invariant && strings.Contains(broken.text, words) {
			return
		}
	}
	t.Errorf("%s: no %s with %q in %+v", name, invariant, words, found)
}

// forget lets finished deliveries go for their age, and has one made anew.
func (v *shop) forget(last payment.Event) {
	v.t.Helper()
	v.book.retention, v.book.now = time.Hour, v.clock.Now
	v.clock.Advance(2 * time.Hour)
	v.read()
	before := v.clock.Now().Add(-time.Hour)
	_, err := v.flow.BeginRemoval(v.t.Context(), before, time.Hour)
	v.must(err)
	_, looked, removed, err := v.flow.RemoveDeliveries(v.t.Context(), v.m.ID, payment.ID{}, before, 1000)
	v.must(err)
	if removed == 0 || int(removed) == looked { // the one that was given up stays
		v.t.Errorf("removed %d of %d", removed, looked)
	}
	v.read()
	v.book.redeliver(payment.PublicEventID(last.ID))
	v.must(v.flow.Redeliver(v.t.Context(), v.m.ID, last.ID))
	v.deliver(200)
}

// An event comes to a receiver while an attempt of it is under way, and at no
// other time: its sender may have been given up for dead by then.
func TestArrivalsAreExpected(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		p := v.sell("early", 100, hookURL)
		v.pay(p.ExternalID, "E1", 100)
		events, err := v.store.Events(v.t.Context(), v.m.ID, 0, 10)
		v.must(err)
		id := payment.PublicEventID(events[0].ID)
		early := func(when string) {
			v.t.Helper()
			v.book.arrives(id)
			expect(v.t, when, v.book.found, "I7", "no attempt to deliver it is under way")
			v.book.found = nil
		}
		early("before it is taken in hand")
		list, err := v.flow.ClaimDeliveries(v.t.Context(), v.m.ID, 1)
		v.must(err)
		v.book.arrives(id)
		v.must(v.flow.Leave(v.t.Context()))
		v.book.arrives(id)
		v.sound()
		e := &flow.EndedDelivery{End: store.End{Delivery: list[0], Attempt: store.Attempt{Delivery: list[0].ID, Status: 500}}}
		v.must(v.flow.EndDelivery(v.t.Context(), e))
		v.sound()
		early("after its end")
	})
}
