package coretest

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

// Hook is a webhook URL.
const Hook = "https://shop.example/hook"

// Receivers are the merchants' servers: they record each request as it arrives, and
// answer 200 unless a test changes that.
type Receivers struct {
	clock env.Clock

	mu      sync.Mutex
	got     []Received
	running int
	most    int
	answer  func(r *http.Request, n int) (*http.Response, error)
}

// Received is one request. At is when it arrived, UTC.
type Received struct {
	URL, ID, Body string
	Header        http.Header
	At            time.Time
}

// RoundTrip implements [http.RoundTripper].
func (v *Receivers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.got = append(v.got, Received{r.URL.String(), r.Header.Get("Webhook-Id"), string(body), r.Header, v.clock.Now()})
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
		return Respond(http.StatusOK)
	}
	return answer(r, n)
}

// Requests are the requests that have arrived, in order.
func (v *Receivers) Requests() []Received {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clip(v.got)
}

// Most is the maximum number of concurrent requests so far.
func (v *Receivers) Most() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.most
}

// Answer sets the function that answers requests. n is the number of the request, from
// 1. It may block.
func (v *Receivers) Answer(answer func(r *http.Request, n int) (*http.Response, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = answer
}

// Always answers every request with a status.
func (v *Receivers) Always(status int) {
	v.Answer(func(*http.Request, int) (*http.Response, error) { return Respond(status) })
}

// Blocked are requests that wait until Release, or until their sender gives up. Arrived
// has the URL of each request.
type Blocked struct {
	Arrived chan string
	Release func()
}

// Block blocks requests, except those to URLs that begin with one of except. They are
// released when the test ends, at the latest.
func (v *Receivers) Block(t *testing.T, except ...string) Blocked {
	gate := make(chan struct{})
	b := Blocked{Arrived: make(chan string, 1000), Release: sync.OnceFunc(func() { close(gate) })}
	t.Cleanup(b.Release)
	v.Answer(func(r *http.Request, _ int) (*http.Response, error) {
		url := r.URL.String()
		b.Arrived <- url
		if slices.ContainsFunc(except, func(prefix string) bool { return strings.HasPrefix(url, prefix) }) {
			return Respond(http.StatusOK)
		}
		select {
		case <-gate:
			return Respond(http.StatusOK)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
	return b
}

// Respond is an answer with some header fields, by name and value.
func Respond(status int, fields ...string) (*http.Response, error) {
	header := http.Header{}
	for i := 0; i+1 < len(fields); i += 2 {
		header.Set(fields[i], fields[i+1])
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(http.StatusText(status)))}, nil
}

// Canceled creates a pay-in of a merchant whose events go to url, and cancels it: that
// is its first event.
func (g *Gateway) Canceled(m store.Merchant, reference, url string) payment.Payin {
	g.T.Helper()
	p, err := g.Payins.Cancel(g.T.Context(), m.ID, g.Payin(m, reference, url).ID)
	g.Must(err)
	return p
}

// WantRequests compares how many requests receivers got, and returns them.
func (g *Gateway) WantRequests(n int) []Received {
	g.T.Helper()
	got := g.Receivers.Requests()
	if len(got) != n {
		g.T.Fatalf("%d requests arrived, want %d\n%s", len(got), n, g.Log)
	}
	return got
}
