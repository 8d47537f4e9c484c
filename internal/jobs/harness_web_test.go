package jobs_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// hook is where the news of these tests go.
const hook = "https://shop.example/hook"

// receivers are the merchants' servers: they note each request as it arrives
// and answer as they are told.
type receivers struct {
	clock *env.VirtualClock

	mu      sync.Mutex
	got     []received
	running int // requests that have no answer yet
	most    int // of them at once
	// answer, when set, stands in for a plain 200.
	answer func(r *http.Request, n int) (*http.Response, error)
}

// received is one request.
type received struct {
	url, id, body string
	header        http.Header
	at            time.Time
}

// RoundTrip implements [http.RoundTripper]. What answers may take its time: it
// is called without the lock, and told the number of the request, from 1.
func (v *receivers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.got = append(v.got, received{r.URL.String(), r.Header.Get("Webhook-Id"), string(body), r.Header, v.clock.Now()})
	v.running++
	v.most = max(v.most, v.running)
	n, answer := len(v.got), v.answer
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.running--
		v.mu.Unlock()
	}()
	if answer == nil {
		return says(200)
	}
	return answer(r, n)
}

// requests is what has arrived.
func (v *receivers) requests() []received {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.got[:len(v.got):len(v.got)]
}

// always has every request answered with a status.
func (v *receivers) always(status int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = func(*http.Request, int) (*http.Response, error) { return says(status) }
}

// held are requests that wait until they are let go, or their sender gives up.
type held struct {
	arrived chan string // the URL of each
	let     func()
}

// hold has requests wait, but for those to URLs that begin with one of except.
func (v *receivers) hold(t *testing.T, except ...string) held {
	gate := make(chan struct{})
	h := held{arrived: make(chan string, 1000), let: sync.OnceFunc(func() { close(gate) })}
	t.Cleanup(h.let)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = func(r *http.Request, _ int) (*http.Response, error) {
		url := r.URL.String()
		h.arrived <- url
		if slices.ContainsFunc(except, func(prefix string) bool { return strings.HasPrefix(url, prefix) }) {
			return says(200)
		}
		select {
		case <-gate:
			return says(200)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return h
}

// says is an answer with some header fields, by name and value.
func says(status int, fields ...string) (*http.Response, error) {
	header := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		header.Set(fields[i], fields[i+1])
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(http.StatusText(status)))}, nil
}

func (g *gateway) deliver() { g.t.Helper(); g.run(g.jobs.DeliverWebhooks) }

// step runs the duty once and does not wait for the calls that it starts.
func (g *gateway) step() {
	g.t.Helper()
	var err error
	g.until(func() { _, err = g.jobs.DeliverWebhooks(g.t.Context()) })
	g.must(err)
}

// wantRequests says how many requests have arrived, and returns them.
func (g *gateway) wantRequests(n int) []received {
	g.t.Helper()
	got := g.web.requests()
	if len(got) != n {
		g.t.Fatalf("%d requests arrived, want %d\n%s", len(got), n, g.log)
	}
	return got
}

// attempts lists the attempts on record for the merchant's event of a number.
func (g *gateway) attempts(m store.Merchant, number int64) []store.Attempt {
	g.t.Helper()
	list, err := g.store.Attempts(g.t.Context(), m.ID, number)
	g.must(err)
	return list
}

// canceled creates an order and cancels it, which is news.
func (g *gateway) canceled(m store.Merchant, reference, url string) payment.Payin {
	g.t.Helper()
	p, err := g.flow.CancelPayin(g.t.Context(), m.ID, g.order(m, reference, url).ID)
	g.must(err)
	return p
}

// announce makes n events of one order of a merchant at once, each to go to url.
func (g *gateway) announce(m store.Merchant, n int, url string) {
	g.t.Helper()
	subject := payment.ID(g.env.IDs.NewID(g.clock.Now()))
	g.must(g.store.Write(g.t.Context(), func(tx *store.Tx) error {
		for i := range n {
			e := payment.Event{Merchant: m.ID, Type: payment.EventPayinUnderpaid, Subject: subject, Version: int64(i + 2)}
			tx.Announce(e, []byte("{}"), url)
		}
		return nil
	}))
}

// merchantNamed adds a merchant.
func (g *gateway) merchantNamed(name, webhookSecret string) store.Merchant {
	g.t.Helper()
	m, err := g.flow.CreateMerchant(g.t.Context(), store.Merchant{Name: name, City: "SAO PAULO", Processor: bankName}, webhookSecret)
	g.must(err)
	return m
}

// event is the merchant's event of a number.
func (g *gateway) event(m store.Merchant, number int64) payment.Event {
	g.t.Helper()
	list, err := g.store.Events(g.t.Context(), m.ID, number-1, 1)
	g.must(err)
	if len(list) != 1 {
		g.t.Fatalf("there is no event %d", number)
	}
	return list[0]
}
