package app_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/internal/app/apptest"
)

// subscriber is a receiver of an endpoint, which verifies each event with the endpoint's
// secret.
type subscriber struct {
	*httptest.Server

	t  *testing.T
	mu sync.Mutex

	secret   string
	accepted []string // types and references of events, in order
}

func newSubscriber(t *testing.T) *subscriber {
	t.Helper()
	v := &subscriber{t: t}
	v.Server = httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(v.Close)
	return v
}

func (v *subscriber) serve(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	v.mu.Lock()
	defer v.mu.Unlock()
	if verifier, invalid := webhooks.NewWebhook(v.secret); err != nil || invalid != nil || verifier.Verify(body, r.Header) != nil {
		v.t.Errorf("not verified: %s %v", body, r.Header)
	}
	between := func(from string) string {
		_, rest, _ := strings.Cut(string(body), from)
		word, _, _ := strings.Cut(rest, `"`)
		return word
	}
	v.accepted = append(v.accepted, strings.TrimSpace(between(`"type":"`)+" "+between(`"referenceId":"`)))
}

// want waits until these events were accepted, in any order: they are sent concurrently.
func (v *subscriber) want(t *testing.T, events ...string) {
	t.Helper()
	apptest.Until(t, func() string {
		v.mu.Lock()
		defer v.mu.Unlock()
		got := slices.Sorted(slices.Values(v.accepted))
		if !slices.Equal(got, slices.Sorted(slices.Values(events))) {
			return fmt.Sprintf("accepted %q, want %q", v.accepted, events)
		}
		return ""
	})
}

// subscribe creates an endpoint of a subscriber.
func subscribe(g *apptest.Installed, v *subscriber, events string) (id string) {
	made := g.Must(201, "POST", "/webhook-endpoints", `{"url":"`+v.URL+`","events":`+events+`}`)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.secret = made.Get("secret")
	return made.Get("id")
}

// An endpoint gets what it asks for, is tested, rotated, disabled and enabled, and leaves
// nothing but its events.
func TestWebhookEndpoints(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		before := g.Rows(t)
		for body, code := range map[string]string{
			`{}`: "url required, events required", `{"url":"ftp://a.example","events":["*"]}`: "url invalid_format",
			`{"url":"https://a:b@a.example","events":["*"]}`: "url not_allowed", `{"url":"https://a.example","events":[]}`: "events too_short",
			`{"url":"https://a.example","events":["*","*"]}`:     "events[1] not_allowed",
			`{"url":"https://a.example","events":["nothing.*"]}`: "events[0] not_allowed", `{"url":"https://a.example","events":[7]}`: "events[0] invalid_type",
			`{"url":"https://a.example","events":"*"}`: "events invalid_type", `{"url":"https://a.example","events":["*"],"description":"\u0007"}`: "description invalid_format",
		} {
			got := g.Must(422, "POST", "/webhook-endpoints", body)
			var list []string
			for i := 0; got.Get(fmt.Sprintf("errors.%d.field", i)) != ""; i++ {
				list = append(list, got.Get(fmt.Sprintf("errors.%d.field", i))+" "+got.Get(fmt.Sprintf("errors.%d.code", i)))
			}
			if strings.Join(list, ", ") != code {
				t.Errorf("%s: %q, want %s: %s", body, list, code, got.Body)
			}
		}
		g.Must(400, "POST", "/webhook-endpoints", `{"url":"https://a.example","events":["*"],"enabled":true}`)
		g.Must(204, "POST", "/sandbox/clock", `{"advance":3600}`)
		v := newSubscriber(t)
		id := subscribe(g, v, `["payin.*"]`)
		payin := g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "first")).Get("id")
		g.Must(200, "POST", "/payin/"+payin+"/cancel", "")
		v.want(t, "payin.created first", "payin.canceled first")
		attempted(t, g, eventOf(t, g, payin), 1)
		made := g.Must(200, "GET", "/webhook-endpoints/"+id, "").Get("createdAt")
		if got := g.Must(200, "POST", "/webhook-endpoints/"+id+"/test", ""); got.Get("status") != "200" || got.Get("createdAt") < made || got.Get("endedAt") < made {
			t.Error(got.Body)
		}
		v.want(t, "payin.created first", "payin.canceled first", "webhook.test")
		apptest.Until(t, func() string {
			if got := g.In(t).Must(200, "GET", "/webhook-endpoints/"+id, ""); got.Get("health.state") != "ok" || got.Get("health.lastSuccessAt") == "" || got.Get("secret") != "" {
				return got.Body
			}
			return ""
		})
		g.Must(200, "PATCH", "/webhook-endpoints/"+id, `{"enabled":false}`)
		payin = g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "second")).Get("id")
		g.Must(200, "POST", "/payin/"+payin+"/cancel", "")
		secret := g.Must(200, "POST", "/webhook-endpoints/"+id+"/rotate", `{"overlapSeconds":0}`).Get("secret")
		v.mu.Lock()
		v.secret = secret
		v.mu.Unlock()
		if got := g.Must(200, "PATCH", "/webhook-endpoints/"+id, `{"enabled":true}`); got.Get("enabled") != "true" {
			t.Error(got.Body)
		}
		v.want(t, "payin.created first", "payin.canceled first", "webhook.test", "payin.created second", "payin.canceled second")
		v.mu.Lock()
		if missed := v.accepted[len(v.accepted)-2:]; missed[0] != "payin.created second" { // in order
			t.Errorf("what it missed: %q", missed)
		}
		v.mu.Unlock()
		g.Must(204, "DELETE", "/webhook-endpoints/"+id, "")
		g.Must(404, "GET", "/webhook-endpoints/"+id, "")
		g.Must(201, "POST", "/payin", with(pixOf, "{ref}", "third"))
		if left, want := g.Rows(t).Since(before), "deliveries 4, event payin.canceled 2, event payin.created 2, payins 3"; left != want {
			t.Errorf("it left %q, want %q", left, want)
		}
		g.Verify(t)
	})
}
