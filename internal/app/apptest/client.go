package apptest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi/apitest"
)

// Client sends requests to a gateway, as a merchant's program does, and validates
// requests and answers against the contract.
type Client struct {
	// T is the test that fails.
	T testing.TB
	// Base is the gateway's address.
	Base string
	// Key and Secret are the credentials; empty ones are not sent.
	Key, Secret string

	way http.RoundTripper
}

// NewClient returns a client of a gateway in another process.
func NewClient(t testing.TB, base, key, secret string) *Client {
	way := env.System(env.OutboundOptions{}).Processor
	t.Cleanup(way.(interface{ CloseIdleConnections() }).CloseIdleConnections)
	return &Client{T: t, Base: base, Key: key, Secret: secret, way: way}
}

// Anonymous is the client without credentials.
func (c *Client) Anonymous() *Client {
	other := *c
	other.Key, other.Secret = "", ""
	return &other
}

// In is the client for another test, such as a part of the first.
func (c *Client) In(t testing.TB) *Client {
	other := *c
	other.T = t
	return &other
}

// Answer is the response to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Replayed reports whether the answer is marked as the answer to a repeated request.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotency-Replayed") == "true" }

// Get returns the member at a path such as data.0.id as text; "" if there is none.
func (a Answer) Get(path string) string {
	var v any
	if json.Unmarshal([]byte(a.Body), &v) != nil {
		return ""
	}
	for part := range strings.SplitSeq(path, ".") {
		switch inner := v.(type) {
		case map[string]any:
			v = inner[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i < 0 || i >= len(inner) {
				return ""
			}
			v = inner[i]
		default:
			return ""
		}
	}
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return fmt.Sprintf("%.0f", v)
	default:
		return fmt.Sprint(v)
	}
}

// List returns the member name of each entry of data.
func (a Answer) List(name string) []string {
	var page struct {
		Data []map[string]any `json:"data"`
	}
	_ = json.Unmarshal([]byte(a.Body), &page) // an error leaves the list empty
	list := make([]string, len(page.Data))
	for i := range page.Data {
		list[i] = fmt.Sprint(page.Data[i][name])
	}
	return list
}

// Ask sends a request. Headers are lines of the form "Name: value". A header
// replaces the default of the same name, or removes it if the value is empty.
func (c *Client) Ask(method, path, body string, headers ...string) Answer {
	c.T.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, c.Base+path, strings.NewReader(body))
	if err != nil {
		c.T.Fatal(err)
	}
	if c.Key != "" {
		r.Header.Set("X-Api-Key", c.Key)
		r.Header.Set("X-Api-Secret", c.Secret)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	cleared := map[string]bool{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name = http.CanonicalHeaderKey(strings.TrimSuffix(name, ":")); !cleared[name] {
			r.Header.Del(name)
			cleared[name] = true
		}
		if value != "" {
			r.Header.Add(name, value)
		}
	}
	got, err := apitest.Transport(c.T, c.way).RoundTrip(r)
	if err != nil {
		c.T.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		c.T.Fatal(err)
	}
	return Answer{got.StatusCode, got.Header, string(text)}
}

// Must is Ask, and ends the test if the status is another one.
func (c *Client) Must(status int, method, path, body string, headers ...string) Answer {
	c.T.Helper()
	a := c.Ask(method, path, body, headers...)
	if a.Status != status {
		c.T.Fatalf("%s %s: %d, want %d: %s", method, path, a.Status, status, a.Body)
	}
	return a
}
