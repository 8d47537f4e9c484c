package endpoint_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// down makes a URL refuse connections.
func (g hooks) down(at string) {
	g.Receivers.Answer(func(r *http.Request, _ int) (*http.Response, error) {
		if r.URL.String() == at {
			return nil, errors.New("connection refused")
		}
		return coretest.Respond(http.StatusOK)
	})
}

// fail lets time pass, with the work of each part of it.
func (g hooks) fail(times int, each time.Duration) {
	g.T.Helper()
	for range times {
		g.Jump(each)
		g.work()
		g.Run(g.Endpoints.DisableFailed)
	}
}

// An endpoint that was down for an hour gets in order all that it missed; no other waits.
func TestDownForAnHour(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.add(elsewhere, "payin.canceled")
		g.down(url)
		for i := range 12 {
			g.cancel(fmt.Sprintf("missed-%02d", i), "")
			g.work()
			if n := len(g.received(elsewhere)); n != i+1 {
				t.Fatalf("the other got %d of %d", n, i+1)
			}
			for range 5 {
				g.Jump(time.Minute)
				g.work()
			}
		}
		if e := g.read(e); e.Failures < 12 || e.FailingSince.IsZero() || !e.Enabled {
			t.Fatalf("%+v", e)
		}
		tried := len(g.received(url))
		g.Receivers.Always(200)
		for range 200 {
			g.Jump(time.Minute)
			g.work()
		}
		got := g.received(url)[tried:]
		if len(got) != 12 || !slices.IsSorted(got) {
			t.Errorf("it got %q", got)
		}
		g.WantProven()
		if e := g.read(e); e.Failures != 0 || !e.FailingSince.IsZero() {
			t.Errorf("%+v", e)
		}
	})
}

// After five days of nothing but failures an endpoint is disabled, with an event for the
// others and one case; enabled again it gets everything, and the case closes.
func TestFiveDaysOfFailures(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "*")
		g.add(url+"/other", "webhook_endpoint.*")
		g.down(url)
		g.cancel("a", "")
		for day := range 6 {
			g.fail(48, 30*time.Minute)
			if enabled := g.read(e).Enabled; enabled != (day < 5) {
				t.Fatalf("after day %d enabled: %v", day+1, enabled)
			}
			g.cancel(fmt.Sprint("day-", day), "")
			g.work()
		}
		g.wantReceived(url+"/other", "webhook_endpoint.disabled ")
		g.WantCases(store.CaseEndpoint)
		tried := len(g.received(url))
		g.Jump(time.Hour)
		g.work()
		if n := len(g.received(url)); n != tried {
			t.Errorf("%d requests while it was disabled", n-tried)
		}
		g.Receivers.Always(200)
		g.enable(e, true)
		g.work()
		got := g.received(url)[tried:]
		want := []string{"payin.created a", "payin.canceled a"}
		for day := range 6 {
			want = append(want, fmt.Sprint("payin.created day-", day), fmt.Sprint("payin.canceled day-", day))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		g.WantCases()
	})
}

// An endpoint relies on the deliveries of orders with its URL. Deliveries that are given up while
// the endpoint fails are missed by it too: it gets their events, in order, when it is enabled or
// answers again. A delivery that was given up before is not sent again.
func TestGetsWhatWasGivenUpForOrders(t *testing.T) {
	for name, hours := range map[string]int{"answers again": 110, "was disabled": 130} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				e := g.add(url, "*")
				g.Receivers.Answer(func(r *http.Request, _ int) (*http.Response, error) {
					if len(g.received(url)) > 1 { // not the creation
						return coretest.Respond(http.StatusInternalServerError)
					}
					return coretest.Respond(http.StatusOK)
				})
				g.Payin(g.Merchant, "old", url)
				g.work()
				g.cancel("old", url)
				g.fail(90, time.Hour)
				g.WantCases(store.CaseWebhook)
				g.Receivers.Always(200)
				a := g.Payin(g.Merchant, "a", url)
				g.work()
				g.down(url)
				_, err := g.Payins.Cancel(t.Context(), g.Merchant.ID, a.ID)
				g.Must(err)
				g.cancel("b", url)
				g.fail(110, 2*time.Minute) // the oldest event is tried first, a hundred times
				g.fail(hours, time.Hour)
				disabled := name == "was disabled"
				if got := g.read(e); got.Enabled == disabled || !got.IsDown() {
					t.Fatalf("%+v", got)
				}
				tried := len(g.received(url))
				g.Receivers.Always(200)
				want := []string{"payin.canceled a", "payin.created b", "payin.canceled b"}
				if disabled {
					g.enable(e, true)
				} else {
					g.cancel("c", "")
					want = append([]string{"payin.created c"}, append(want, "payin.canceled c")...)
				}
				g.Jump(2 * time.Minute)
				g.work()
				if got := g.received(url)[tried:]; !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				g.Jump(24 * time.Hour)
				g.work()
				g.WantRequests(tried + len(want))
				g.WantCases(store.CaseWebhook, store.CaseWebhook, store.CaseWebhook) // of the orders
				g.WantProven()
			})
		})
	}
}

// Neither a clock that was set ahead nor a gateway that was stopped for two weeks makes an
// endpoint that failed for an hour one that failed for five days.
func TestFailuresUnderAWrongClock(t *testing.T) {
	const weeks = 14 * 24 * time.Hour
	for name, jump := range map[string]func(g hooks){
		"set ahead": func(g hooks) { g.Clock.SetOffset(weeks) },
		"stopped":   func(g hooks) { g.Jump(weeks) },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				e := g.add(url, "payin.canceled")
				g.down(url)
				g.cancel("a", "")
				g.fail(2, 30*time.Minute)
				jump(g)
				g.cancel("b", "")
				g.fail(6, 10*time.Minute)
				if got := g.read(e); !got.Enabled || got.FailedHours != 1 || g.Clock.Now().Sub(got.FailingSince) < weeks {
					t.Errorf("%+v", got)
				}
				g.Clock.SetOffset(0)
				g.Heartbeat() // which sees that the clock was set back
				g.fail(2, time.Hour)
				if got := g.read(e); !got.Enabled || got.FailedHours != 3 {
					t.Errorf("two hours later: %+v", got)
				}
				g.Receivers.Always(200)
				g.Jump(weeks + 24*time.Hour)
				g.work()
				if got := g.read(e); !got.Enabled || got.FailedHours != 0 {
					t.Errorf("%+v", got)
				}
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// If a clock is set back while an endpoint fails, its five days begin again. The endpoint is
// disabled after them, and gets the missed events when it is enabled.
func TestFailuresAfterAClockWasSetBack(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.down(url)
		g.Clock.SetOffset(14 * 24 * time.Hour)
		g.cancel("a", "")
		g.fail(1, time.Minute)
		g.Clock.SetOffset(0)
		g.cancel("b", "")
		g.fail(5*24, time.Hour)
		if !g.read(e).Enabled {
			t.Error("it was disabled in less than five days")
		}
		g.fail(2, time.Hour)
		if g.read(e).Enabled {
			t.Errorf("after five days: %+v", g.read(e))
		}
		g.WantCases(store.CaseEndpoint)
		tried := len(g.received(url))
		g.Receivers.Always(200)
		g.enable(e, true)
		g.work()
		if got := g.received(url)[tried:]; !slices.Equal(got, []string{"payin.canceled a", "payin.canceled b"}) {
			t.Errorf("got %q", got)
		}
		g.WantCases()
	})
}

// An endpoint is disabled after five days even if its only event has exhausted the schedule and no
// attempt is left. Enabled again, the endpoint gets the event.
func TestFiveDaysWithoutNewEvents(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e, moved := g.add(url, "payin.canceled"), g.add(url+"/moved", "payin.canceled")
		other := g.add(elsewhere, "webhook_endpoint.*")
		g.Receivers.Answer(func(r *http.Request, _ int) (*http.Response, error) {
			if at := r.URL.String(); at == elsewhere || at == url+"/new" {
				return coretest.Respond(http.StatusOK)
			}
			return nil, errors.New("connection refused")
		})
		g.cancel("a", "")
		g.fail(4*48, 30*time.Minute)
		_, err := g.Endpoints.Change(t.Context(), actor.System, moved.Merchant, moved.ID, &wire.EndpointRequest{URL: wire.Some(url + "/new")})
		g.Must(err)
		tried := len(g.received(url))
		if got := g.read(e); !got.Enabled || len(g.received(elsewhere)) != 0 || g.Clock.Now().Sub(got.LastFailure) < 10*time.Hour {
			t.Fatalf("after four days: %+v", got)
		}
		g.fail(7*48, 30*time.Minute)
		if g.read(e).Enabled || len(g.received(url)) != tried {
			t.Errorf("after eleven days: %+v", g.read(e))
		}
		if !g.read(moved).Enabled || !g.read(other).Enabled {
			t.Error("an endpoint was disabled that has not failed")
		}
		g.wantReceived(url+"/new", "payin.canceled a")
		g.wantReceived(elsewhere, "webhook_endpoint.disabled ")
		g.WantCases(store.CaseEndpoint)
		g.Receivers.Always(200)
		g.enable(e, true)
		g.work()
		if got := g.received(url)[tried:]; !slices.Equal(got, []string{"payin.canceled a"}) {
			t.Errorf("got %q", got)
		}
		g.WantCases()
		g.WantProven()
	})
}

// 410 disables the endpoint: no other event is sent, and others get the event.
func TestGoneDisables(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.*")
		g.add(url+"/other", "webhook_endpoint.disabled")
		g.Receivers.Answer(func(r *http.Request, _ int) (*http.Response, error) {
			if r.URL.String() == url {
				return coretest.Respond(http.StatusGone)
			}
			return coretest.Respond(http.StatusOK)
		})
		g.cancel("a", coretest.Hook)
		g.work()
		g.Jump(time.Hour)
		g.cancel("b", coretest.Hook)
		g.work()
		g.wantReceived(url, "payin.created a")
		g.wantReceived(coretest.Hook, "payin.canceled a", "payin.canceled b")
		g.wantReceived(url+"/other", "webhook_endpoint.disabled ")
		if e := g.read(e); e.Enabled || e.Failures != 1 {
			t.Errorf("%+v", e)
		}
		g.WantCases()
		g.Receivers.Always(200)
		g.enable(e, true)
		g.work()
		g.wantReceived(url, "payin.created a", "payin.created a", "payin.canceled a", "payin.created b", "payin.canceled b")
	})
}
