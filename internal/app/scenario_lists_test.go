package app_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
)

// pages reads a list to its end, page by page, calling between with each.
func pages(t *testing.T, g *apptest.Installed, path, member string, between func()) (all []string) {
	t.Helper()
	for cursor := ""; ; {
		page := g.In(t).Must(200, "GET", path+cursor, "")
		all = append(all, page.List(member)...)
		next := page.Get("nextCursor")
		if next == "" {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(next)
		if between != nil {
			between()
		}
	}
}

// Lists are newest first and can be filtered. Reading page by page returns every order
// exactly once, even if new orders arrive.
func TestLists(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		var references []string // newest first
		var created []string
		for i := range 23 {
			body, reference := pixOf, fmt.Sprintf("list %02d ünï/%%", i)
			if i%3 == 0 {
				body = cardOf
			}
			got := g.Must(201, "POST", "/payin", with(body, "{ref}", reference))
			references, created = slices.Insert(references, 0, reference), slices.Insert(created, 0, got.Get("createdAt"))
			if i%4 == 0 {
				g.Must(200, "POST", "/payin/"+got.Get("id")+"/cancel", "")
			}
			g.Must(204, "POST", "/sandbox/clock", `{"advance":1}`) // no two have one time
		}
		n := 0
		all := pages(t, g, "/payin?limit=5", "referenceId", func() {
			n++
			g.Must(201, "POST", "/payin", with(pixOf, "{ref}", fmt.Sprint("in between ", n)))
		})
		if !slices.Equal(all, references) {
			t.Errorf("read %q, want %q", all, references)
		}
		q := url.QueryEscape
		third, ninth := created[3], created[9]
		for query, want := range map[string][]string{
			"referenceId=" + q(references[7]):                                     {references[7]},
			"referenceId=nobody":                                                  nil,
			"referenceId=" + q(strings.ToUpper(references[7])):                    nil,
			"createdFrom=" + q(ninth) + "&createdTo=" + q(third):                  references[4:10],
			"createdFrom=" + q(third) + "&createdTo=" + q(third):                  nil,
			"createdTo=" + q(ninth) + "&status=CANCELED":                          {references[10], references[14], references[18], references[22]},
			"createdTo=" + q(third) + "&paymentMethod=CREDIT_CARD&status=PENDING": {references[4], references[7], references[13], references[16], references[19]},
			"createdTo=" + q(ninth) + "&paymentMethod=CREDIT_CARD&limit=2":        {references[10], references[13]},
			"status=PAID": nil,
		} {
			if got := g.Must(200, "GET", "/payin?"+query, "").List("referenceId"); !slices.Equal(got, want) && len(got)+len(want) > 0 {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		g.Must(201, "POST", "/payout", with(payoutOf, "{ref}", "only"))
		if got := g.Must(200, "GET", "/payout?referenceId=only&createdFrom=1969-12-31T00:00:00-03:00", ""); !slices.Equal(got.List("referenceId"), []string{"only"}) || got.Get("nextCursor") != "" {
			t.Errorf("the payout: %s", got.Body)
		}
		if full := g.Must(200, "GET", "/payin?limit=200", ""); full.Get("nextCursor") != "" || !strings.Contains(full.Body, `"nextCursor":null`) {
			t.Errorf("the last page has a cursor")
		}
	})
}

// Reading events by cursor while they arrive returns each event once and in order. The
// last page has a cursor for later events.
func TestEventsAreGapless(t *testing.T) {
	onBoth(t, func(t *testing.T, g *apptest.Installed) {
		const orders = 30
		start := g.Must(200, "GET", "/events", "")
		if start.Get("nextCursor") == "" || len(start.List("id")) != 0 {
			t.Fatalf("events of nobody: %s", start.Body)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range orders {
				got := g.Ask("POST", "/payin", with(pixOf, "{ref}", fmt.Sprint("e", i)))
				g.Ask("POST", "/payin/"+got.Get("id")+"/cancel", "")
			}
		}()
		var seen []string
		cursor, versions := start.Get("nextCursor"), map[string]string{}
		apptest.Until(t, func() string {
			page := g.Must(200, "GET", "/events?limit=7&cursor="+url.QueryEscape(cursor), "")
			cursor = page.Get("nextCursor")
			for i, id := range page.List("id") {
				if slices.Contains(seen, id) {
					t.Errorf("event %s came twice", id)
				}
				seen = append(seen, id)
				versions[page.Get(fmt.Sprintf("data.%d.data.id", i))] = page.Get(fmt.Sprintf("data.%d.type", i)) + page.Get(fmt.Sprintf("data.%d.version", i))
			}
			if len(seen) < orders {
				return fmt.Sprintf("read %d events, want %d", len(seen), orders)
			}
			return ""
		})
		<-done
		if again := eventIDs(t, g, "/events?limit=11"); !slices.Equal(again, seen) {
			t.Errorf("read again from the beginning: %d events, other than the %d before", len(again), len(seen))
		}
		for id, got := range versions {
			if got != "payin.canceled2" {
				t.Errorf("order %s was announced as %s", id, got)
			}
		}
		// The event has the same resource as GET.
		event := g.Must(200, "GET", "/events/"+seen[0], "")
		order := g.Must(200, "GET", "/payin/"+event.Get("data.id"), "")
		if !strings.Contains(event.Body, `"data":`+order.Body) {
			t.Errorf("the event holds %s, the order is %s", event.Body, order.Body)
		}
	})
}

// eventIDs reads events until a page is empty.
func eventIDs(t *testing.T, g *apptest.Installed, path string) (all []string) {
	t.Helper()
	for cursor := ""; ; {
		page := g.In(t).Must(200, "GET", path+cursor, "")
		ids := page.List("id")
		if len(ids) == 0 {
			return all
		}
		all, cursor = append(all, ids...), "&cursor="+url.QueryEscape(page.Get("nextCursor"))
	}
}
