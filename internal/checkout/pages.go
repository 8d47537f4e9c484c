package checkout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Reader reads orders and merchants: [store.Store].
type Reader interface {
	MerchantByNumber(ctx context.Context, number int64) (store.Merchant, error)
	Brand(ctx context.Context, merchant payment.ID) (store.Brand, error)
	Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
	PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error)
}

// Tokens verify the token in a page's URL: [db.Keyring].
type Tokens interface {
	ReadOrderToken(token string) (number int64, id payment.ID, ok bool)
}

var (
	_ Reader = (*store.Store)(nil)
	_ Events = (*store.Store)(nil)
	_ Tokens = (*db.Keyring)(nil)
)

// Options of New. Reader, Cards, Tokens, Hub and Clock are required.
type Options struct {
	Reader     Reader
	Cards      Cards
	Tokens     Tokens
	Hub        *Hub
	Clock      env.Clock
	Processors processor.Accounts
	Log        *slog.Logger
	// Sandbox performs the actions of the sandbox strip on pages of orders of
	// SandboxProcessor; nil shows no strip.
	Sandbox          Sandbox
	SandboxProcessor string
	// Observe, if not nil, is called after each request except streams.
	Observe func(method, route string, status int, took time.Duration)
}

// Pages serves the payer's pages. It is safe for concurrent use.
type Pages struct {
	reader           Reader
	cards            Cards
	tokens           Tokens
	hub              *Hub
	clock            env.Clock
	processors       processor.Accounts
	log              *slog.Logger
	sandbox          Sandbox
	sandboxProcessor string
	observe          func(method, route string, status int, took time.Duration)
	brands           *brandCache
	inFlight         atomic.Int64
	actionsInFlight  sync.Map // ids of orders with a sandbox action in flight
}

// New returns the pages.
func New(o Options) *Pages {
	p := &Pages{
		reader: o.Reader, cards: o.Cards, tokens: o.Tokens, hub: o.Hub, clock: o.Clock, processors: o.Processors,
		log: o.Log, sandbox: o.Sandbox, sandboxProcessor: o.SandboxProcessor, observe: o.Observe, brands: newBrands(o.Reader, o.Clock),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p
}

// Serves reports whether a path belongs to the payer's pages.
func Serves(path string) bool { return strings.HasPrefix(path, pagePath) }

// route is a path below the path of an order's page.
type route struct {
	pattern string // as logged
	method  string
	serve   func(*Pages, *request) error
	form    bool // has a form in its body
}

// routes are all routes; {} is one more path element, request.param.
var routes = map[string]route{
	"":            {"/pay/{token}", http.MethodGet, (*Pages).page, false},
	"/events":     {"/pay/{token}/events", http.MethodGet, (*Pages).stream, false},
	"/state":      {"/pay/{token}/state", http.MethodGet, (*Pages).state, false},
	billPath:      {"/pay/{token}/boleto.pdf", http.MethodGet, (*Pages).boletoPDF, false},
	"/logo/{}":    {"/pay/{token}/logo/{hash}", http.MethodGet, (*Pages).logo, false},
	"/card":       {"/pay/{token}/card", http.MethodPost, (*Pages).payByCard, true},
	"/card/{}":    {"/pay/{token}/card/{attempt}", http.MethodGet, (*Pages).challenge, false},
	"/confirm/{}": {"/pay/{token}/confirm/{attempt}", http.MethodPost, (*Pages).confirmCard, true},
	"/sandbox/{}": {"/pay/{token}/sandbox/{action}", http.MethodPost, (*Pages).sandboxAction, false},
}

// request is one request of a payer's browser.
type request struct {
	w        http.ResponseWriter
	r        *http.Request
	lang     *language
	route    *route
	method   string // the route's method, or "other": metrics need a bounded set
	token    string
	param    string
	form     url.Values // of its body
	merchant *brandedMerchant
	payin    payment.Payin
	status   int // of the response
}

func (req *request) header() http.Header { return req.w.Header() }

// inFlightMax limits the requests in flight except streams, because anyone may
// request pages.
const inFlightMax = 512

var (
	errNotFound = problem.New(problem.NotFound, "Page not found.")
	errMethod   = problem.New(problem.MethodNotAllowed, "The Allow header lists the methods of this path.")
	errBusy     = problem.New(problem.Overloaded, "Too many requests are in flight.")
)

// ServeHTTP implements [http.Handler].
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := p.clock.Monotonic()
	req := &request{w: w, r: r, method: "other", lang: languageOf(r.Header.Get("Accept-Language"))}
	setHeaders(w.Header())
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close") // see httpapi: a proxy may see the end of the request elsewhere
	}
	err := p.serve(req)
	if err != nil && req.status == 0 {
		p.renderError(req, err)
	}
	p.logRequest(req, p.clock.Monotonic()-began, err)
}

func (p *Pages) serve(req *request) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			if recovered == http.ErrAbortHandler { //nolint:errorlint // panics with the value itself
				panic(recovered)
			}
			err = fmt.Errorf("checkout: panic: %v\n%s", recovered, debug.Stack())
		}
	}()
	if err := p.match(req); err != nil {
		return err
	}
	// A form is read before a slot is taken: slow clients must not block other
	// requests.
	if req.route.form {
		if err := req.parseForm(); err != nil {
			return err
		}
	}
	if req.route.pattern != routes["/events"].pattern {
		if p.inFlight.Add(1) > inFlightMax {
			p.inFlight.Add(-1)
			return errBusy
		}
		defer p.inFlight.Add(-1)
	}
	if err := p.loadOrder(req); err != nil {
		return err
	}
	return req.route.serve(p, req)
}

// match finds the route of the path. The standard router would answer unknown
// paths in its own format.
func (p *Pages) match(req *request) error {
	path := strings.TrimPrefix(req.r.URL.Path, pagePath)
	token, rest, _ := strings.Cut(path, "/")
	if rest != "" || strings.HasSuffix(path, "/") {
		rest = "/" + rest
	}
	rt, ok := routes[rest]
	if !ok {
		if i := strings.LastIndexByte(rest, '/'); i > 0 && i < len(rest)-1 {
			rt, ok = routes[rest[:i]+"/{}"]
			req.param = rest[i+1:]
		}
	}
	if !ok {
		return errNotFound
	}
	req.token, req.route = token, &rt
	if req.r.Method != rt.method && (req.r.Method != http.MethodHead || rt.method != http.MethodGet) {
		req.header().Set("Allow", rt.method)
		return errMethod
	}
	req.method = req.r.Method
	if rt.method == http.MethodPost && !sameOriginForm(req.r) {
		return problem.New(problem.ForbiddenIP, "The form was not sent from this page.")
	}
	return nil
}

// sameOriginForm reports whether a form was sent from one of our pages. The
// pages send no referrer and therefore the Origin null. A browser that sends
// neither Sec-Fetch-Site (trustworthy origins only) nor an Origin is accepted:
// the token in the path cannot be guessed.
func sameOriginForm(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "":
		origin := r.Header.Get("Origin")
		return origin == "" || origin == "null" || strings.TrimPrefix(strings.TrimPrefix(origin, "https://"), "http://") == r.Host
	default:
		return false
	}
}

// loadOrder reads the order that the token identifies. An invalid token, a
// token of another installation and a deleted order get the same response.
func (p *Pages) loadOrder(req *request) error {
	number, id, ok := p.tokens.ReadOrderToken(req.token)
	if !ok {
		return errNotFound
	}
	ctx := req.r.Context()
	var err error
	if req.merchant, err = p.brands.get(ctx, number); err == nil {
		req.payin, err = p.reader.Payin(ctx, req.merchant.ID, id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return errNotFound
	}
	return err
}

// renderError renders an error page. It reveals only the status.
func (p *Pages) renderError(req *request, err error) {
	kind := problem.From(err).Kind
	status := kind.Status()
	switch kind {
	case problem.NotFound, problem.MethodNotAllowed, problem.ForbiddenIP:
	case problem.Overloaded, problem.Unavailable, problem.RateLimited:
		status = http.StatusServiceUnavailable
		req.header().Set("Retry-After", "5")
	}
	p.render(req, status, "error", errorView(req.lang, status))
}

// logRequest writes the log line of a request. It omits the path, which holds
// the order's token.
func (p *Pages) logRequest(req *request, took time.Duration, err error) {
	level := slog.LevelInfo
	switch {
	case problem.Is(err, problem.Overloaded): // anyone can cause it at will: not an error of ours
	case errors.Is(err, context.Canceled) && req.r.Context().Err() != nil: // the payer disconnected: not an error
	case req.status >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	pattern := ""
	if req.route != nil {
		pattern = req.route.pattern
	}
	attrs := []slog.Attr{
		slog.String("method", req.method), slog.String("route", pattern), slog.Int("status", req.status), slog.Int64("durationMicros", took.Microseconds()),
	}
	if p.observe != nil && req.route != nil && req.route.pattern != routes["/events"].pattern {
		p.observe(req.method, pattern, req.status, took)
	}
	if req.merchant != nil {
		attrs = append(attrs, slog.Int64("merchant", req.merchant.Number))
	}
	if err != nil {
		e := problem.From(err)
		attrs = append(attrs, slog.String("code", string(e.Kind)))
		if e.Cause != nil && level == slog.LevelError {
			attrs = append(attrs, slog.String("cause", e.Cause.Error()))
		}
	}
	p.log.LogAttrs(req.r.Context(), level, "page", attrs...)
}
