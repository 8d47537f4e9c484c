package delivery_test

import (
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

var ids = regexp.MustCompile(`[0-9a-f]{32}`)

// wantDecision compares the changes of an operation, which makes none if it is committed
// once more; ids are shown as "id".
func wantDecision(t *testing.T, v coretest.Decision, changes string) {
	t.Helper()
	if got, want := ids.ReplaceAllString(v.Changes, "id"), coretest.Lines(changes); got != want || v.Refusal != nil {
		t.Errorf("changes\n%s\n%v, want\n%s", got, v.Refusal, want)
	}
	if v.Again != "" {
		t.Errorf("when it is committed once more it changes\n%s", v.Again)
	}
}

// deliveries are two pending deliveries of a pay-in, in memory.
type deliveries struct{ *coretest.Memory }

func newDeliveries(t *testing.T) deliveries {
	t.Helper()
	m := coretest.NewMemory(t, 0)
	p := m.Payin("r", hook)
	for n := range int64(2) {
		e := payment.Event{Merchant: p.Merchant, ID: m.NewID(), Number: n + 1, Type: payment.EventPayinUnderpaid, Subject: p.ID, Version: n + 2, Body: []byte{'a' + byte(n)}}
		m.Rows.Events = append(m.Rows.Events, store.GivenEvent{Event: e, URL: hook})
		m.Rows.Deliveries = append(m.Rows.Deliveries, store.Delivery{
			Merchant: p.Merchant, ID: m.NewID(), EventNumber: n + 1, Subject: p.ID, URL: hook, State: store.DeliveryPending,
			NextAt: m.Clock.Now(), CreatedAt: m.Clock.Now(), UpdatedAt: m.Clock.Now(),
		})
	}
	return deliveries{m}
}

// claim claims up to n deliveries.
func (m deliveries) claim(n int) []store.Delivery {
	m.T.Helper()
	op, claimed := delivery.NewClaim(m.Merchant.ID, m.Node, n)
	m.Must(m.Commit(op))
	return claimed()
}

// situation is the history of the two deliveries, of which this process claimed the first
// one, d.
type situation func(m deliveries, d store.Delivery)

// otherNode is another process.
var otherNode = payment.ID{1}

// The situations.
var (
	unchanged situation = func(deliveries, store.Delivery) {}
	// lost: this process was declared dead, and another one has claimed it.
	lost situation = func(m deliveries, _ store.Delivery) {
		m.Rows.Deliveries[0].Attempts, m.Rows.Deliveries[0].ClaimedBy = 2, otherNode
	}
	// returned: it was returned without an attempt.
	returned situation = func(m deliveries, d store.Delivery) {
		m.Must(m.Commit(delivery.NewReturn(m.Clock.Now(), d)))
	}
	// disabled: the receiver has answered 410 to another event of the order.
	disabled situation = func(m deliveries, _ store.Delivery) {
		for i := range m.Rows.Deliveries {
			m.Rows.Deliveries[i].State, m.Rows.Deliveries[i].NextAt = store.DeliveryDisabled, time.Time{}
		}
	}
	// removed: it was removed for its age.
	removed situation = func(m deliveries, _ store.Delivery) { m.Rows.Deliveries = m.Rows.Deliveries[1:] }
	// inCase: its attempts had failed, and it was requested again.
	inCase situation = func(m deliveries, d store.Delivery) {
		m.Must(m.Commit(ended(d, store.DeliveryExhausted, 500)))
		again := &m.Rows.Deliveries[0] // as [store.Tx.Redeliver]
		again.State, again.NextAt, again.ScheduleStep = store.DeliveryPending, m.Clock.Now(), 0
		m.claim(10)
	}
)

type endRow struct {
	name    string
	after   situation
	attempt int // the number of the attempt that ends
	state   store.DeliveryState
	status  int
	want    string
}

func decideEnds(t *testing.T, rows []endRow) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			m := newDeliveries(t)
			d := m.claim(1)[0]
			r.after(m, d)
			d.Attempts = r.attempt
			wantDecision(t, m.Decide(r.end(d, m.Clock.Now())), r.want)
		})
	}
}

func (r *endRow) end(d store.Delivery, now time.Time) *delivery.End {
	end := ended(d, r.state, r.status)
	if r.state == store.DeliveryPending {
		end.NextAt = now.Add(5 * time.Second)
	}
	return end
}

// The changes at the end of an attempt, if the process still has the delivery
// claimed.
func TestDecideEnd(t *testing.T) { decideEnds(t, ends) }

// The same on every engine.
func TestEnd(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, r := range ends[:4] {
			t.Run(r.name, func(t *testing.T) {
				g := g.For(t)
				addEventsOf(g, g.Merchant, g.Payin(g.Merchant, "r", hook).ID, 2, hook)
				wantDecision(t, g.Decide(r.end(claimDue(g, g.Merchant, 1)[0], g.Clock.Now())), r.want)
			})
		}
	})
}

var ends = []endRow{
	{"delivered", unchanged, 1, store.DeliveryDone, 200, `
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→delivered
			+delivery_attempts 200`},
	{"to be tried again", unchanged, 1, store.DeliveryPending, 503, `
			deliveries claimed_by:this→- next_at:-→in 5s schedule_step:0→1
			+delivery_attempts 503`},
	{"exhausted", unchanged, 1, store.DeliveryExhausted, 500, `
			+cases webhook_exhausted 0 event:evt_id
			deliveries case_id:→id claimed_by:this→- schedule_step:0→1 state:pending→exhausted
			+delivery_attempts 500`},
	{"disabled", unchanged, 1, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→disabled
			deliveries next_at:now→- state:pending→disabled
			+delivery_attempts 410`},
	{"delivered, of an order that was disabled", disabled, 1, store.DeliveryDone, 200, `
			deliveries claimed_by:this→- schedule_step:0→1
			+delivery_attempts 200`},
	{"exhausted, of an order that was disabled", disabled, 1, store.DeliveryExhausted, 500, `
			deliveries claimed_by:this→- schedule_step:0→1
			+delivery_attempts 500`},
}

// The changes at the end of an attempt, if the process has lost the delivery.
func TestDecideEndOfALostDelivery(t *testing.T) {
	decideEnds(t, []endRow{
		{"delivered", lost, 1, store.DeliveryDone, 200, "+delivery_attempts 200"},
		{"exhausted", lost, 1, store.DeliveryExhausted, 500, "+delivery_attempts 500"},
		{"disabled: it is the receiver's answer all the same", lost, 1, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			deliveries state:pending→disabled
			deliveries next_at:now→- state:pending→disabled
			+delivery_attempts 410`},
		{"returned without an attempt", returned, 1, store.DeliveryDone, 200, ""},
		{"removed for its age", removed, 1, store.DeliveryDone, 200, ""},
		{"removed for its age, and disabled", removed, 1, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			deliveries next_at:now→- state:pending→disabled`},
	})
}

// The changes at the end of a later attempt, after a case was opened.
func TestDecideEndWithACase(t *testing.T) {
	decideEnds(t, []endRow{
		{"delivered", inCase, 2, store.DeliveryDone, 200, `
			cases closed_at:-→now resolution:→delivered
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→delivered
			+delivery_attempts 200`},
		{"exhausted again: one case", inCase, 2, store.DeliveryExhausted, 500, `
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→exhausted
			+delivery_attempts 500`},
		{"disabled", inCase, 2, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			cases closed_at:-→now resolution:→disabled
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→disabled
			deliveries state:pending→disabled
			+delivery_attempts 410`},
		{"the attempt before, once more", inCase, 1, store.DeliveryExhausted, 500, ""},
	})
}

// The changes of returning a claimed delivery without an attempt.
func TestDecideReturn(t *testing.T) {
	rows := []struct {
		name  string
		after situation
		want  string
	}{
		{"claimed", unchanged, "deliveries attempts:1→0 claimed_by:this→- next_at:-→in 1m0s"},
		{"of an order that was disabled", disabled, "deliveries attempts:1→0 claimed_by:this→-"},
		{"claimed by another process", lost, ""},
		{"returned before", returned, ""},
		{"removed for its age", removed, ""},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			m := newDeliveries(t)
			d := m.claim(1)[0]
			r.after(m, d)
			wantDecision(t, m.Decide(delivery.NewReturn(m.Clock.Now().Add(time.Minute), d)), r.want)
		})
	}
}

// The changes of a claim of due deliveries.
func TestDecideClaim(t *testing.T) {
	const mine = "deliveries attempts:0→1 claimed_by:-→this next_at:now→-"
	for _, r := range []struct {
		name  string
		set   func(d *store.Delivery) // of the two that are due; may be nil
		limit int
		want  string
	}{
		{"two", nil, 10, mine + "\n" + mine},
		{"one of them", nil, 1, mine},
		{"due later", func(d *store.Delivery) { d.NextAt = d.NextAt.Add(1) }, 10, ""},
		{"disabled", func(d *store.Delivery) { d.State, d.NextAt = store.DeliveryDisabled, time.Time{} }, 10, ""},
		{"claimed by another process", func(d *store.Delivery) { d.Attempts, d.NextAt, d.ClaimedBy = 1, time.Time{}, otherNode }, 10, ""},
		{"tried before", func(d *store.Delivery) { d.Attempts, d.ScheduleStep = 3, 2 }, 1, "deliveries attempts:3→4 claimed_by:-→this next_at:now→-"},
		{"postponed", func(d *store.Delivery) { d.Postponed = d.NextAt.Add(time.Minute) }, 1, "deliveries next_at:now→in 1m0s"},
		{"damaged", func(d *store.Delivery) { d.Damaged = true }, 1, `
			+cases damaged 0 number:1 table:events
			deliveries case_id:→id next_at:now→- state:pending→exhausted`},
	} {
		t.Run(r.name, func(t *testing.T) {
			m := newDeliveries(t)
			for i := range m.Rows.Deliveries {
				if r.set != nil {
					r.set(&m.Rows.Deliveries[i])
				}
			}
			op, claimed := delivery.NewClaim(m.Merchant.ID, m.Node, r.limit)
			v := m.Decide(op)
			v.Again = "" // it claims the rest up to the limit
			wantDecision(t, v, r.want)
			for _, d := range claimed() {
				wantClaimed(t, d, m.Node, m.Rows.Events[d.EventNumber-1].Event)
			}
		})
	}
}

// The result of a claim equals the stored rows, with their events, on every engine.
func TestClaim(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		addEvents(g, g.Merchant, 2, hook)
		list := claimDue(g, g.Merchant, 10)
		if len(list) != 2 {
			t.Errorf("claimed %d", len(list))
		}
		for _, d := range list {
			wantClaimed(t, d, g.Node.ID(), eventOf(g, g.Merchant, d.EventNumber))
		}
	})
}

func wantClaimed(t *testing.T, d store.Delivery, node payment.ID, event payment.Event) {
	t.Helper()
	if d.ClaimedBy != node || !d.NextAt.IsZero() || d.Event.ID != event.ID || string(d.Event.Body) != string(event.Body) {
		t.Errorf("claimed %+v, event %+v", d, event)
	}
}

// A process that was declared dead claims no delivery.
func TestDecideClaimOfADeadProcess(t *testing.T) {
	m := newDeliveries(t)
	op, claimed := delivery.NewClaim(m.Merchant.ID, otherNode, 10)
	if v := m.Decide(op); !errors.Is(v.Refusal, write.ErrNodeDead) || len(claimed()) != 0 {
		t.Errorf("%v, claimed %v", v.Refusal, claimed())
	}
}
