package endpoint_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
)

// trickle lets events come for a time, the first of them now, with work every other second.
func (g hooks) trickle(last time.Duration, every time.Duration, each func()) {
	g.T.Helper()
	const step = 2 * time.Second
	for at := time.Duration(0); at < last; at += step {
		if at%every == 0 {
			g.cancel(fmt.Sprintf("missed-%03d", at/time.Second), "")
		}
		g.work()
		if each != nil {
			each()
		}
		g.Jump(step)
	}
}

// wantInOrder lets two minutes pass: a URL must get all n events in order, after the events that
// were tried before.
func (g hooks) wantInOrder(at string, tried, n int) {
	g.T.Helper()
	for range 24 {
		g.Jump(5 * time.Second)
		g.work()
	}
	if got := g.received(at)[tried:]; len(got) != n || !slices.IsSorted(got) {
		g.T.Errorf("%s got %d of %d events: %q", at, len(got), n, got)
	}
}

// While events come, an endpoint that is down is tried with its oldest event only, at least once
// a minute: so it gets all in order as soon as it answers.
func TestDownIsTriedWithItsOldestEvent(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		from := -1
		g.trickle(6*time.Minute, 10*time.Second, func() {
			if v := g.read(e); from < 0 && v.IsDown() {
				from = len(g.received(url))
			}
		})
		tried := g.received(url)
		for _, v := range tried[from:] {
			if v != "payin.canceled missed-000" {
				t.Errorf("it was tried with %s", v)
			}
		}
		if n := len(tried) - from; n < 5 || n > 10 {
			t.Errorf("it was tried %d times", n)
		}
		g.Receivers.Always(200)
		g.wantInOrder(url, len(tried), 36)
		if e := g.read(e); e.Failures != 0 {
			t.Errorf("%+v", e)
		}
		g.WantProven()
	})
}

// The pauses of a failing endpoint grow with the time of its failure. It gets the missed events
// soon after it answers again.
func TestPausesOfEndpointThatIsDownGrow(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		for i := range 10 {
			g.cancel(fmt.Sprint("missed", i), "")
		}
		tried := map[int]int{} // by hour
		for minute := range 8 * 60 {
			before := len(g.received(url))
			g.work()
			tried[minute/60] += len(g.received(url)) - before
			g.Run(g.Endpoints.DisableFailed) // it counts the hours
			g.Jump(time.Minute)
		}
		if first, last := tried[0], tried[7]; first < 50 || first > 70 || last < 12 || last > 18 {
			t.Errorf("attempts by hour: %v", tried)
		}
		g.Receivers.Always(200)
		for range 9 {
			g.work()
			g.Jump(time.Minute)
		}
		if e := g.read(e); e.Failures != 0 {
			t.Errorf("%+v", e)
		}
		g.WantProven()
	})
}

// While the oldest event is in flight to an endpoint that is down, no later one is claimed: if it
// is accepted, the others follow in order from the feed.
func TestNothingIsClaimedBesideTheOldestEvent(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.add(url, "payin.canceled")
		g.down(url)
		g.trickle(time.Minute, 10*time.Second, nil)
		tried := len(g.received(url))
		g.Receivers.Answer(func(_ *http.Request, n int) (*http.Response, error) {
			if n > tried+1 {
				return coretest.Respond(http.StatusOK)
			}
			g.cancel("missed-late", "")
			for _, node := range []hooks{g, {g.Second()}} {
				_, err := node.Endpoints.Dispatch(t.Context())
				g.Must(err)
				list, err := node.Deliveries.Claim(t.Context(), g.Merchant.ID, 100)
				g.Must(err)
				for i := range list {
					t.Errorf("event %d was claimed", list[i].EventNumber)
				}
			}
			return coretest.Respond(http.StatusOK)
		})
		g.wantInOrder(url, tried, 7)
		g.WantProven()
	})
}

// If a receiver refuses one event alone, that one does not hold back the later ones forever; they
// come in order, and it follows its schedule.
func TestRefusedEventHoldsBackNoOtherForever(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.cancel("a", "")
		g.Receivers.Answer(func(*http.Request, int) (*http.Response, error) {
			if list := g.received(url); list[len(list)-1] == "payin.canceled a" {
				return nil, errors.New("connection reset")
			}
			return coretest.Respond(http.StatusOK)
		})
		g.fail(8, 30*time.Minute)
		if e := g.read(e); !e.IsDown() {
			t.Fatalf("%+v", e)
		}
		for i := range 3 {
			g.cancel(fmt.Sprint("b", i), "")
		}
		g.fail(110, time.Minute)
		var got []string
		for _, v := range g.received(url) {
			if v != "payin.canceled a" {
				got = append(got, v)
			}
		}
		if want := []string{"payin.canceled b0", "payin.canceled b1", "payin.canceled b2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		g.WantProven()
	})
}

// Of two endpoints with one host each counts its own failures: one that fails alone does not pause
// the other, and one that gets few events while the host is down gets them in order too.
func TestEndpointsOfOneHost(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.add(url, "payin.created")
		e := g.add(url+"/second", "payin.canceled")
		g.down(url)
		g.cancel("before", "")
		for i := range 24 {
			g.Payin(g.Merchant, fmt.Sprint("created-", i), "")
			g.work()
			g.Jump(5 * time.Second)
		}
		g.wantReceived(url+"/second", "payin.canceled before")
		g.Receivers.Always(http.StatusServiceUnavailable)
		g.trickle(90*time.Second, 10*time.Second, nil)
		if v := g.read(e); !v.IsDown() {
			t.Errorf("%+v", v)
		}
		first, second := len(g.received(url)), len(g.received(url+"/second"))
		g.Receivers.Always(200)
		g.wantInOrder(url+"/second", second, 9)
		if n := len(g.received(url)) - first; n != 1+24+9 {
			t.Errorf("the first one got %d events", n)
		}
		g.WantProven()
	})
}

// After an outage of hours, too, the missed events come in order, the oldest first.
func TestDownForManyHours(t *testing.T) {
	for _, hours := range []int{3, 30} {
		t.Run(fmt.Sprint(hours), func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				e := g.add(url, "payin.canceled")
				g.down(url)
				for i := range hours {
					g.cancel(fmt.Sprintf("missed-%02d", i), "")
					g.fail(30, 2*time.Minute)
				}
				tried := len(g.received(url))
				g.Receivers.Always(200)
				g.fail(3*60, time.Minute)
				got := g.received(url)[tried:]
				if len(got) != hours || !slices.IsSorted(got) {
					t.Errorf("it got %q", got)
				}
				if e := g.read(e); e.Failures != 0 {
					t.Errorf("%+v", e)
				}
				g.WantProven()
			})
		})
	}
}

// After a wait that the receiver names, too, the oldest event is tried first, and no other one before.
func TestRetryAfterOfOldestEvent(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.add(url, "payin.canceled")
		g.down(url)
		for i := range 4 {
			g.cancel(fmt.Sprint("missed-", i), "")
		}
		g.fail(4*60, time.Minute)
		g.Receivers.Answer(func(*http.Request, int) (*http.Response, error) {
			return coretest.Respond(http.StatusServiceUnavailable, "Retry-After", "7200")
		})
		tried := len(g.received(url))
		g.fail(60, time.Minute)
		if got := g.received(url)[tried:]; !slices.Equal(got, []string{"payin.canceled missed-0"}) {
			t.Fatalf("within an hour it got %q", got)
		}
		g.Receivers.Always(200)
		g.fail(120, time.Minute)
		if got := g.received(url)[tried+1:]; len(got) != 4 || !slices.IsSorted(got) {
			t.Errorf("it got %q", got)
		}
		g.WantProven()
	})
}
