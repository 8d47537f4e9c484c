package delivery_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
)

// The process dies after the receiver got the event and before that is recorded: the
// event is sent again, with the same id and the same bytes.
func TestCrashBetweenSendAndRecord(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		addEvents(g, g.Merchant, 1, hook)
		dying := g.Second()
		g.Receivers.Answer(func(_ *http.Request, n int) (*http.Response, error) {
			if n == 1 {
				dying.Must(dying.Store.Close()) // nothing that it does from here on leaves a trace
			}
			return coretest.Respond(200)
		})
		step(dying)
		g.Deliver()
		g.WantRequests(1) // it is still claimed by the dead process
		g.Pass(5 * time.Second)
		g.Deliver()
		list := g.WantRequests(2)
		if list[0].ID != list[1].ID || list[0].Body != list[1].Body {
			t.Errorf("sent %+v, then %+v", list[0], list[1])
		}
		recorded := attempts(g, g.Merchant, 1)
		if len(recorded) != 2 || !recorded[0].EndedAt.IsZero() || recorded[1].Status != 200 {
			t.Errorf("recorded: %+v", recorded)
		}
		g.Jump(100 * time.Hour)
		g.Deliver()
		g.WantRequests(2)
	})
}

// Even if several processes die that have claimed a delivery, its receiver gets all
// the attempts of the schedule, at their times.
func TestDeathsUseNoAttempts(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(500)
		addEvents(g, g.Merchant, 1, hook)
		for range len(waits) + 1 {
			dying := g.Second()
			if claimed := claimDue(dying, g.Merchant, 1); len(claimed) != 1 {
				t.Fatalf("claimed %v", claimed)
			}
			g.Pass(5 * time.Second)
		}
		g.Deliver()
		g.WantRequests(1)
		g.Jump(waits[0] + waits[0]/10 + time.Second)
		g.Deliver()
		g.WantRequests(2)
	})
}

// A process that may have been declared dead stops sending its claimed deliveries,
// and returns them as if they had never been attempted.
func TestLostLeaseStopsTheQueue(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		blocked := g.Receivers.Block(t)
		addEvents(g, g.Merchant, 20, hook)
		step(g)
		for range 8 {
			<-blocked.Arrived
		}
		other := g.Second()
		g.Clock.Advance(2600 * time.Millisecond) // without a heartbeat
		blocked.Release()
		g.WaitIdle()
		g.WantRequests(8)
		other.Heartbeat()
		other.Deliver()
		if n := distinct(other.WantRequests(20)); n != 20 {
			t.Errorf("%d events were sent, want 20", n)
		}
		for n := range int64(20) {
			if list := attempts(g, g.Merchant, n+1); len(list) != 1 || list[0].Status != 200 {
				t.Errorf("event %d: %+v", n+1, list)
			}
		}
	})
}
