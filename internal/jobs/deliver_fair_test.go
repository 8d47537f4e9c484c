package jobs_test

import (
	"net/http"
	"strings"
	"sync"
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

// A receiver with a backlog gets 8 requests at once, one more with each that it
// answers while others wait, and never more than 64.
func TestBacklogWidensWithItsReceiver(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.besides()
		arrived, done := make(chan chan struct{}, 200), make(chan struct{})
		finish := sync.OnceFunc(func() { close(done) })
		t.Cleanup(finish)
		g.web.answer = func(*http.Request, int) (*http.Response, error) {
			answer := make(chan struct{})
			arrived <- answer
			select {
			case <-answer:
			case <-done:
			}
			return says(200)
		}
		g.announce(g.merchant, 200, hook)
		g.step()
		var running []chan struct{}
		for want := 8; want < 64+10; want++ {
			atOnce := min(want, 64)
			for len(running) < atOnce {
				running = append(running, <-arrived)
			}
			if n := g.jobs.Sending(); n != atOnce {
				t.Fatalf("%d requests at once after %d answers, want %d", n, want-8, atOnce)
			}
			close(running[0])
			running = running[1:]
		}
		finish()
		g.settled()
		seen := map[string]bool{}
		for _, r := range g.wantRequests(200) {
			seen[r.id] = true
		}
		if len(seen) != 200 || g.web.most != 64 {
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
