package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/env"
)

// Kinds of orders, as paths of the API name them.
const (
	payin  = "payin"
	payout = "payout"
)

// asked is all that a client knows of one order.
type asked struct {
	Kind      string          `json:"kind"` // payin or payout
	Reference string          `json:"reference"`
	Body      json.RawMessage `json:"body"`            // as it was sent
	Acked     json.RawMessage `json:"acked,omitempty"` // the body of the 201; empty while none was seen

	first time.Duration // when it was first sent, by our clock
	acked time.Duration // when it was acknowledged
}

// caller sends requests as a merchant's program does.
type caller struct {
	transport http.RoundTripper
	base      string
}

func newCaller(base string) *caller {
	return &caller{env.NewOutbound(env.OutboundOptions{}).Processor(), base}
}

// answer is what a request got; status 0 where no whole answer came.
type answer struct {
	status     int
	replayed   bool
	kind       string
	retryAfter string
	body       []byte
}

// askTimeout is how long a client waits for an answer: longer than the gateway
// may ever take.
const askTimeout = 30 * time.Second

func (c *caller) send(ctx context.Context, method, path, body string) answer {
	ctx, cancel := clock.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return answer{}
	}
	request.Header.Set("X-Api-Key", app.SandboxKey)
	request.Header.Set("X-Api-Secret", app.SandboxSecret)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	got, err := c.transport.RoundTrip(request)
	if err != nil {
		return answer{}
	}
	defer func() { _ = got.Body.Close() }()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return answer{}
	}
	return answer{
		status: got.StatusCode, body: text, kind: got.Header.Get("Content-Type"),
		replayed: got.Header.Get("Idempotency-Replayed") == "true", retryAfter: got.Header.Get("Retry-After"),
	}
}

// crowd are clients that ask side by side, and their books.
type crowd struct {
	caller  *caller
	figures *figures
	file    *os.File // on another disk than the one that fails
	random  env.Random
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	orders  []*asked
	strange []string
	longest time.Duration // an answer took
	last    time.Duration // when the last acknowledgement came that was no replay
	refused int64         // answers of 503
	failed  error
}

// How long a client rests between requests, and where it was refused or got no
// answer. A real one would wait for Retry-After; these press harder.
const (
	clientPause  = 10 * time.Millisecond
	refusedPause = 50 * time.Millisecond
)

// begin lets n clients loose; the name is theirs.
func (c *crowd) begin(ctx context.Context, name string, n int) {
	ctx, c.stop = context.WithCancel(ctx)
	for k := range n {
		c.done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				a := c.order(fmt.Sprintf("%s-%d-%d", name, k, i))
				for !c.place(ctx, a) {
					if !wait(ctx, refusedPause) {
						return
					}
				}
				wait(ctx, clientPause)
			}
		})
	}
}

// end stops the clients.
func (c *crowd) end() {
	c.stop()
	c.done.Wait()
}

// order draws an order, and notes it before it is asked for.
func (c *crowd) order(reference string) *asked {
	a := &asked{Kind: payin, Reference: reference, first: clock.Monotonic()}
	c.mu.Lock()
	defer c.mu.Unlock()
	amount := 1 + c.random.Int64N(500)
	if c.random.Int64N(2) == 0 {
		a.Kind = payout
		a.Body = fmt.Appendf(nil, `{"amount":%d,"pixKey":"a@b.example","pixKeyType":"EMAIL","beneficiaryName":"Maria Silva","beneficiaryDocument":"52998224725","referenceId":%q}`, amount, reference)
	} else {
		a.Body = fmt.Appendf(nil, `{"paymentMethod":"PIX","amount":%d,"referenceId":%q,"customer":{"name":"Maria Silva","document":"52998224725"}}`, amount, reference)
	}
	c.orders = append(c.orders, a)
	return a
}

// place asks once. It returns true when there is nothing more to ask.
func (c *crowd) place(ctx context.Context, a *asked) bool {
	began := clock.Monotonic()
	got := c.caller.send(ctx, http.MethodPost, "/"+a.Kind, string(a.Body))
	now := clock.Monotonic()
	c.figures.add("requests", 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if got.status != 0 {
		c.longest = max(c.longest, now-began)
	}
	switch {
	case got.status == http.StatusCreated:
		c.acknowledge(a, got, now)
		return true
	case got.status == 0:
		return false
	case got.status == http.StatusServiceUnavailable:
		c.refused++
	}
	if says := objection(a, got); says != "" {
		c.strange = append(c.strange, fmt.Sprintf("POST /%s of %s: %s", a.Kind, a.Reference, says))
		return true
	}
	return false
}

// acknowledge notes a 201, on disk, before anybody hears of it. The lock is held.
func (c *crowd) acknowledge(a *asked, got answer, now time.Duration) {
	if len(a.Acked) > 0 {
		return
	}
	a.Acked, a.acked = got.body, now
	if !got.replayed {
		c.last = now
	}
	line, err := json.Marshal(a)
	if err == nil {
		_, err = c.file.Write(append(line, '\n'))
	}
	if err == nil {
		err = c.file.Sync()
	}
	if err != nil {
		c.failed = err
	}
	c.figures.add("orders acknowledged", 1)
}

// objection says what is wrong with an answer that is no 201.
func objection(a *asked, got answer) string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(got.body, &problem) // what is no problem has no code
	seconds, err := strconv.Atoi(got.retryAfter)
	switch {
	case got.status == http.StatusGatewayTimeout && a.Kind == payin && problem.Code == "processor_timeout":
		return ""
	case got.status != http.StatusServiceUnavailable:
		return fmt.Sprintf("answered %d: %s", got.status, got.body)
	case got.kind != "application/problem+json" || problem.Code == "":
		return fmt.Sprintf("answered 503 as %s: %s", got.kind, got.body)
	case err != nil || seconds < 1:
		return fmt.Sprintf("answered 503 with Retry-After %q", got.retryAfter)
	}
	return ""
}

// acks is how many orders were acknowledged that were first asked for at or
// after one moment, before another.
func (c *crowd) acks(from, to time.Duration) (list []*asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.orders {
		if len(a.Acked) > 0 && a.first >= from && a.acked < to {
			list = append(list, a)
		}
	}
	return list
}

// since tells when the last acknowledgement came, and how many refusals there were.
func (c *crowd) since() (last time.Duration, refused int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.refused
}
