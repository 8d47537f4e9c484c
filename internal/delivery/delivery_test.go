package delivery_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

func TestDeliveryFollowsTheSchedule(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(500)
		g.Canceled(g.Merchant, "r", hook)
		g.Deliver()
		for i, wait := range waits {
			g.Jump(wait - wait/10 - time.Second)
			g.Deliver()
			g.WantRequests(i + 1) // not a second too early
			g.Jump(wait/5 + 2*time.Second)
			g.Deliver()
			g.WantRequests(i + 2)
		}
		g.Jump(100 * time.Hour)
		g.Deliver()
		requests := g.WantRequests(11)
		g.WantCases(store.CaseWebhook)
		wantRecorded(g, requests)
	})
}

// wantRecorded checks the requests of the merchant's first event, which were all
// answered with 500, and that they are recorded.
func wantRecorded(g *coretest.Gateway, requests []coretest.Received) {
	g.T.Helper()
	secret, err := g.Store.WebhookSecret(g.T.Context(), g.Merchant.ID)
	g.Must(err)
	verifier, err := standardwebhooks.NewWebhook(secret)
	g.Must(err)
	event, recorded := eventOf(g, g.Merchant, 1), attempts(g, g.Merchant, 1)
	if len(recorded) != len(requests) {
		g.T.Fatalf("%d attempts are recorded", len(recorded))
	}
	for i, r := range requests {
		if r.URL != hook || r.ID != payment.PublicEventID(event.ID) || r.Body != string(event.Body) {
			g.T.Errorf("attempt %d: %+v", i+1, r)
		}
		if r.Header.Get("Webhook-Timestamp") != strconv.FormatInt(r.At.Unix(), 10) {
			g.T.Errorf("attempt %d is dated %s", i+1, r.Header.Get("Webhook-Timestamp"))
		}
		if err := verifier.VerifyIgnoringTimestamp([]byte(r.Body), r.Header); err != nil {
			g.T.Errorf("attempt %d: %v", i+1, err)
		}
		a := recorded[i]
		if a.Number != i+1 || a.Status != 500 || a.Error != "unexpected_status" || a.Response != "Internal Server Error" ||
			!a.CreatedAt.Equal(r.At) || a.EndedAt.IsZero() {
			g.T.Errorf("recorded: %+v", a)
		}
	}
}

// An event is sent again unchanged, even if its order has changed.
func TestDeliveryBytesNeverChange(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Receivers.Always(503)
		p := g.Canceled(g.Merchant, "r", hook)
		g.Deliver()
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.ReadFeeds()
		g.Receivers.Always(200)
		g.Jump(time.Minute)
		g.Deliver()
		requests := slices.Clone(g.WantRequests(3))
		slices.SortStableFunc(requests, func(a, b coretest.Received) int { return strings.Compare(a.ID, b.ID) })
		first, again, later := requests[0], requests[1], requests[2]
		if first.ID == later.ID {
			first, again, later = requests[1], requests[2], requests[0]
		}
		if again.ID != first.ID || again.Body != first.Body || !strings.Contains(again.Body, `"CANCELED"`) {
			t.Errorf("first %+v, then %+v", first, again)
		}
		if !strings.Contains(later.Body, `"PAID"`) {
			t.Errorf("the later event: %+v", later)
		}
	})
}

func TestAttemptIsRecordedBeforeItIsMade(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := g.Second()
		g.Canceled(g.Merchant, "r", hook)
		g.Receivers.Answer(func(_ *http.Request, n int) (*http.Response, error) {
			// The rows that another process sees while the request is under way.
			list := attempts(other, g.Merchant, 1)
			if len(list) != n || list[n-1].Number != n || list[n-1].URL != hook || !list[n-1].EndedAt.IsZero() || list[n-1].Status != 0 {
				t.Errorf("during attempt %d: %+v", n, list)
			}
			return coretest.Respond(map[int]int{1: 500, 2: 200}[n])
		})
		g.Deliver()
		g.Jump(10 * time.Second)
		g.Deliver()
		g.WantRequests(2)
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for _, tt := range []struct {
		status int
		header string
		wait   time.Duration // it has not come by then, and has 4 s later
	}{
		{429, "3600", time.Hour - 2*time.Second},
		{503, "315360000", 24*time.Hour - 2*time.Second}, // ten years
		{503, "1", 4 * time.Second},                      // it never comes sooner
		{500, "3600", 4 * time.Second},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.header), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Receivers.Answer(func(*http.Request, int) (*http.Response, error) {
					return coretest.Respond(tt.status, "Retry-After", tt.header)
				})
				g.Canceled(g.Merchant, "r", hook)
				g.Deliver()
				g.Jump(tt.wait)
				g.Deliver()
				before := len(g.Receivers.Requests())
				g.Jump(4 * time.Second)
				g.Deliver()
				if after := len(g.Receivers.Requests()); before != 1 || after != 2 {
					t.Errorf("%d requests after %v, %d four seconds later; want 1 and 2", before, tt.wait, after)
				}
			})
		})
	}
}

// A merchant whose secret cannot be used gets nothing, and the others get their events.
func TestUnusableSecretStopsItsMerchantOnly(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var all []store.Merchant
		for i, secret := range []string{"", "no secret at all", ""} {
			all = append(all, addMerchant(g, fmt.Sprint("Loja ", i), secret))
		}
		for round := 1; round <= 2; round++ {
			for i, m := range all {
				addEvents(g, m, 1, fmt.Sprintf("https://shop-%d.example/", i))
			}
			g.Deliver()
			for _, r := range g.WantRequests(2 * round) {
				if strings.HasPrefix(r.URL, "https://shop-1.") {
					t.Errorf("sent to %s without a secret", r.URL)
				}
			}
		}
		if !strings.Contains(g.Log.String(), all[1].ID.String()) {
			t.Error("the log does not name the merchant")
		}
	})
}
