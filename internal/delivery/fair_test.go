package delivery_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
)

// A receiver that does not answer delays no other.
func TestBlockedReceiverDelaysNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		neighbour := addMerchant(g, "Vizinha", "")
		blocked := g.Receivers.Block(t, "https://alive.example/")
		addEvents(g, g.Merchant, 100, "https://dead.example/hook")
		step(g)
		for range 8 {
			<-blocked.Arrived
		}
		// All its slots are taken, and its backlog waits. Now events of another arrive.
		addEvents(g, neighbour, 10, "https://alive.example/hook")
		step(g)
		for range 10 {
			if url := <-blocked.Arrived; !strings.HasPrefix(url, "https://alive.example/") {
				t.Fatalf("a ninth request at once: %s", url)
			}
		}
		blocked.Release()
		g.WaitIdle()
	})
}

// A receiver with a backlog gets 8 requests at once, one more with each that it answers
// while others wait, and never more than 64.
func TestBacklogWidensWithItsReceiver(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		arrived, done := make(chan chan struct{}, 200), make(chan struct{})
		finish := sync.OnceFunc(func() { close(done) })
		t.Cleanup(finish)
		g.Receivers.Answer(func(*http.Request, int) (*http.Response, error) {
			answer := make(chan struct{})
			arrived <- answer
			select {
			case <-answer:
			case <-done:
			}
			return coretest.Respond(200)
		})
		addEvents(g, g.Merchant, 200, hook)
		step(g)
		var running []chan struct{}
		for want := 8; want < 64+8; want++ { // 128 are claimed at once
			atOnce := min(want, 64)
			for len(running) < atOnce {
				running = append(running, <-arrived)
			}
			g.Deliveries.StartWaiting(t.Context())                              // the limit grows only if one was refused a slot since
			waitFor(g, func() bool { return g.Deliveries.Sending() <= atOnce }) // the answered one may still hold its place
			if n := g.Deliveries.Sending(); n != atOnce {
				t.Fatalf("%d requests at once after %d answers, want %d", n, want-8, atOnce)
			}
			close(running[0])
			running = running[1:]
		}
		finish()
		g.WaitIdle()
		step(g) // the others were not claimed yet
		g.WaitIdle()
		if n, most := distinct(g.WantRequests(200)), g.Receivers.Most(); n != 200 || most != 64 {
			t.Errorf("%d events, %d at once at most", n, most)
		}
	})
}

// A delivery that waits while its receiver is unhealthy was not attempted: it costs no
// attempt, and is sent once the receiver is healthy.
func TestSickReceiverGetsItsBacklogWhenItIsHealthy(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(500)
		addEvents(g, g.Merchant, 30, hook)
		g.Deliver()
		g.WantRequests(5)
		tried := 0
		for n := range int64(30) {
			tried += len(attempts(g, g.Merchant, n+1))
		}
		if tried != 5 {
			t.Errorf("%d attempts are recorded, and 5 were made", tried)
		}
		for range 60 {
			g.Pass(time.Second)
			g.Deliver()
		}
		if n := len(g.Receivers.Requests()); n > 5+8 {
			t.Errorf("%d requests within a minute: the pause does not grow", n)
		}
		g.Receivers.Always(200)
		for range 3 * 60 {
			g.Pass(time.Second)
			g.Deliver()
		}
		done := 0
		for n := range int64(30) {
			if list := attempts(g, g.Merchant, n+1); len(list) > 0 && list[len(list)-1].Status == 200 {
				done++
			}
		}
		if done < 25 { // the first ones may be in the schedule's longer waits
			t.Errorf("%d of 30 events were delivered three minutes after the receiver became healthy", done)
		}
	})
}

// Merchants take turns: if there are more deliveries than slots, those of each are sent.
func TestMerchantsTakeTurns(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		neighbour := addMerchant(g, "Vizinha", "")
		blocked := g.Receivers.Block(t)
		for i := range 64 { // 512 deliveries, to receivers with eight slots each
			addEvents(g, g.Merchant, 8, "https://"+string(rune('a'+i/8))+string(rune('a'+i%8))+".example/hook")
		}
		step(g)
		for range 128 { // half of all
			<-blocked.Arrived
		}
		addEvents(g, neighbour, 8, "https://neighbour.example/hook")
		step(g)
		blocked.Release()
		g.WaitIdle()
		step(g)
		g.WaitIdle()
		sent := 0
		for _, r := range g.Receivers.Requests() {
			if strings.HasPrefix(r.URL, "https://neighbour.") {
				sent++
			}
		}
		if sent != 8 {
			t.Errorf("%d of the neighbour's events were sent", sent)
		}
	})
}

// A merchant whose receivers all hang takes half of the slots, a second such merchant half
// of the others, and so on: another merchant's event is sent at once.
func TestHangingReceiversDelayNoOtherMerchant(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Concurrent()
		second, healthy := addMerchant(g, "Segunda", ""), addMerchant(g, "Vizinha", "")
		blocked := g.Receivers.Block(t, "https://alive.example/")
		for _, m := range []store.Merchant{g.Merchant, second} {
			for i := range 300 { // a wildcard domain has as many hosts as one likes
				addEvents(g, m, 1, fmt.Sprintf("https://h%d.%x.dead.example/hook", i, m.Number))
			}
		}
		step(g)
		for range 128 + 64 {
			<-blocked.Arrived
		}
		addEvents(g, healthy, 1, "https://alive.example/hook")
		step(g)
		if url := <-blocked.Arrived; url != "https://alive.example/hook" {
			t.Errorf("sent to %s before the healthy receiver", url)
		}
		if n := g.Deliveries.Sending(); n > 128+64+1 {
			t.Errorf("%d slots are taken", n)
		}
		blocked.Release()
		g.WaitIdle()
	})
}

// waitFor waits for something that happens concurrently with the test.
func waitFor(g *coretest.Gateway, holds func() bool) {
	g.T.Helper()
	g.Until(func() {
		for !holds() {
			runtime.Gosched()
		}
	})
}
