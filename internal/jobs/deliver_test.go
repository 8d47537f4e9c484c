package jobs_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// waits are those of docs/webhooks.md, from one attempt to the next.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

func TestDeliveryFollowsTheSchedule(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.web.always(500)
		g.canceled(g.merchant, "r", hook)
		g.deliver()
		for i, wait := range waits {
			g.leap(wait - wait/10 - time.Second)
			g.deliver()
			g.wantRequests(i + 1) // not a second too early
			g.leap(wait/5 + 2*time.Second)
			g.deliver()
			g.wantRequests(i + 2)
		}
		g.leap(100 * time.Hour)
		g.deliver()
		requests := g.wantRequests(11)
		g.wantExceptions(store.ExceptionWebhook)

		secret, err := g.store.WebhookSecret(t.Context(), g.merchant.ID)
		g.must(err)
		verifier, err := standardwebhooks.NewWebhook(secret)
		g.must(err)
		event := g.event(g.merchant, 1)
		attempts := g.attempts(g.merchant, 1)
		if len(attempts) != len(requests) {
			t.Fatalf("%d attempts on record", len(attempts))
		}
		for i, r := range requests {
			if r.url != hook || r.id != payment.PublicEventID(event.ID) || r.body != string(event.Body) {
				t.Errorf("attempt %d: %+v", i+1, r)
			}
			if r.header.Get("Webhook-Timestamp") != strconv.FormatInt(r.at.Unix(), 10) {
				t.Errorf("attempt %d is dated %s", i+1, r.header.Get("Webhook-Timestamp"))
			}
			if err := verifier.VerifyIgnoringTimestamp([]byte(r.body), r.header); err != nil {
				t.Errorf("attempt %d: %v", i+1, err)
			}
			a := attempts[i]
			if a.Number != i+1 || a.Status != 500 || a.Error != "unexpected_status" || a.Response != "Internal Server Error" ||
				!a.CreatedAt.Equal(r.at) || a.EndedAt.IsZero() {
				t.Errorf("on record: %+v", a)
			}
		}
	})
}

// What is sent again is the news as it was, whatever became of the order.
func TestDeliveryBytesNeverChange(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.web.always(503)
		p := g.canceled(g.merchant, "r", hook)
		g.deliver()
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.collect()
		g.web.always(200)
		g.leap(time.Minute)
		g.deliver()
		requests := g.wantRequests(3)
		slices.SortStableFunc(requests, func(a, b received) int { return strings.Compare(a.id, b.id) })
		first, again, later := requests[0], requests[1], requests[2]
		if first.id == later.id {
			first, again, later = requests[1], requests[2], requests[0]
		}
		if again.id != first.id || again.body != first.body || !strings.Contains(again.body, `"CANCELED"`) {
			t.Errorf("first %+v, then %+v", first, again)
		}
		if !strings.Contains(later.body, `"PAID"`) {
			t.Errorf("the later news: %+v", later)
		}
	})
}

func TestAttemptIsOnRecordBeforeItIsMade(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		other := g.second()
		g.canceled(g.merchant, "r", hook)
		g.web.answer = func(_ *http.Request, n int) (*http.Response, error) {
			// What another process sees while the request is on its way.
			list := other.attempts(g.merchant, 1)
			if len(list) != n || list[n-1].Number != n || list[n-1].URL != hook || !list[n-1].EndedAt.IsZero() || list[n-1].Status != 0 {
				t.Errorf("while attempt %d is made: %+v", n, list)
			}
			return says(map[int]int{1: 500, 2: 200}[n])
		}
		g.deliver()
		g.leap(10 * time.Second)
		g.deliver()
		g.wantRequests(2)
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for _, tt := range []struct {
		status int
		asked  string
		wait   time.Duration // it has not come by then, and has 4 s later
	}{
		{429, "3600", time.Hour - 2*time.Second},
		{503, "315360000", 24*time.Hour - 2*time.Second}, // ten years
		{503, "1", 4 * time.Second},                      // no asking makes it come sooner
		{500, "3600", 4 * time.Second},
	} {
		t.Run(fmt.Sprint(tt.status, " ", tt.asked), func(t *testing.T) {
			each(t, func(t *testing.T, g *gateway) {
				g.web.answer = func(*http.Request, int) (*http.Response, error) { return says(tt.status, "Retry-After", tt.asked) }
				g.canceled(g.merchant, "r", hook)
				g.deliver()
				g.leap(tt.wait)
				g.deliver()
				before := len(g.web.requests())
				g.leap(4 * time.Second)
				g.deliver()
				if after := len(g.web.requests()); before != 1 || after != 2 {
					t.Errorf("%d requests after %v, %d four seconds later; want 1 and 2", before, tt.wait, after)
				}
			})
		})
	}
}

// A receiver that answers 410 gets no more news of that order: not those that
// wait, not those to come. Other orders' news still come.
func TestGoneEndsAnOrdersNews(t *testing.T) {
	t.Run("those that wait", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			g.web.always(410)
			r := payoutOf("r", 10_00)
			r.WebhookURL = wire.Some(hook)
			_, _, err := g.flow.RequestPayout(t.Context(), g.merchant, r)
			g.must(err)
			g.submit()
			g.wantEvents(payment.EventPayoutProcessing, payment.EventPayoutCompleted) // both wait
			g.deliver()
			g.leap(100 * time.Hour)
			g.deliver()
			g.wantRequests(1)
			if n := len(g.attempts(g.merchant, 1)) + len(g.attempts(g.merchant, 2)); n != 1 {
				t.Errorf("%d attempts on record, and 1 was made", n)
			}
			g.wantExceptions() // it is what the receiver wants
		})
	})
	t.Run("those to come", func(t *testing.T) {
		each(t, func(t *testing.T, g *gateway) {
			g.web.always(410)
			p := g.canceled(g.merchant, "r", hook)
			g.deliver()
			g.web.always(200)
			g.bank.receive(p.ExternalID, "pay-1", 100_00)
			g.collect()
			g.deliver()
			g.wantEvents(payment.EventPayinCanceled, payment.EventPayinPaid)
			g.wantRequests(1)
			g.canceled(g.merchant, "another", hook)
			g.deliver()
			g.wantRequests(2)
		})
	})
}

func TestRedeliver(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.canceled(g.merchant, "r", hook)
		g.deliver()
		event := g.event(g.merchant, 1)
		g.must(g.flow.Redeliver(t.Context(), g.merchant.ID, event.ID))
		g.deliver()
		list := g.wantRequests(2)
		if list[0].id != list[1].id || list[0].body != list[1].body {
			t.Errorf("sent %+v, then %+v", list[0], list[1])
		}
		if attempts := g.attempts(g.merchant, 1); len(attempts) != 2 || attempts[1].Number != 2 || attempts[1].Status != 200 {
			t.Errorf("on record: %+v", attempts)
		}
		g.leap(time.Hour)
		g.deliver()
		g.wantRequests(2)

		g.canceled(g.merchant, "goes nowhere", "")
		if err := g.flow.Redeliver(t.Context(), g.merchant.ID, g.event(g.merchant, 2).ID); !problem.Is(err, problem.InvalidState) {
			t.Errorf("an event without an address: %v", err)
		}
	})
}

// The process dies when the receiver has the news and nothing tells of it: it
// is sent again, with the same id and the same bytes.
func TestCrashBetweenSendAndRecord(t *testing.T) {
	each(t, func(t *testing.T, heir *gateway) {
		heir.canceled(heir.merchant, "r", hook)
		dying := heir.second()
		heir.web.answer = func(_ *http.Request, n int) (*http.Response, error) {
			if n == 1 {
				dying.must(dying.store.Close()) // whatever it does from here on leaves no trace
			}
			return says(200)
		}
		dying.step()
		heir.deliver()
		heir.wantRequests(1) // it is still in the dead one's hands
		heir.pass(5 * time.Second)
		heir.deliver()
		list := heir.wantRequests(2)
		if list[0].id != list[1].id || list[0].body != list[1].body {
			t.Errorf("sent %+v, then %+v", list[0], list[1])
		}
		attempts := heir.attempts(heir.merchant, 1)
		if len(attempts) != 2 || !attempts[0].EndedAt.IsZero() || attempts[1].Status != 200 {
			t.Errorf("on record: %+v", attempts)
		}
		heir.leap(100 * time.Hour)
		heir.deliver()
		heir.wantRequests(2)
	})
}

// However often gateways die with a delivery in hand, its receiver gets all the
// attempts that it was promised, at their times.
func TestDeathsUseNoAttemptsUp(t *testing.T) {
	each(t, func(t *testing.T, heir *gateway) {
		heir.web.always(500)
		heir.canceled(heir.merchant, "r", hook)
		for range len(waits) + 1 {
			dying := heir.second()
			claimed, err := dying.flow.ClaimDeliveries(t.Context(), heir.merchant.ID, 1)
			if err != nil || len(claimed) != 1 {
				t.Fatalf("claimed %v, %v", claimed, err)
			}
			heir.pass(5 * time.Second)
		}
		heir.deliver()
		heir.wantRequests(1)
		heir.leap(waits[0] + waits[0]/10 + time.Second)
		heir.deliver()
		heir.wantRequests(2)
	})
}

// A merchant whose secret cannot be used gets nothing, and the others get theirs.
func TestUnusableSecretStopsItsMerchantOnly(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		var all []store.Merchant
		for i, secret := range []string{"", "no secret at all", ""} {
			all = append(all, g.merchantNamed(fmt.Sprint("Loja ", i), secret))
		}
		for round := 1; round <= 2; round++ {
			for i, m := range all {
				g.announce(m, 1, fmt.Sprintf("https://shop-%d.example/", i))
			}
			g.deliver()
			for _, r := range g.wantRequests(2 * round) {
				if strings.HasPrefix(r.url, "https://shop-1.") {
					t.Errorf("sent to %s without a secret", r.url)
				}
			}
		}
		if !strings.Contains(g.log.String(), all[1].ID.String()) {
			t.Error("the log does not tell which merchant it is")
		}
	})
}

// A process that may have been given up for dead stops sending what it has in
// hand, and gives it back as if it had never been tried.
func TestLostLeaseEndsTheQueue(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.besides()
		hold := g.web.hold(t)
		g.announce(g.merchant, 20, hook)
		g.step()
		for range 8 {
			<-hold.arrived
		}
		heir := g.second()
		g.clock.Advance(2600 * time.Millisecond) // without a beat
		hold.let()
		g.settled()
		g.wantRequests(8)
		heir.beat()
		heir.deliver()
		heir.wantRequests(20)
		seen := map[string]bool{}
		for _, r := range g.web.requests() {
			seen[r.id] = true
		}
		if len(seen) != 20 {
			t.Errorf("%d events were sent, want 20", len(seen))
		}
		for n := range int64(20) {
			if list := g.attempts(g.merchant, n+1); len(list) != 1 || list[0].Status != 200 {
				t.Errorf("event %d: %+v", n+1, list)
			}
		}
	})
}
