package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// call is one request with its answer.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	ctx       context.Context //nolint:containedctx // of the request, with its deadline; http.Request.WithContext would copy the request
	route     *route          // nil until it is found
	requestID string
	merchant  store.Merchant
	// credential is the caller's; nil for public routes and anonymous orders.
	credential *store.Credential
	anonymous  bool // without credentials
	counted    bool // among the requests in flight of the credential
	blocked    bool // refused because of wrong secrets
	status     int  // of the answer; 0 until there is one

	memory   *memory
	reserved reserved
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The standard router would redirect a path that is not clean; answer 404.
	if p := r.URL.Path; p == "" || p[0] != '/' || p == "//" || len(p) > 1 && path.Clean(p) != strings.TrimSuffix(p, "/") {
		a.serve(w, r, nil)
		return
	}
	a.router.ServeHTTP(w, r)
}

// serve answers a request for a resource; nil if there is no such path.
func (a *API) serve(w http.ResponseWriter, r *http.Request, res *resource) {
	start := a.env.Clock.Monotonic()
	id := a.env.IDs.NewID(a.env.Clock.Now())
	c := &call{w: w, r: r, ctx: r.Context(), requestID: hex.EncodeToString(id[:]), memory: a.memory}
	defer c.releaseMemory()
	header := w.Header()
	header.Set("X-Request-Id", c.requestID)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if len(r.TransferEncoding) > 0 {
		// The request may have had a Content-Length too, which net/http removes. A proxy
		// that uses it would see another end of the request (RFC 9112, section 6.1).
		header.Set("Connection", "close")
	}

	err := a.run(c, res)
	if err != nil && c.status == 0 {
		c.fail(err)
		c.discardBody()
	}
	took := a.env.Clock.Monotonic() - start
	method, pattern := c.labels()
	a.observe(method, pattern, c.status, took)
	a.logCall(c, took, err)
}

// labels are method and path of the route, for metrics and the log: few values, with
// nothing of the request.
func (c *call) labels() (method, pattern string) {
	if c.route == nil {
		return "other", ""
	}
	return c.route.method, c.route.path
}

// requestTimeout is when a request is answered with 503 although its commit or query has
// not ended, as if the database hangs. It is below the server's write timeout, after which
// no answer can be sent.
const requestTimeout = 25 * time.Second

// run finds the route and calls its handler; a panic becomes an error.
func (a *API) run(c *call, res *resource) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler { //nolint:errorlint // it is never wrapped
				panic(v)
			}
			err = fmt.Errorf("httpapi: panic: %v\n%s", v, debug.Stack())
		}
	}()
	if res == nil {
		if near := a.nearestPath(c.r.URL.Path); near != "" {
			if strings.HasSuffix(c.r.URL.Path, "/") {
				near += ", without a slash at its end"
			}
			return problem.New(problem.NotFound, "Path not found. Use "+near+".")
		}
		return problem.New(problem.NotFound, "Path not found. GET /openapi.json has all paths.")
	}
	rt := res.methods[c.r.Method]
	if rt == nil {
		c.w.Header().Set("Allow", res.allow)
		return problem.New(problem.MethodNotAllowed, "The Allow header lists the methods of this path.")
	}
	c.route = rt
	if !a.slots.acquire(rt.class) {
		return problem.New(problem.Overloaded, "Too many requests are in flight.")
	}
	defer a.slots.release(rt.class)
	ctx, cancel := a.env.Clock.WithTimeout(c.ctx, requestTimeout)
	defer cancel()
	c.ctx = ctx
	if rt.scope != public {
		if err := a.authenticate(c); err != nil {
			return err
		}
		if c.credential != nil {
			if err := a.rates.admit(c); err != nil {
				return err
			}
			defer a.rates.leave(c)
		}
		if rt.class == write { // before the body is read: a rejection must be cheap
			if err := a.admission.Admit(c.merchant.ID); err != nil {
				return err
			}
		}
	}
	return rt.handle(a, c)
}

// fieldErrorBytes is the typical size of one invalid field in memory and in the document.
const fieldErrorBytes = 512

// fail answers with a problem document.
func (c *call) fail(err error) {
	e := problem.From(err)
	if e.Kind == problem.Unauthorized {
		c.w.Header().Set("WWW-Authenticate", `ApiKey realm="porteira"`) // RFC 9110, section 11.6.1
	}
	if len(e.Fields) > 0 {
		if full := c.reserve(fieldErrorBytes * len(e.Fields)); full != nil {
			e = problem.From(full)
		}
	}
	c.status = e.Kind.Status()
	problem.Write(c.w, e, c.requestID)
}

// json answers with a JSON body, which was built for this call.
func (c *call) json(status int, body []byte) error {
	if err := c.reserveAnswer(len(body)); err != nil {
		return err
	}
	return c.shared(status, body)
}

// shared answers with a JSON body that all calls share.
func (c *call) shared(status int, body []byte) error {
	return c.sharedAs("application/json", status, body)
}

func (c *call) sharedAs(media string, status int, body []byte) error {
	header := c.w.Header()
	header.Set("Content-Type", media)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.status = status
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the client may have disconnected
	return nil
}

// empty answers without a body.
func (c *call) empty(status int) error {
	c.status = status
	c.w.WriteHeader(status)
	return nil
}

// refusalLogInterval is the shortest time between two log lines about refusals of one cause.
const refusalLogInterval = time.Second

// tally counts what may happen too often for a log line each.
type tally struct {
	count atomic.Int64 // since the last line
	at    atomic.Int64 // time of that line, on the monotonic clock; 0 for never
}

// add counts one more. It returns the count if a line is due at now: one per interval.
func (t *tally) add(now, interval time.Duration) int64 {
	t.count.Add(1)
	at := int64(now) + 1 // never 0
	last := t.at.Load()
	if last != 0 && at-last < int64(interval) || !t.at.CompareAndSwap(last, at) {
		return 0
	}
	return t.count.Swap(0)
}

// logRefused counts a refused request, and logs the count when a line is due.
func (a *API) logRefused(ctx context.Context, t *tally, message string) {
	if n := t.add(a.env.Clock.Monotonic(), refusalLogInterval); n > 0 {
		a.log.WarnContext(ctx, message, "rejected", n)
	}
}

// logCall writes the log line of a request. It has neither path nor query, which
// may contain secrets or personal data.
func (a *API) logCall(c *call, took time.Duration, err error) {
	ctx := c.r.Context()
	level := slog.LevelInfo
	switch {
	case problem.Is(err, problem.Overloaded): // not an error line each, under overload
		a.logRefused(ctx, &a.overloads, "overloaded: rejecting new requests with 503")
	case c.blocked: // a blocked client must not fill the log
		a.logRefused(ctx, &a.blocks, "wrong credentials: rejecting them with 429 from addresses that sent many")
		return
	case errors.Is(err, context.Canceled) && ctx.Err() != nil: // the client has disconnected
	case c.status >= http.StatusInternalServerError && err != nil && problem.From(err).RetryAfter > 0: // it passes, such as after a cold start
		level = slog.LevelWarn
	case c.status >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	if !a.log.Enabled(ctx, level) {
		return
	}
	method, pattern := c.labels()
	attrs := [9]slog.Attr{
		slog.String("method", method),
		slog.String("route", pattern),
		slog.Int("status", c.status),
		slog.Int64("durationMicros", took.Microseconds()),
		slog.String("requestId", c.requestID),
	}
	n := 5
	if c.merchant.Number != 0 {
		attrs[n] = slog.Int64("merchant", c.merchant.Number)
		n++
	}
	if c.credential != nil { // its id is public
		attrs[n] = slog.String("credential", c.credential.KeyID)
		n++
	}
	if err != nil {
		e := problem.From(err)
		attrs[n] = slog.String("code", string(e.Kind))
		n++
		if e.Cause != nil && level >= slog.LevelWarn {
			attrs[n] = slog.String("cause", e.Cause.Error())
			n++
		}
	}
	a.log.LogAttrs(ctx, level, "request", attrs[:n]...)
}
