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

// Delivery is one time that an event reached a receiver.
type Delivery struct {
	ID      string
	Type    string
	Version int64
	Path    string // of the address that it came to
	Body    string
}

// Receiver takes webhooks, and fails its test where one is not as Standard
// Webhooks has it: judged by the published library.
type Receiver struct {
	// URL is its address, without a path.
	URL string

	t     testing.TB
	judge *webhooks.Webhook
	mu    sync.Mutex
	list  []Delivery
	bytes map[string]string // by event
}

// NewReceiver begins to listen. answer writes the answer to a delivery, of
// which n-1 came before to the same path; nil answers 200.
func NewReceiver(t testing.TB, secret string, answer func(w http.ResponseWriter, r *http.Request, n int)) *Receiver {
	t.Helper()
	judge, err := webhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	v := &Receiver{t: t, judge: judge, bytes: map[string]string{}}
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

// take verifies and keeps a delivery. It returns how many came to its path,
// itself included.
func (v *Receiver) take(r *http.Request) (n int) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = v.judge.Verify(body, r.Header)
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
		v.t.Errorf("event %s came with other bytes than before", d.ID)
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

// Deliveries are those to a path, in the order in which they came.
func (v *Receiver) Deliveries(path string) []Delivery {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(v.list), func(d Delivery) bool { return d.Path != path })
}

// Types are the types of the events that came to a path, each event once, in
// the order of their versions: as a receiver that goes by them sees it.
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
