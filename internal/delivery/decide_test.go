package delivery_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

var ids = regexp.MustCompile(`[0-9a-f]{32}`)

// wantDecision compares the changes of an operation, and those of committing it
// once more; ids are shown as "id".
func wantDecision(g *coretest.Gateway, op write.Operation, changes, again string) {
	g.T.Helper()
	v := g.Decide(op)
	g.Must(v.Refusal)
	if got, want := ids.ReplaceAllString(v.Changes, "id"), coretest.Lines(changes); got != want {
		g.T.Errorf("changes\n%s\nwant\n%s", got, want)
	}
	if got, want := ids.ReplaceAllString(v.Again, "id"), coretest.Lines(again); got != want {
		g.T.Errorf("when it is committed once more it changes\n%s\nwant\n%s", got, want)
	}
}

// situation is the history of the two pending deliveries of a pay-in, of which this
// process claimed the first one.
type situation func(g *coretest.Gateway, d store.Delivery)

// claimTwo makes a pay-in with two events, and claims the delivery of the first one.
func claimTwo(g *coretest.Gateway) store.Delivery {
	g.T.Helper()
	p := g.Payin(g.Merchant, "r", hook)
	addEventsOf(g, g.Merchant, p.ID, 2, hook)
	list := claimDue(g, g.Merchant, 1)
	if len(list) != 1 || list[0].Subject != p.ID {
		g.T.Fatalf("claimed %+v", list)
	}
	return list[0]
}

// The situations.
var (
	unchanged situation = func(*coretest.Gateway, store.Delivery) {}
	// lost: this process was declared dead, and another one has claimed it.
	lost situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Execute("UPDATE deliveries SET attempts = 2, claimed_by = " + literal(g, []byte("other node......")) + " WHERE id = " + literal(g, d.ID[:]))
	}
	// returned: it was returned without an attempt.
	returned situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Must(g.Writer.Do(g.T.Context(), delivery.NewReturn(g.Clock.Now(), d)))
	}
	// disabled: the receiver has answered 410 to another event of the order.
	disabled situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Execute("UPDATE deliveries SET state = 'disabled', next_at = 0 WHERE subject_id = " + literal(g, d.Subject[:]))
	}
	// removed: it was removed for its age.
	removed situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Execute("DELETE FROM deliveries WHERE id = " + literal(g, d.ID[:]))
	}
	// inCase: its attempts had failed, and it was requested again.
	inCase situation = func(g *coretest.Gateway, d store.Delivery) {
		g.Must(g.Writer.Do(g.T.Context(), ended(d, store.DeliveryExhausted, 500)))
		g.Must(g.Deliveries.Redeliver(g.T.Context(), d.Merchant, eventOf(g, g.Merchant, 1).ID))
		claimDue(g, g.Merchant, 10)
	}
)

// literal is an id as SQL writes it.
func literal(g *coretest.Gateway, id []byte) string {
	if g.Engine == "postgres" {
		return fmt.Sprintf(`'\x%x'`, id)
	}
	return fmt.Sprintf("x'%x'", id)
}

type endRow struct {
	name    string
	after   situation
	attempt int // the number of the attempt that ends
	state   store.DeliveryState
	status  int
	want    string
	again   string // when it is committed once more
}

func decideEnds(t *testing.T, rows []endRow) {
	t.Helper()
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				g := g.For(t)
				d := claimTwo(g)
				r.after(g, d)
				d.Attempts = r.attempt
				end := ended(d, r.state, r.status)
				if r.state == store.DeliveryPending {
					end.NextAt = g.Clock.Now().Add(5 * time.Second)
				}
				wantDecision(g, end, r.want, r.again)
			})
		}
	})
}

// The changes at the end of an attempt, if the process still has the delivery
// claimed.
func TestDecideEnd(t *testing.T) {
	decideEnds(t, []endRow{
		{
			"delivered", unchanged, 1, store.DeliveryDone, 200, `
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→delivered
			+delivery_attempts 200`, "",
		},
		{
			"to be tried again", unchanged, 1, store.DeliveryPending, 503, `
			deliveries claimed_by:this→- next_at:-→in 5s schedule_step:0→1
			+delivery_attempts 503`, "",
		},
		{
			"exhausted", unchanged, 1, store.DeliveryExhausted, 500, `
			+cases webhook_exhausted 0 event:evt_id
			deliveries case_id:→id claimed_by:this→- schedule_step:0→1 state:pending→exhausted
			+delivery_attempts 500`, "",
		},
		{
			"disabled", unchanged, 1, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→disabled
			deliveries next_at:now→- state:pending→disabled
			+delivery_attempts 410`, "",
		},
		{
			"delivered, of an order that was disabled", disabled, 1, store.DeliveryDone, 200, `
			deliveries claimed_by:this→- schedule_step:0→1
			+delivery_attempts 200`, "",
		},
		{
			"exhausted, of an order that was disabled", disabled, 1, store.DeliveryExhausted, 500, `
			deliveries claimed_by:this→- schedule_step:0→1
			+delivery_attempts 500`, "",
		},
	})
}

// The changes at the end of an attempt, if the process has lost the delivery.
func TestDecideEndOfALostDelivery(t *testing.T) {
	decideEnds(t, []endRow{
		{"delivered", lost, 1, store.DeliveryDone, 200, "+delivery_attempts 200", ""},
		{"exhausted", lost, 1, store.DeliveryExhausted, 500, "+delivery_attempts 500", ""},
		{
			"disabled: it is the receiver's answer all the same", lost, 1, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			deliveries state:pending→disabled
			deliveries next_at:now→- state:pending→disabled
			+delivery_attempts 410`, "",
		},
		{"returned without an attempt", returned, 1, store.DeliveryDone, 200, "", ""},
		{"removed for its age", removed, 1, store.DeliveryDone, 200, "", ""},
		{
			"removed for its age, and disabled", removed, 1, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			deliveries next_at:now→- state:pending→disabled`, "",
		},
	})
}

// The changes at the end of a later attempt, after a case was opened.
func TestDecideEndWithACase(t *testing.T) {
	decideEnds(t, []endRow{
		{
			"delivered", inCase, 2, store.DeliveryDone, 200, `
			cases closed_at:-→now resolution:→delivered
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→delivered
			+delivery_attempts 200`, "",
		},
		{
			"exhausted again: one case", inCase, 2, store.DeliveryExhausted, 500, `
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→exhausted
			+delivery_attempts 500`, "",
		},
		{
			"disabled", inCase, 2, store.DeliveryDisabled, 410, `
			payins webhook_disabled:0→1
			cases closed_at:-→now resolution:→disabled
			deliveries claimed_by:this→- schedule_step:0→1 state:pending→disabled
			deliveries state:pending→disabled
			+delivery_attempts 410`, "",
		},
		{
			"the attempt before, once more", inCase, 1, store.DeliveryExhausted, 500, "", "",
		},
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
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				g := g.For(t)
				d := claimTwo(g)
				r.after(g, d)
				wantDecision(g, delivery.NewReturn(g.Clock.Now().Add(time.Minute), d), r.want, "")
			})
		}
	})
}

// The changes of a claim of due deliveries.
func TestDecideClaim(t *testing.T) {
	const mine = "deliveries attempts:0→1 claimed_by:-→this next_at:now→-"
	rows := []struct {
		name  string
		set   string // of the two deliveries that are due
		limit int
		want  string
	}{
		{"two", "", 10, mine + "\n" + mine},
		{"one of them", "", 1, mine},
		{"due later", "next_at = next_at + 1", 10, ""},
		{"disabled", "state = 'disabled', next_at = 0", 10, ""},
		{"claimed by another process", "attempts = 1, next_at = 0, claimed_by = NODE", 10, ""},
		{"tried before", "attempts = 3, schedule_step = 2", 1, "deliveries attempts:3→4 claimed_by:-→this next_at:now→-"},
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, r := range rows {
			t.Run(r.name, func(t *testing.T) {
				g := g.For(t)
				addEvents(g, g.Merchant, 2, hook)
				if r.set != "" {
					set := regexp.MustCompile("NODE").ReplaceAllString(r.set, literal(g, []byte("other node......")))
					g.Execute("UPDATE deliveries SET " + set + " WHERE merchant_id = " + literal(g, g.Merchant.ID[:]))
				}
				op, claimed := delivery.NewClaim(g.Merchant.ID, g.Node.ID(), r.limit)
				wantClaim(g, op, claimed, r.want)
			})
		}
	})
}

// wantClaim compares the changes of a claim, and checks that its result equals the
// stored rows, with their events. Repeated, it claims the rest up to the limit.
func wantClaim(g *coretest.Gateway, op write.Operation, claimed func() []store.Delivery, want string) {
	g.T.Helper()
	v := g.Decide(op)
	g.Must(v.Refusal)
	if got := ids.ReplaceAllString(v.Changes, "id"); got != want {
		g.T.Errorf("changes\n%s\nwant\n%s", got, want)
	}
	for _, d := range claimed() { // of the second commit
		event := eventOf(g, g.Merchant, d.EventNumber)
		if d.ClaimedBy != g.Node.ID() || !d.NextAt.IsZero() || d.Event.ID != event.ID || string(d.Event.Body) != string(event.Body) {
			g.T.Errorf("claimed %+v", d)
		}
	}
}

// A process that was declared dead claims no delivery, and a redelivery of an event of
// another merchant is refused.
func TestDecideRefusals(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		addEvents(g, g.Merchant, 1, hook)
		op, claimed := delivery.NewClaim(g.Merchant.ID, payment.ID{1}, 10)
		if v := g.Decide(op); !errors.Is(v.Refusal, write.ErrNodeDead) || len(claimed()) != 0 {
			t.Errorf("%v, claimed %v", v.Refusal, claimed())
		}
		other := addMerchant(g, "other", "")
		if err := g.Deliveries.Redeliver(t.Context(), other.ID, eventOf(g, g.Merchant, 1).ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("redelivered: %v", err)
		}
	})
}
