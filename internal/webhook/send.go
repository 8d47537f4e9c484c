package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
)

const (
	defaultTimeout = 15 * time.Second
	// maxRead is how many bytes of an answer are read, so that a connection can be
	// reused after an answer of common size.
	maxRead = 64 << 10
	// maxKept is how many bytes of an answer an attempt keeps.
	maxKept = 4 << 10

	userAgent = "Porteira-Webhook/1"
)

// Outcome is what an attempt means for its delivery.
type Outcome string

// The outcomes.
const (
	// Delivered means that the receiver answered 2xx.
	Delivered Outcome = "delivered"
	// Retry means that it is to be tried again, by [Schedule].
	Retry Outcome = "retry"
	// Gone means that the receiver answered 410: it wants no more events.
	Gone Outcome = "gone"
)

// Delivery is one event on its way to one receiver.
type Delivery struct {
	URL     string
	EventID string   // the webhook-id, the same on each attempt
	Body    []byte   // JSON, the same on each attempt
	Secrets []Secret // one, or two while a secret is being rotated
}

// Attempt is the result of sending once.
type Attempt struct {
	Outcome    Outcome
	At         time.Time     // when it began, UTC
	Latency    time.Duration // until it ended
	StatusCode int           // 0 without an answer
	// Response is the beginning of the answer's body, at most 4 KiB, valid UTF-8
	// without NUL. It is the receiver's text: escape it for display.
	Response string
	// Reason says why the event was not delivered; "" if it was.
	Reason Reason
	// RetryAfter is the wait that the receiver requested with 429 or 503.
	RetryAfter time.Duration
}

// Sender makes attempts. Its fields must not change once it is used.
type Sender struct {
	// Transport carries the requests: [env.Env]'s Webhooks.
	Transport http.RoundTripper
	// Clock times and dates the attempt: receivers reject a webhook-timestamp that is
	// minutes away from their own clock.
	Clock env.Clock
	// Timeout bounds the attempt, including the answer's body; the default is 15 s.
	Timeout time.Duration
}

// Send makes one attempt. It follows no redirect. Only the status decides: a body
// that is endless, slow or cut off has no effect.
func (s *Sender) Send(ctx context.Context, d Delivery) Attempt {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	began := s.Clock.Monotonic()
	attempt := Attempt{At: s.Clock.Now(), Outcome: Retry}
	timed, cancel := s.Clock.WithTimeout(ctx, timeout)
	defer cancel()
	s.exchange(timed, d, &attempt)
	if attempt.Reason == ReasonTimeout && ctx.Err() != nil {
		attempt.Reason = ReasonInterrupted // the caller's context ended, not this attempt's
	}
	attempt.Latency = s.Clock.Monotonic() - began
	return attempt
}

func (s *Sender) exchange(ctx context.Context, d Delivery, attempt *Attempt) {
	var tlsFailed atomic.Bool // set by whichever goroutine dials
	traced := httptrace.WithClientTrace(ctx, handshakeTrace(&tlsFailed))
	request, err := newRequest(traced, d, attempt.At)
	if err != nil {
		attempt.Reason = ReasonInvalidURL
		return
	}
	response, err := s.Transport.RoundTrip(request)
	if err != nil {
		attempt.Reason = classify(ctx, err, tlsFailed.Load())
		return
	}
	defer func() { _ = response.Body.Close() }() // nothing that was sent depends on it

	attempt.StatusCode = response.StatusCode
	attempt.Outcome, attempt.Reason = outcomeOf(response.StatusCode)
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		attempt.RetryAfter = parseRetryAfter(response.Header.Get("Retry-After"), attempt.At)
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		attempt.Response = readSome(response.Body)
	} // else the body is the connection itself, and no timeout ends a read from it
}

func newRequest(ctx context.Context, d Delivery, at time.Time) (*http.Request, error) {
	u, err := parseURL(d.URL, true)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Webhook-Id", d.EventID)
	request.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	request.Header.Set("Webhook-Signature", Sign(d.Secrets, d.EventID, at, d.Body))
	return request, nil
}

// outcomeOf returns what a status means.
func outcomeOf(status int) (Outcome, Reason) {
	switch {
	case status >= 200 && status < 300:
		return Delivered, ""
	case status == http.StatusGone:
		return Gone, ReasonStatus
	case status >= 300 && status < 400:
		return Retry, ReasonRedirect
	default:
		return Retry, ReasonStatus
	}
}

// readSome returns the beginning of a body as text, and reads a little beyond it.
// Errors are ignored: any part of the body will do.
func readSome(body io.Reader) string {
	start, _ := io.ReadAll(io.LimitReader(body, maxKept))
	if len(start) == maxKept {
		_, _ = io.CopyN(io.Discard, body, maxRead-maxKept)
	}
	return cleanText(start)
}

// cleanText turns bytes from outside into text: invalid UTF-8 becomes U+FFFD, and
// NUL, which PostgreSQL does not store, is removed.
func cleanText(raw []byte) string {
	text := strings.ToValidUTF8(strings.ReplaceAll(string(raw), "\x00", ""), "\uFFFD")
	if len(text) <= maxKept {
		return text
	}
	return strings.ToValidUTF8(text[:maxKept], "") // without the character cut in two
}
