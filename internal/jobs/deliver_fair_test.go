package jobs_test

import (
	"strings"
	"testing"
	"time"
)

// A receiver that answers nobody is held off its neighbours.
func TestDeadReceiverDelaysNobodyElse(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.besides()
		neighbour := g.merchantNamed("Vizinha", "")
		hold := g.web.hold(t, "https://alive.example/")
		g.announce(g.merchant, 100, "https://dead.example/hook")
		g.step()
		for range 8 {
			<-hold.arrived
		}
		// All its places are taken, and its backlog waits. Now comes another's news.
		g.announce(neighbour, 10, "https://alive.example/hook")
		g.step()
		for range 10 {
			if url := <-hold.arrived; !strings.HasPrefix(url, "https://alive.example/") {
				t.Fatalf("a ninth request at once: %s", url)
			}
		}
		hold.let()
		g.settled()
	})
}

// A backlog to one receiver flows through its eight places.
func TestBacklogFlowsThroughEightPlaces(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.besides()
		hold := g.web.hold(t)
		g.announce(g.merchant, 200, hook)
		g.step()
		for range 8 {
			<-hold.arrived
		}
		hold.let()
		for range 10 {
			g.settled()
			g.step()
		}
		g.settled()
		seen := map[string]bool{}
		for _, r := range g.wantRequests(200) {
			seen[r.id] = true
		}
		if len(seen) != 200 || g.web.most != 8 {
			t.Errorf("%d events, %d at once at most", len(seen), g.web.most)
		}
	})
}

// What a sick receiver's rest puts off was not tried: it costs no attempt, and
// comes once the receiver is back.
func TestSickReceiverGetsItsBacklogWhenItIsBack(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.web.always(500)
		g.announce(g.merchant, 30, hook)
		g.deliver()
		g.wantRequests(5)
		tried := 0
		for n := range int64(30) {
			tried += len(g.attempts(g.merchant, n+1))
		}
		if tried != 5 {
			t.Errorf("%d attempts on record, and 5 were made", tried)
		}
		for range 60 {
			g.pass(time.Second)
			g.deliver()
		}
		if n := len(g.web.requests()); n > 5+8 {
			t.Errorf("%d requests within a minute: the pause does not grow", n)
		}
		g.web.always(200)
		for range 3 * 60 {
			g.pass(time.Second)
			g.deliver()
		}
		done := 0
		for n := range int64(30) {
			if list := g.attempts(g.merchant, n+1); len(list) > 0 && list[len(list)-1].Status == 200 {
				done++
			}
		}
		if done < 25 { // the first ones may have run into the schedule's longer waits
			t.Errorf("%d of 30 events were delivered three minutes after the receiver came back", done)
		}
	})
}
