package endpoint_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/wire"
)

// A change makes a node read the changed endpoints, and not those of other merchants.
func TestFollowReadsWhatChanged(t *testing.T) {
	each(t, func(t *testing.T, g hooks) {
		other := hooks{g.For(t)}
		other.add(elsewhere, "payin.canceled")
		g.Damage("webhook_endpoints", "secret", "url = '"+elsewhere+"'") // its version is the same
		e := g.add(url, "payin.canceled")
		other.cancel("a", "")
		g.cancel("b", "")
		g.work()
		g.wantReceived(elsewhere, "payin.canceled a")
		g.wantReceived(url, "payin.canceled b")
		g.Must(g.Endpoints.Delete(t.Context(), actor.System, e.Merchant, e.ID))
		other.cancel("c", "")
		g.cancel("d", "")
		g.work()
		g.wantReceived(elsewhere, "payin.canceled a", "payin.canceled c")
		g.wantReceived(url, "payin.canceled b")
		for i := range 20 { // more than are read one by one
			hooks{g.For(t)}.add(fmt.Sprint(url, "/", i), "payin.canceled")
		}
		second := hooks{g.Second()}
		_, err := second.Endpoints.Follow(t.Context())
		g.Must(err)
		g.cancel("e", "")
		second.work()
		second.WantRequests(3)
	})
}

// A delivery that waits for a slot at its receiver is not sent once its endpoint was deleted, disabled or
// moved, and is signed with the secrets of the time at which it is sent.
func TestChangedEndpointGetsNothingThatWaits(t *testing.T) {
	for name, row := range map[string]struct {
		change func(g hooks, e store.Endpoint)
		at     map[string]int // requests in the end, by URL
	}{
		"deleted": {func(g hooks, e store.Endpoint) {
			g.Must(g.Endpoints.Delete(g.T.Context(), actor.System, e.Merchant, e.ID))
		}, map[string]int{url: 8}},
		"disabled": {func(g hooks, e store.Endpoint) { g.enable(e, false) }, map[string]int{url: 8}},
		"moved": {func(g hooks, e store.Endpoint) {
			_, err := g.Endpoints.Change(g.T.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{URL: wire.Some(elsewhere)})
			g.Must(err)
		}, map[string]int{url: 8, elsewhere: 4}},
		"rotated": {func(g hooks, e store.Endpoint) {
			_, _, err := g.Endpoints.Rotate(g.T.Context(), actor.System, e.Merchant, e.ID, 0)
			g.Must(err)
		}, map[string]int{url: 12}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				g.Concurrent()
				e := g.add(url, "payin.canceled")
				before := g.Endpoints.Registry.Secrets(e.Merchant, e.ID)
				for i := range 12 {
					g.cancel(fmt.Sprint(i), "")
				}
				blocked := g.Receivers.Block(t, elsewhere)
				_, err := g.Endpoints.Dispatch(t.Context())
				g.Must(err)
				_, err = g.Deliveries.Send(t.Context())
				g.Must(err)
				for range 8 {
					<-blocked.Arrived
				}
				row.change(g, e)
				blocked.Release()
				g.WaitIdle()
				for range 3 {
					g.Jump(5 * time.Second)
					_, err = g.Deliveries.Send(t.Context())
					g.Must(err)
					g.WaitIdle()
				}
				got := map[string]int{}
				for i, r := range g.Receivers.Requests() {
					got[r.URL]++
					at, err := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64)
					g.Must(err)
					old := webhook.Sign(before, r.ID, time.Unix(at, 0), []byte(r.Body)) == r.Header.Get("Webhook-Signature")
					if want := i < 8 || name == "moved"; old != want {
						t.Errorf("request %d is signed with the secret of the claim: %v", i, old)
					}
				}
				if !maps.Equal(got, row.at) {
					t.Errorf("requests %v, want %v", got, row.at)
				}
			})
		})
	}
}

// An endpoint whose row was changed in the database gets nothing at either URL, whether or not its version
// shows the change, and cannot be changed, rotated or tested. Set right, it gets what waits.
func TestForgedEndpointGetsNothing(t *testing.T) {
	for name, version := range map[string]string{"in its version": "", "in another version": ", version = version + 1"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, g hooks) {
				e := g.add(url, "payin.canceled")
				g.add(url+"/other", "payin.canceled")
				g.Execute("UPDATE webhook_endpoints SET url = '" + elsewhere + "'" + version + " WHERE url = '" + url + "'")
				g.cancel("a", "")
				for range 3 {
					g.work()
					_, err := g.Endpoints.Follow(t.Context())
					g.Must(err)
				}
				g.wantReceived(url)
				g.wantReceived(elsewhere)
				g.wantReceived(url+"/other", "payin.canceled a")
				g.WantCases(store.CaseDamaged)
				_, changed := g.Endpoints.Change(t.Context(), actor.System, e.Merchant, e.ID, &wire.EndpointRequest{Description: wire.Some("x")})
				_, _, rotated := g.Endpoints.Rotate(t.Context(), actor.System, e.Merchant, e.ID, 0)
				_, _, tested := g.Endpoints.Test(t.Context(), e.Merchant, e.ID)
				for _, err := range []error{changed, rotated, tested} {
					if !problem.Is(err, problem.Unavailable) {
						t.Errorf("changed %v, rotated %v, tested %v", changed, rotated, tested)
					}
				}
				g.Execute("UPDATE webhook_endpoints SET url = '" + url + "', version = version + 1 WHERE url = '" + elsewhere + "'")
				_, err := g.Endpoints.Follow(t.Context())
				g.Must(err)
				g.Jump(time.Minute)
				g.work()
				g.wantReceived(url, "payin.canceled a")
			})
		})
	}
}
