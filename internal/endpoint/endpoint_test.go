package endpoint_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// url is the address of a test's endpoint; elsewhere is an address at another host.
const (
	url       = "https://shop.example/events"
	elsewhere = "https://other.example/events"
)

// hooks is a gateway with endpoints.
type hooks struct{ *coretest.Gateway }

func each(t *testing.T, run func(t *testing.T, g hooks)) {
	t.Helper()
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) { run(t, hooks{g}) })
}

// add creates an endpoint that asks for these events.
func (g hooks) add(at string, events ...string) store.Endpoint {
	g.T.Helper()
	e, secret, err := g.Endpoints.Create(g.T.Context(), actor.System, g.Merchant.ID, &wire.EndpointRequest{URL: wire.Some(at), Events: wire.Some(events)})
	g.Must(err)
	if !strings.HasPrefix(secret, "whsec_") {
		g.T.Fatalf("secret %q", secret)
	}
	return e
}

// read reads an endpoint as it is stored.
func (g hooks) read(e store.Endpoint) store.Endpoint {
	g.T.Helper()
	e, err := g.Store.EndpointOf(g.T.Context(), e.Merchant, e.ID)
	g.Must(err)
	return e
}

// enable enables or disables an endpoint.
func (g hooks) enable(e store.Endpoint, enabled bool) {
	g.T.Helper()
	_, err := g.Endpoints.Change(g.T.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{Enabled: wire.Some(enabled)})
	g.Must(err)
}

// work dispatches and delivers until nothing is due.
func (g hooks) work() {
	g.T.Helper()
	for range 200 {
		did, err := g.Endpoints.Dispatch(g.T.Context())
		g.Must(err)
		sent, err := g.Deliveries.Send(g.T.Context())
		g.Must(err)
		if did+sent == 0 {
			return
		}
	}
	g.T.Fatal("there is still work after 200 runs")
}

// cancel makes an event payin.canceled of an order with this reference and the URL hook.
func (g hooks) cancel(reference, hook string) payment.Payin {
	g.T.Helper()
	return g.Canceled(g.Merchant, reference, hook)
}

// received are the references of the events that a URL got and accepted or not, in order.
func (g hooks) received(at string) (list []string) {
	for _, r := range g.Receivers.Requests() {
		if r.URL == at {
			_, rest, _ := strings.Cut(r.Body, `"referenceId":"`)
			reference, _, _ := strings.Cut(rest, `"`)
			kind, _, _ := strings.Cut(strings.SplitN(r.Body, `"type":"`, 2)[1], `"`)
			list = append(list, kind+" "+reference)
		}
	}
	return list
}

func (g hooks) wantReceived(at string, want ...string) {
	g.T.Helper()
	if got := g.received(at); !slices.Equal(got, want) {
		g.T.Errorf("%s got %q, want %q\n%s", at, got, want, g.Log)
	}
}

func TestEndpointGetsWhatItsFilterSelects(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.cancel("before", "")
		canceled, all, created := g.add(url+"/1", "payin.canceled"), g.add(url+"/2", "*"), g.add(url+"/3", "payin.created", "payout.*")
		g.cancel("a", coretest.Hook)
		g.work()
		g.wantReceived(coretest.Hook, "payin.canceled a")
		g.wantReceived(url+"/1", "payin.canceled a")
		g.wantReceived(url+"/2", "payin.created a", "payin.canceled a")
		g.wantReceived(url+"/3", "payin.created a")
		for _, e := range []store.Endpoint{canceled, all, created} {
			if e := g.read(e); e.Failures != 0 || !e.LastSuccessAt.Equal(g.Clock.Now()) || e.Position != 3 {
				t.Errorf("%+v", e)
			}
			g.Must(g.Endpoints.Delete(t.Context(), actor.System, e.Merchant, e.ID))
		}
		g.cancel("b", "")
		g.work()
		g.WantRequests(5)
		g.WantEvents(payment.EventPayinCanceled, payment.EventPayinCreated, payment.EventPayinCanceled, payment.EventPayinCanceled)
		g.WantProven()
	})
}

// A merchant without an endpoint that asks for events of creation has none.
func TestNothingWithoutEndpoint(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.cancel("a", coretest.Hook)
		g.Payout("p", 1)
		g.work()
		g.WantRequests(1)
		g.add(url, "payin.canceled", "payout.canceled", "webhook_endpoint.*")
		g.cancel("b", coretest.Hook)
		g.Payout("q", 1)
		g.work()
		g.WantRequests(3)
		g.WantEvents(payment.EventPayinCanceled, payment.EventPayinCanceled)
	})
}

// The URL of an order that is an endpoint's too gets one delivery, signed by both.
func TestSameURLGetsOneDelivery(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		g.add(url, "payin.canceled")
		second := g.add(url, "*")
		g.cancel("a", url)
		g.work()
		g.wantReceived(url, "payin.canceled a", "payin.created a")
		for _, r := range g.Receivers.Requests() {
			want := 1 // of the second endpoint only
			if strings.Contains(r.Body, "payin.canceled") {
				want = 3
			}
			if got := len(strings.Fields(r.Header.Get("Webhook-Signature"))); got != want {
				t.Errorf("%d signatures, want %d: %s", got, want, r.Body)
			}
		}
		g.Must(g.Endpoints.Delete(t.Context(), actor.System, second.Merchant, second.ID))
		g.cancel("b", "")
		g.work()
		g.wantReceived(url, "payin.canceled a", "payin.created a", "payin.canceled b")
	})
}

// The events that a disabled endpoint has not accepted go to another endpoint with its URL.
func TestOtherEndpointWithTheURLTakesOver(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		first := g.add(url, "payin.canceled")
		g.add(url, "payin.canceled")
		g.Receivers.Always(500)
		g.cancel("a", "")
		g.work()
		g.Receivers.Always(200)
		g.enable(first, false)
		g.work()
		g.wantReceived(url, "payin.canceled a", "payin.canceled a")
		g.enable(first, true)
		g.work()
		g.WantRequests(2)
	})
}

// An attempt in flight as its endpoint is disabled or deleted may be the last: another endpoint with
// the URL does not rely on it.
func TestEndpointIsStoppedDuringAnAttempt(t *testing.T) {
	for name, stop := range map[string]func(g hooks, e store.Endpoint){
		"disabled": func(g hooks, e store.Endpoint) { g.enable(e, false) },
		"deleted": func(g hooks, e store.Endpoint) {
			g.Must(g.Endpoints.Delete(g.T.Context(), actor.System, e.Merchant, e.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(_ *testing.T, g hooks) {
				first := g.add(url, "payin.canceled")
				g.add(url, "payin.canceled")
				g.Receivers.Answer(func(_ *http.Request, n int) (*http.Response, error) {
					if n > 1 {
						return coretest.Respond(http.StatusOK)
					}
					stop(g, first)
					_, err := g.Endpoints.Dispatch(g.T.Context()) // before the attempt ends
					g.Must(err)
					return coretest.Respond(http.StatusInternalServerError)
				})
				g.cancel("a", "")
				g.work()
				g.Jump(time.Hour)
				g.work()
				g.wantReceived(url, "payin.canceled a", "payin.canceled a")
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// move changes the URL of an endpoint.
func (g hooks) move(e store.Endpoint, to string) {
	g.T.Helper()
	_, err := g.Endpoints.Change(g.T.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{URL: wire.Some(to)})
	g.Must(err)
}

// Of two endpoints with one URL either may have the delivery of an event, and the other relies on
// it. If one of them gets a new URL, both URLs get the events without an acceptance.
func TestBothURLsGetWhatWasNotAccepted(t *testing.T) {
	for name, moved := range map[string]int{"that has the delivery": 0, "that relies on it": 1} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				list := []store.Endpoint{g.add(url, "payin.canceled"), g.add(url, "payin.canceled", "payin.expired")}
				g.cancel("before", "")
				g.work()
				g.Receivers.Always(500)
				g.cancel("a", "")
				g.cancel("b", "")
				g.work()
				g.Jump(time.Second)
				late := g.add(url, "*")
				g.move(late, url+"/late")
				g.move(list[moved], elsewhere)
				g.Receivers.Always(200)
				g.Jump(10 * time.Second)
				g.work()
				g.Jump(time.Hour)
				g.work()
				want := []string{"payin.canceled a", "payin.canceled b"}
				got := g.received(elsewhere)
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("the new URL got %q", got)
				}
				got = g.received(url)
				if slices.Sort(got[3:]); !slices.Equal(got, slices.Concat([]string{"payin.canceled before"}, want, want)) {
					t.Errorf("the old URL got %q", got)
				}
				g.wantReceived(url + "/late") // what is older than the endpoint is not its own
				g.cancel("after", "")
				g.work()
				for at, n := range map[string]int{url: 6, elsewhere: 3, url + "/late": 2} {
					if got := g.received(at); len(got) != n || got[n-1] != "payin.canceled after" {
						t.Errorf("%s got %q", at, got)
					}
				}
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// An endpoint that gets a new URL as it is disabled or enabled, or between, gets the missed events
// at the new URL, in order. The other endpoint gets them at the old URL.
func TestURLChangesOfDisabledEndpoint(t *testing.T) {
	set := func(g hooks, e store.Endpoint, enabled bool) {
		_, err := g.Endpoints.Change(g.T.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{URL: wire.Some(elsewhere), Enabled: wire.Some(enabled)})
		g.Must(err)
	}
	for name, change := range map[string]func(g hooks, e store.Endpoint){
		"before":         func(g hooks, e store.Endpoint) { g.move(e, elsewhere); g.enable(e, false); g.work(); g.enable(e, true) },
		"as it disabled": func(g hooks, e store.Endpoint) { set(g, e, false); g.work(); g.enable(e, true) },
		"between":        func(g hooks, e store.Endpoint) { g.enable(e, false); g.move(e, elsewhere); g.work(); g.enable(e, true) },
		"as it enabled":  func(g hooks, e store.Endpoint) { g.enable(e, false); g.work(); set(g, e, true) },
	} {
		for _, moved := range []int{0, 1} {
			t.Run(fmt.Sprint(name, " ", moved), func(t *testing.T) {
				each(t, func(t *testing.T, g hooks) {
					list := []store.Endpoint{g.add(url, "payin.canceled"), g.add(url, "payin.canceled")}
					g.Receivers.Always(500)
					g.cancel("a", "")
					g.cancel("b", "")
					g.work()
					g.Receivers.Always(200)
					change(g, list[moved])
					g.Jump(10 * time.Second)
					g.work()
					want := []string{"payin.canceled a", "payin.canceled b"}
					g.wantReceived(elsewhere, want...)
					got := g.received(url)[2:]
					if slices.Sort(got); !slices.Equal(got, want) {
						t.Errorf("the old URL got %q", got)
					}
					g.Jump(time.Hour)
					g.work()
					g.WantRequests(6)
					g.WantCases()
					g.WantProven()
				})
			})
		}
	}
}

// An endpoint that was disabled gets the missed events in order, and nothing twice.
func TestEnabledAgainGetsWhatItMissedInOrder(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e, other := g.add(url, "payin.canceled"), g.add(url+"/other", "payin.canceled")
		g.cancel("before", "")
		g.work()
		g.enable(e, false)
		want := []string{"payin.canceled before"}
		for i := range 150 {
			name := fmt.Sprintf("missed-%03d", i)
			g.cancel(name, "")
			want = append(want, "payin.canceled "+name)
		}
		g.work()
		g.wantReceived(url, "payin.canceled before")
		g.enable(e, true)
		g.cancel("after", "")
		g.work()
		g.wantReceived(url, append(want, "payin.canceled after")...)
		if got := len(g.received(other.URL)); got != 152 {
			t.Errorf("the other got %d", got)
		}
		if e := g.read(e); !e.Enabled || e.Failures != 0 {
			t.Errorf("%+v", e)
		}
	})
}

// A changed URL gets the deliveries that are due from then on; a rotated secret signs beside the
// previous one.
func TestChangeAndRotate(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.Receivers.Always(500)
		g.cancel("a", "")
		g.work()
		_, err := g.Endpoints.Change(t.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{URL: wire.Some(url + "/new")})
		g.Must(err)
		_, _, err = g.Endpoints.Rotate(t.Context(), actor.System, e.Merchant, e.ID, time.Hour)
		g.Must(err)
		g.Receivers.Always(200)
		g.Jump(10 * time.Second)
		g.work()
		g.wantReceived(url+"/new", "payin.canceled a")
		g.Jump(2 * time.Hour)
		g.cancel("b", "")
		g.work()
		requests := g.WantRequests(3)
		for i, want := range map[int]int{0: 1, 1: 2, 2: 1} {
			if got := len(strings.Fields(requests[i].Header.Get("Webhook-Signature"))); got != want {
				t.Errorf("request %d has %d signatures, want %d", i, got, want)
			}
		}
	})
}

func TestAtMostTwentyEndpoints(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		for i := range 20 {
			g.add(fmt.Sprint(url, i), "*")
		}
		_, _, err := g.Endpoints.Create(t.Context(), actor.System, g.Merchant.ID, &wire.EndpointRequest{URL: wire.Some(url), Events: wire.Some([]string{"*"})})
		if !problem.Is(err, problem.LimitExceeded) || !strings.Contains(string(problem.From(err).Document("r")), `"title":"Limit exceeded"`) {
			t.Errorf("the 21st: %v", err)
		}
		list, err := g.Store.EndpointsOf(t.Context(), g.Merchant.ID)
		if err != nil || len(list) != 20 {
			t.Errorf("%d endpoints, %v", len(list), err)
		}
	})
}

// An endpoint with a damaged secret gets nothing and stops nobody else; after a rotation it gets
// the waiting events.
func TestDamagedEndpointStopsNobody(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.add(url+"/other", "payin.canceled")
		g.Damage("webhook_endpoints", "secret", "url = '"+url+"'")
		g.Execute("UPDATE webhook_endpoints SET version = version + 1")
		other := hooks{g.Second()}
		for range 2 { // it has one case
			for _, node := range []hooks{g, other} {
				_, err := node.Endpoints.Follow(t.Context())
				g.Must(err)
				g.WantCases(store.CaseDamaged)
			}
		}
		g.cancel("a", coretest.Hook)
		g.work()
		g.wantReceived(url)
		g.wantReceived(url+"/other", "payin.canceled a")
		g.wantReceived(coretest.Hook, "payin.canceled a")
		_, _, err := g.Endpoints.Rotate(t.Context(), actor.System, e.Merchant, e.ID, 0)
		g.Must(err)
		g.WantCases()
		g.Jump(time.Minute)
		g.work()
		g.wantReceived(url, "payin.canceled a")
	})
}

// Another process follows within two seconds.
func TestOtherProcessFollows(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		other := hooks{g.Second()}
		g.add(url, "payin.created")
		_, err := other.Endpoints.Registry.Follow(t.Context())
		g.Must(err)
		other.Payin(g.Merchant, "a", "")
		other.work()
		other.wantReceived(url, "payin.created a")
	})
}

// A test event is sent once, signed, also to a disabled endpoint, and leaves nothing.
func TestTestEvent(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.enable(e, false)
		g.Receivers.Always(503)
		left := g.Changes(func() {
			at, a, err := g.Endpoints.Test(t.Context(), e.Merchant, e.ID)
			if err != nil || at != url || a.StatusCode != 503 {
				t.Errorf("%s %+v, %v", at, a, err)
			}
		})
		if left != "" {
			t.Errorf("it left %s", left)
		}
		r := g.WantRequests(1)[0]
		if !strings.Contains(r.Body, `"type":"webhook.test"`) || !strings.Contains(r.Body, e.ID.String()) || len(strings.Fields(r.Header.Get("Webhook-Signature"))) != 1 {
			t.Errorf("%+v", r)
		}
		if _, _, err := g.Endpoints.Test(t.Context(), payment.ID{1}, e.ID); !problem.Is(err, problem.NotFound) {
			t.Errorf("of another merchant: %v", err)
		}
	})
}

// Tests of an endpoint with a damaged secret are refused, also several at once.
func TestTestsOfDamagedEndpoint(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		g.Damage("webhook_endpoints", "secret", "url = '"+url+"'")
		var tests sync.WaitGroup
		g.Execute("UPDATE webhook_endpoints SET version = version + 1")
		for range 3 {
			tests.Go(func() {
				if _, _, err := g.Endpoints.Test(t.Context(), e.Merchant, e.ID); !problem.Is(err, problem.Unavailable) {
					t.Errorf("test: %v", err)
				}
			})
		}
		tests.Wait()
		_, err := g.Endpoints.Follow(t.Context())
		g.Must(err)
		g.WantCases(store.CaseDamaged)
		g.WantRequests(0)
	})
}

// A merchant has three tests in flight; the problem of a fourth one names that quota.
func TestTestsAtOnce(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		e := g.add(url, "payin.canceled")
		var refused []error
		test := func() {
			if _, _, err := g.Endpoints.Test(t.Context(), e.Merchant, e.ID); err != nil {
				refused = append(refused, err)
			}
		}
		g.Receivers.Answer(func(*http.Request, int) (*http.Response, error) { // while it answers, the test is in flight
			test()
			return coretest.Respond(200)
		})
		test()
		g.WantRequests(3)
		want := problem.Quota{Name: "tests", Most: 3}
		if len(refused) != 1 || !problem.Is(refused[0], problem.RateLimited) || problem.From(refused[0]).Quota != want || problem.From(refused[0]).RetryAfter == 0 {
			t.Errorf("refused: %v", refused)
		}
	})
}
