package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// caller sends requests as a merchant's program or the bank's operator does.
type caller struct {
	transport http.RoundTripper
	headers   map[string]string
	timeout   time.Duration
}

func newCaller(timeout time.Duration, headers map[string]string) *caller {
	return &caller{env.NewOutbound(env.OutboundOptions{}).Processor(), headers, timeout}
}

// reply is what a request got; status 0 where no whole answer came.
type reply struct {
	status     int
	replayed   bool
	retryAfter string
	body       []byte
}

// problem is the body of an error.
type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Field string `json:"field"`
	} `json:"errors"`
}

func (r reply) problem() (p problem) {
	_ = json.Unmarshal(r.body, &p) // what is no problem has no code
	return p
}

func (c *caller) send(ctx context.Context, method, url, body string) reply {
	ctx, cancel := clock.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
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
		status: answer.StatusCode, body: text,
		replayed:   answer.Header.Get("Idempotency-Replayed") == "true",
		retryAfter: answer.Header.Get("Retry-After"),
	}
}

// readTries bounds how often a read is tried that nothing disturbs any more.
const readTries = 40

// read gets JSON, and again while there is no answer.
func (c *caller) read(ctx context.Context, url string, into any) error {
	var last reply
	for range readTries {
		last = c.send(ctx, http.MethodGet, url, "")
		if last.status == http.StatusOK {
			if err := json.Unmarshal(last.body, into); err != nil {
				return fmt.Errorf("%s: %w", url, err)
			}
			return nil
		}
		if !wait(ctx, 250*time.Millisecond) {
			break
		}
	}
	return fmt.Errorf("%s answers %d: %.300s", url, last.status, last.body)
}
