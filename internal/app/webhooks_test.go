package app_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/store"
)

// hooked is a body whose events go to a path of a receiver.
func hooked(body string, v *apptest.Receiver, path, reference string) string {
	return with(with(body, `"amount"`, `"webhookUrl":"`+v.URL+path+`","amount"`), "{ref}", reference)
}

// arrived waits until a path has events of these types, in order of versions.
func arrived(t *testing.T, v *apptest.Receiver, path string, types ...string) {
	t.Helper()
	apptest.Until(t, func() string {
		if got := v.Types(path); !slices.Equal(got, types) {
			return fmt.Sprintf("%s got %v, want %v", path, got, types)
		}
		return ""
	})
}

// attempted waits until n attempts of an event have ended.
func attempted(t *testing.T, g *apptest.Installed, event string, n int) (last apptest.Answer) {
	t.Helper()
	apptest.Until(t, func() string {
		last = g.In(t).Must(200, "GET", "/events/"+event+"/attempts", "")
		if ended := strings.Count(last.Body, `"endedAt"`); ended < n {
			return fmt.Sprintf("%d attempts have ended, want %d", ended, n)
		}
		return ""
	})
	return last
}

// eventOf is the id of the newest event of an order.
func eventOf(t *testing.T, g *apptest.Installed, order string) string {
	t.Helper()
	id := ""
	for cursor := ""; ; {
		page := g.In(t).Must(200, "GET", "/events?limit=200"+cursor, "")
		ids := page.List("id")
		if len(ids) == 0 {
			return id
		}
		for i := range ids {
			if page.Get(fmt.Sprintf("data.%d.data.id", i)) == order {
				id = ids[i]
			}
		}
		cursor = "&cursor=" + page.Get("nextCursor")
	}
}

// The published Standard Webhooks library accepts every delivery, whose body is that of
// the event, even if the sandbox's clock is a month ahead.
func TestStandardWebhooks(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		v := apptest.NewReceiver(t, app.SandboxWebhookSecret, nil)
		g.Must(204, "POST", "/sandbox/clock", `{"advance":2592000}`)
		payin := g.Must(201, "POST", "/payin", hooked(pixOf, v, "/in", "hooked")).Get("id")
		g.Must(204, "POST", "/sandbox/payin/"+payin+"/pay", `{"amount":400}`)
		g.Must(204, "POST", "/sandbox/payin/"+payin+"/pay", `{"amount":900}`)
		g.Must(204, "POST", "/sandbox/payin/"+payin+"/dispute", "")
		g.Must(204, "POST", "/sandbox/payin/"+payin+"/win", "")
		payout := g.Must(201, "POST", "/payout", hooked(payoutOf, v, "/out", "hooked")).Get("id")
		awaitFinal(t, g.Client)
		g.Must(204, "POST", "/sandbox/payout/"+payout+"/return", "")
		arrived(t, v, "/in", "payin.underpaid", "payin.paid", "payin.overpaid", "payin.disputed", "payin.dispute_won")
		arrived(t, v, "/out", "payout.processing", "payout.completed", "payout.returned")
		for _, d := range append(v.Deliveries("/in"), v.Deliveries("/out")...) {
			if event := g.Must(200, "GET", "/events/"+d.ID, ""); event.Body != d.Body {
				t.Errorf("%s was delivered as %s, is read as %s", d.ID, d.Body, event.Body)
			}
			list := attempted(t, g, d.ID, 1)
			if list.Get("data.0.status") != "200" || list.Get("data.0.number") != "1" || !strings.HasPrefix(list.Get("data.0.url"), v.URL) {
				t.Errorf("attempts of %s: %s", d.ID, list.Body)
			}
		}
		last := v.Deliveries("/out")
		event := eventOf(t, g, payout)
		g.Must(202, "POST", "/events/"+event+"/redeliver", "")
		apptest.Until(t, func() string {
			if n := len(v.Deliveries("/out")); n != len(last)+1 {
				return fmt.Sprintf("%d deliveries after it was sent again", n)
			}
			return ""
		})
		attempted(t, g, event, 2)
		// An order without a URL has events, but no deliveries.
		quiet := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "quiet")).Get("id")
		g.Must(200, "POST", "/payin/"+quiet+"/cancel", "")
		if got := g.Must(409, "POST", "/events/"+eventOf(t, g, quiet)+"/redeliver", ""); got.Get("code") != "invalid_state" {
			t.Error(got.Body)
		}
		if list := g.Must(200, "GET", "/events/"+eventOf(t, g, quiet)+"/attempts", ""); list.Body != `{"data":[]}` {
			t.Errorf("attempts without a URL: %s", list.Body)
		}
		if secret := g.Must(200, "GET", "/webhook-secret", "").Get("secret"); secret != app.SandboxWebhookSecret {
			t.Errorf("the secret is %s", secret)
		}
	})
}

// difficult misbehaves as the path of a delivery says.
func difficult(w http.ResponseWriter, r *http.Request, n int) {
	switch {
	case r.URL.Path == "/gone":
		w.WriteHeader(http.StatusGone)
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/trap", http.StatusTemporaryRedirect)
	case r.URL.Path == "/late" && n == 1:
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("\xff\x00 not now"))
	case r.URL.Path == "/busy" && n == 1:
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/hung":
		<-r.Context().Done()
	case r.URL.Path == "/endless":
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("more ", 1000))); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
}

// Misbehaving receivers affect neither the gateway nor each other.
func TestDifficultReceivers(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		v := apptest.NewReceiver(t, app.SandboxWebhookSecret, difficult)
		order := func(path string) (id, event string) {
			id = g.Must(201, "POST", "/payin", hooked(pixOf, v, path, path)).Get("id")
			g.Must(204, "POST", "/sandbox/payin/"+id+"/expire", "")
			return id, eventOf(t, g, id)
		}
		order("/hung")
		gone, goneEvent := order("/gone")
		attempted(t, g, goneEvent, 1)
		g.Must(204, "POST", "/sandbox/payin/"+gone+"/pay", "") // not delivered after 410
		_, moved := order("/moved")
		_, late := order("/late")
		_, busy := order("/busy")
		_, endless := order("/endless")
		if list := attempted(t, g, moved, 1); list.Get("data.0.error") != "redirect" || list.Get("data.0.status") != "307" {
			t.Errorf("moved: %s", list.Body)
		}
		if list := attempted(t, g, late, 1); list.Get("data.0.status") != "500" || list.Get("data.0.response") != "\ufffd not now" {
			t.Errorf("late: %s", list.Body)
		}
		attempted(t, g, busy, 1)
		if list := attempted(t, g, endless, 1); list.Get("data.0.status") != "200" || len(list.Get("data.0.response")) != 4<<10 {
			t.Errorf("endless: %s", list.Body)
		}
		// Failed deliveries are repeated after 5 s, or after Retry-After.
		g.Must(204, "POST", "/sandbox/clock", `{"advance":6}`)
		attempted(t, g, late, 2)
		attempted(t, g, moved, 2)
		if n := len(v.Deliveries("/busy")); n != 1 {
			t.Errorf("%d deliveries before Retry-After", n)
		}
		g.Must(204, "POST", "/sandbox/clock", `{"advance":3600}`)
		attempted(t, g, busy, 2)
		for path, n := range map[string]int{"/gone": 1, "/late": 2, "/busy": 2, "/endless": 1, "/trap": 0} {
			if got := len(v.Deliveries(path)); got != n {
				t.Errorf("%s was called %d times, want %d", path, got, n)
			}
		}
	})
}

// Events are sent to private networks only if the operator has allowed them.
func TestAllowedNetworks(t *testing.T) {
	t.Parallel()
	g := apptest.Start(t, "sqlite", "allow-networks", "127.0.0.2/32")
	for url, want := range map[string]string{
		"http://127.0.0.1:9/h": "host_unreachable", "http://169.254.169.254/h": "host_unreachable", "http://[::ffff:127.0.0.1]:9/h": "host_unreachable",
		"http://127.0.0.2:9/h": "connect_refused",
	} {
		id := g.Must(201, "POST", "/payin", with(with(pixOf, `"amount"`, `"webhookUrl":"`+url+`","amount"`), "{ref}", url)).Get("id")
		g.Must(200, "POST", "/payin/"+id+"/cancel", "")
		if list := attempted(t, g, eventOf(t, g, id), 1); list.Get("data.0.error") != want {
			t.Errorf("%s: %s, want %s", url, list.Body, want)
		}
	}
}

// An event is a dead letter after eleven failed attempts: a case is opened, and the event
// can be redelivered once the receiver is fixed. Successful events to the same receiver
// keep its circuit breaker closed, because the sandbox's clock does not advance that.
func TestExhaustedWebhook(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		fixed := make(chan struct{})
		v := apptest.NewReceiver(t, app.SandboxWebhookSecret, func(w http.ResponseWriter, r *http.Request, _ int) {
			select {
			case <-fixed:
			default:
				if r.URL.Path == "/ill" {
					w.WriteHeader(http.StatusBadGateway)
				}
			}
		})
		id := g.Must(201, "POST", "/payin", hooked(pixOf, v, "/ill", "ill")).Get("id")
		g.Must(200, "POST", "/payin/"+id+"/cancel", "")
		event := eventOf(t, g, id)
		for n := 1; n <= 11; n++ {
			attempted(t, g, event, n)
			well := g.Must(201, "POST", "/payin", hooked(pixOf, v, "/well", fmt.Sprint("well ", n))).Get("id")
			g.Must(200, "POST", "/payin/"+well+"/cancel", "")
			attempted(t, g, eventOf(t, g, well), 1)
			g.Must(204, "POST", "/sandbox/clock", `{"advance":97200}`) // 27 h, longer than any wait
		}
		list, err := g.Admin.Store.OpenCases(t.Context(), 10)
		if err != nil || len(list) != 1 || list[0].Kind != store.CaseWebhook {
			t.Errorf("cases: %+v, %v", list, err)
		}
		if n := len(v.Deliveries("/ill")); n != 11 {
			t.Errorf("%d attempts, want 11", n)
		}
		close(fixed)
		g.Must(202, "POST", "/events/"+event+"/redeliver", "")
		if last := attempted(t, g, event, 12); last.Get("data.11.status") != "200" {
			t.Errorf("after the fix: %s", last.Body)
		}
		var resolution store.Resolution
		row := g.SQL.QueryRowContext(t.Context(), "SELECT resolution FROM cases WHERE closed_at > 0")
		if err := row.Scan(&resolution); err != nil || resolution != store.ResolvedByDelivery {
			t.Errorf("the case is closed as %q, %v", resolution, err)
		}
	})
}
