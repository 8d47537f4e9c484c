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

// newDeliveries is a gateway with two pending deliveries of a pay-in.
func newDeliveries(t *testing.T) *coretest.Gateway {
	t.Helper()
	g := coretest.NewWith(t, 0)
	addEventsOf(g, g.Merchant, g.Payin(g.Merchant, "r", hook).ID, 2, hook)
	return g
}

// situation is the history of the two deliveries, of which this process claimed the first
// one, d.
type situation func(g *coretest.Gateway, d store.Delivery)

// otherNode is another process.
var otherNode = payment.ID{1}

// other is otherNode in SQL.
const other = "x'01000000000000000000000000000000'"

// The situations.
var (
	unchanged situation = func(*coretest.Gateway, store.Delivery) {}
	// lost: this process was declared dead, and another one has claimed it.
	lost situation = func(g *coretest.Gateway, _ store.Delivery) {
		g.Execute("UPDATE deliveries SET attempts = 2, claimed_by = " + other + " WHERE event_number = 1")
	}
	// returned: it was returned without an attempt.
	returned situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Must(g.Commit(delivery.NewReturn(g.Clock.Now(), d)))
	}
	// disabled: the receiver has answered 410 to another event of the order.
	disabled situation = func(g *coretest.Gateway, _ store.Delivery) {
		g.Execute("UPDATE deliveries SET state = 'disabled', next_at = 0")
	}
	// removed: it was removed for its age.
	removed situation = func(g *coretest.Gateway, _ store.Delivery) {
		g.Execute("DELETE FROM deliveries WHERE event_number = 1")
	}
	// inCase: its attempts had failed, and it was requested again.
	inCase situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Must(g.Commit(ended(d, store.DeliveryExhausted, 500)))
		g.Must(g.Deliveries.Redeliver(g.T.Context(), g.Merchant.ID, eventOf(g, g.Merchant, 1).ID))
		claimDue(g, g.Merchant, 10)
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
			g := newDeliveries(t)
			d := claimDue(g, g.Merchant, 1)[0]
			r.after(g, d)
			d.Attempts = r.attempt
			wantDecision(t, g.Decide(r.end(d, g.Clock.Now())), r.want)
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
			g := newDeliveries(t)
			d := claimDue(g, g.Merchant, 1)[0]
			r.after(g, d)
			wantDecision(t, g.Decide(delivery.NewReturn(g.Clock.Now().Add(time.Minute), d)), r.want)
		})
	}
}

// The changes of a claim of due deliveries.
func TestDecideClaim(t *testing.T) {
	const mine = "deliveries attempts:0→1 claimed_by:-→this next_at:now→-"
	for _, r := range []struct {
		name  string
		set   string // columns of the two that are due, if any
		limit int
		want  string
	}{
		{"two", "", 10, mine + "\n" + mine},
		{"one of them", "", 1, mine},
		{"due later", "next_at = next_at + 1", 10, ""},
		{"disabled", "state = 'disabled', next_at = 0", 10, ""},
		{"claimed by another process", "attempts = 1, next_at = 0, claimed_by = " + other, 10, ""},
		{"tried before", "attempts = 3, schedule_step = 2", 1, "deliveries attempts:3→4 claimed_by:-→this next_at:now→-"},
	} {
		t.Run(r.name, func(t *testing.T) {
			g := newDeliveries(t)
			if r.set != "" {
				g.Execute("UPDATE deliveries SET " + r.set)
			}
			op, claimed := delivery.NewClaim(g.Merchant.ID, g.Node.ID(), r.limit)
			v := g.Decide(op)
			v.Again = "" // it claims the rest up to the limit
			wantDecision(t, v, r.want)
			for _, d := range claimed() {
				wantClaimed(t, d, g.Node.ID(), eventOf(g, g.Merchant, d.EventNumber))
			}
		})
	}
}

func wantClaimed(t *testing.T, d store.Delivery, node payment.ID, event payment.Event) {
	t.Helper()
	if d.ClaimedBy != node || !d.NextAt.IsZero() || d.Event.ID != event.ID || string(d.Event.Body) != string(event.Body) {
		t.Errorf("claimed %+v, event %+v", d, event)
	}
}

// A process that was declared dead claims no delivery.
func TestDecideClaimOfADeadProcess(t *testing.T) {
	g := newDeliveries(t)
	op, claimed := delivery.NewClaim(g.Merchant.ID, otherNode, 10)
	if v := g.Decide(op); !errors.Is(v.Refusal, write.ErrNodeDead) || len(claimed()) != 0 {
		t.Errorf("%v, claimed %v", v.Refusal, claimed())
	}
}
