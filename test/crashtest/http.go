package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// httpClient sends requests as a merchant's program or the bank's operator does.
type httpClient struct {
	transport http.RoundTripper
	headers   map[string]string
	timeout   time.Duration
}

func newHTTPClient(timeout time.Duration, headers map[string]string) *httpClient {
	return &httpClient{env.NewOutbound(env.OutboundOptions{}).Processor(), headers, timeout}
}

// reply is the answer to a request; status 0 if there was no complete answer.
type reply struct {
	status      int
	replayed    bool
	contentType string
	retryAfter  string
	body        []byte
}

// problem is the body of an error.
type problem struct {
	Code   string `json:"code"`
	Errors []struct {
		Field string `json:"field"`
	} `json:"errors"`
}

func (r reply) problem() (p problem) {
	_ = json.Unmarshal(r.body, &p) // another body has no code
	return p
}

func (c *httpClient) send(ctx context.Context, method, address, body string) reply {
	ctx, cancel := clock.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return reply{}
	}
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.transport.RoundTrip(request)
	if err != nil {
		return reply{}
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return reply{}
	}
	return reply{
		status: answer.StatusCode, body: text, contentType: answer.Header.Get("Content-Type"),
		replayed:   answer.Header.Get("Idempotency-Replayed") == "true",
		retryAfter: answer.Header.Get("Retry-After"),
	}
}

// readTries bounds the attempts of a read after all faults have ended.
const readTries = 40

// read gets JSON, and retries while there is no answer.
func (c *httpClient) read(ctx context.Context, address string, into any) error {
	var last reply
	for range readTries {
		last = c.send(ctx, http.MethodGet, address, "")
		if last.status == http.StatusOK {
			if err := json.Unmarshal(last.body, into); err != nil {
				return fmt.Errorf("%s: %w", address, err)
			}
			return nil
		}
		if !wait(ctx, 250*time.Millisecond) {
			break
		}
	}
	return fmt.Errorf("%s is answered %d: %.300s", address, last.status, last.body)
}

// pages reads a list from a cursor to its end, one page at a time. It returns the
// cursor to continue from.
func pages[T any](ctx context.Context, c *httpClient, address, cursor string, add func(T) error) (next string, err error) {
	for {
		var page struct {
			Data       []T
			NextCursor string
		}
		if err := c.read(ctx, address+after(cursor), &page); err != nil {
			return cursor, err
		}
		for _, v := range page.Data {
			if err := add(v); err != nil {
				return cursor, err
			}
		}
		if page.NextCursor != "" {
			cursor = page.NextCursor
		}
		if len(page.Data) == 0 || page.NextCursor == "" {
			return cursor, nil
		}
	}
}

// after is the part of a query that continues from a cursor.
func after(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "&cursor=" + url.QueryEscape(cursor)
}
