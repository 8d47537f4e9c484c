package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// call is one request on its way through the API.
type call struct {
	w         http.ResponseWriter
	r         *http.Request
	route     *route
	requestID string
	merchant  store.Merchant // whose request it is
	anonymous bool           // it came without credentials
	status    int            // that was answered
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The standard router would redirect a path that is not clean; nothing here
	// is worth a redirect.
	if p := r.URL.Path; p == "" || p[0] != '/' || p == "//" || len(p) > 1 && path.Clean(p) != strings.TrimSuffix(p, "/") {
		a.serve(w, r, nil)
		return
	}
	a.router.ServeHTTP(w, r)
}

// serve answers a request to a place, or to none.
func (a *API) serve(w http.ResponseWriter, r *http.Request, p *place) {
	start := a.env.Clock.Monotonic()
	id := a.env.IDs.NewID(a.env.Clock.Now())
	c := &call{w: w, r: r, requestID: hex.EncodeToString(id[:])}
	header := w.Header()
	header.Set("X-Request-Id", c.requestID)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if len(r.TransferEncoding) > 0 {
		// It may have had a Content-Length too, which net/http takes away: a proxy
		// that went by that sees its end elsewhere (RFC 9112, section 6.1).
		header.Set("Connection", "close")
	}

	err := a.run(c, p)
	if err != nil && c.status == 0 {
		c.fail(err)
	}
	took := a.env.Clock.Monotonic() - start
	method, pattern := c.kind()
	a.observe(method, pattern, c.status, took)
	a.logCall(c, took, err)
}

// kind is the call's method and path as its route names them: bounded words,
// which hold nothing of the request.
func (c *call) kind() (method, pattern string) {
	if c.route == nil {
		return "other", ""
	}
	return c.route.method, c.route.path
}

// run finds the route and runs it; a panic becomes an error.
func (a *API) run(c *call, p *place) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
				panic(v)
			}
			err = fmt.Errorf("httpapi: panic: %v\n%s", v, debug.Stack())
		}
	}()
	if p == nil {
		return problem.New(problem.NotFound, "There is no such path.")
	}
	rt := p.methods[c.r.Method]
	if rt == nil {
		c.w.Header().Set("Allow", p.allow)
		return problem.New(problem.MethodNotAllowed, "The header Allow lists the methods of this path.")
	}
	c.route = rt
	if !a.places.enter(rt.class) {
		return problem.New(problem.Overloaded, "The gateway has more requests under way than it takes on.")
	}
	defer a.places.leave(rt.class)
	if rt.scope != public {
		if err := a.authenticate(c); err != nil {
			return err
		}
		if rt.class == write { // before the body is read: a refusal must cost little
			if err := a.flow.Admit(c.merchant.ID); err != nil {
				return err
			}
		}
	}
	return rt.handle(a, c)
}

func allowed(methods map[string]*route) string {
	return strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
}

// fail answers with a problem document.
func (c *call) fail(err error) {
	e := problem.From(err)
	if e.Kind == problem.Unauthorized {
		c.w.Header().Set("WWW-Authenticate", `ApiKey realm="porteira"`) // RFC 9110, section 11.6.1
	}
	c.status = e.Kind.Status()
	problem.Write(c.w, e, c.requestID)
}

// json answers with a JSON body.
func (c *call) json(status int, body []byte) error {
	header := c.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	c.status = status
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // the caller may have gone: nobody is left to tell
	return nil
}

// empty answers without a body.
func (c *call) empty(status int) error {
	c.status = status
	c.w.WriteHeader(status)
	return nil
}

// refusedEvery is how often the log tells that requests are refused.
const refusedEvery = time.Second

// refused tells the operator, now and then, that there are more requests than
// the gateway takes on.
func (a *API) refused(c *call) {
	a.refusals.Add(1)
	now := int64(a.env.Clock.Monotonic()) + 1 // never 0
	last := a.refusedAt.Load()
	if last != 0 && now-last < int64(refusedEvery) || !a.refusedAt.CompareAndSwap(last, now) {
		return
	}
	a.log.WarnContext(c.r.Context(), "more requests come than can be committed in time: new ones are refused with 503", "refused", a.refusals.Swap(0))
}

// logCall writes the one line of a request. It tells neither path nor query,
// which may hold what does not belong in a log.
func (a *API) logCall(c *call, took time.Duration, err error) {
	level := slog.LevelInfo
	switch {
	case problem.Is(err, problem.Overloaded): // thousands a second must not fill the log as well
		a.refused(c)
	case errors.Is(err, context.Canceled) && c.r.Context().Err() != nil: // the caller has gone; nothing is amiss here
	case c.status >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	if !a.log.Enabled(c.r.Context(), level) {
		return
	}
	method, pattern := c.kind()
	attrs := [8]slog.Attr{
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
	if err != nil {
		e := problem.From(err)
		attrs[n] = slog.String("code", string(e.Kind))
		n++
		if e.Cause != nil && level == slog.LevelError {
			attrs[n] = slog.String("cause", e.Cause.Error())
			n++
		}
	}
	a.log.LogAttrs(c.r.Context(), level, "request", attrs[:n]...)
}
