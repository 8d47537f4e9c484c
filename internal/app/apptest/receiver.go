package apptest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Delivery is one delivery of an event to a receiver.
type Delivery struct {
	ID      string
	Type    string
	Version int64
	Path    string // of the URL
	Body    string
}

// Receiver receives webhooks and verifies each with the published library of
// Standard Webhooks: an invalid one fails its test.
type Receiver struct {
	// URL is its address, without a path.
	URL string

	t        testing.TB
	verifier *webhooks.Webhook
	mu       sync.Mutex
	list     []Delivery
	bytes    map[string]string // by event
}

// NewReceiver starts a receiver. answer answers the nth delivery to a path, from 1;
// nil answers 200.
func NewReceiver(t testing.TB, secret string, answer func(w http.ResponseWriter, r *http.Request, n int)) *Receiver {
	t.Helper()
	verifier, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	v := &Receiver{t: t, verifier: verifier, bytes: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := v.take(r)
		if answer != nil {
			answer(w, r, n)
		}
	}))
	v.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return v
}

// take verifies and records a delivery. It returns the number of deliveries to its
// path, this one included.
func (v *Receiver) take(r *http.Request) (n int) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = v.verifier.Verify(body, r.Header)
	}
	d := Delivery{Path: r.URL.Path, Body: string(body)}
	var event struct {
		ID      string `json:"id"`
		Type    string `json:"type"`
		Version int64  `json:"version"`
	}
	if err == nil {
		err = json.Unmarshal(body, &event)
	}
	if err != nil || event.ID != r.Header.Get("Webhook-Id") || r.Header.Get("Content-Type") != "application/json" {
		v.t.Errorf("webhook to %s: %v, headers %v: %s", r.URL.Path, err, r.Header, body)
	}
	d.ID, d.Type, d.Version = event.ID, event.Type, event.Version
	v.mu.Lock()
	defer v.mu.Unlock()
	if before, again := v.bytes[d.ID]; again && before != d.Body {
		v.t.Errorf("event %s was delivered again with different bytes", d.ID)
	}
	v.bytes[d.ID] = d.Body
	v.list = append(v.list, d)
	for i := range v.list {
		if v.list[i].Path == d.Path {
			n++
		}
	}
	return n
}

// Deliveries returns the deliveries to a path, in order of arrival.
func (v *Receiver) Deliveries(path string) []Delivery {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(v.list), func(d Delivery) bool { return d.Path != path })
}

// Types returns the types of the events delivered to a path, each event once, ordered
// by version.
func (v *Receiver) Types(path string) []string {
	list := v.Deliveries(path)
	slices.SortStableFunc(list, func(a, b Delivery) int { return int(a.Version - b.Version) })
	var types []string
	seen := map[string]bool{}
	for i := range list {
		if !seen[list[i].ID] {
			types = append(types, list[i].Type)
		}
		seen[list[i].ID] = true
	}
	return types
}
