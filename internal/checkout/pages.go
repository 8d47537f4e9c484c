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

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Reader is what pages show: [store.Store].
type Reader interface {
	MerchantByNumber(ctx context.Context, number int64) (store.Merchant, error)
	Brand(ctx context.Context, merchant payment.ID) (store.Brand, error)
	Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
	PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error)
}

// Tokens read what stands at the end of a page's address: [store.Keyring].
type Tokens interface {
	ReadOrderToken(token string) (number int64, id payment.ID, ok bool)
}

var (
	_ Reader = (*store.Store)(nil)
	_ News   = (*store.Store)(nil)
	_ Tokens = (*store.Keyring)(nil)
	_ Flow   = (*flow.Flow)(nil)
)

// Options assemble Pages. Reader, Flow, Tokens, Hub and Clock are needed.
type Options struct {
	Reader     Reader
	Flow       Flow
	Tokens     Tokens
	Hub        *Hub
	Clock      env.Clock
	Processors processor.Registry
	Log        *slog.Logger
	// Sandbox is what the strip of the sandbox controls, on pages of orders of
	// the processor that SandboxProcessor names; nil shows no strip.
	Sandbox          Sandbox
	SandboxProcessor string
	// Observe, if not nil, is told of each request but streams, as the API
	// tells of its own.
	Observe func(method, route string, status int, took time.Duration)
}

// Pages serves the payer's pages. It is safe for concurrent use.
type Pages struct {
	reader           Reader
	flow             Flow
	tokens           Tokens
	hub              *Hub
	clock            env.Clock
	processors       processor.Registry
	log              *slog.Logger
	sandbox          Sandbox
	sandboxProcessor string
	observe          func(method, route string, status int, took time.Duration)
	brands           *brands
	busy             atomic.Int64
	acting           sync.Map // ids of orders whose strip acts
}

// New returns the pages.
func New(o Options) *Pages {
	p := &Pages{
		reader: o.Reader, flow: o.Flow, tokens: o.Tokens, hub: o.Hub, clock: o.Clock, processors: o.Processors,
		log: o.Log, sandbox: o.Sandbox, sandboxProcessor: o.SandboxProcessor, observe: o.Observe, brands: newBrands(o.Reader, o.Clock),
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	return p
}

// Serves says whether a path belongs to the payer's pages.
func Serves(path string) bool { return strings.HasPrefix(path, pagePath) }

// place is one of the addresses below an order's page.
type place struct {
	pattern string // as the log shows it
	method  string
	serve   func(*Pages, *visit) error
	form    bool // it is sent one
}

// places are all of them. {} stands for one more part, which visit.part holds.
var places = map[string]place{
	"":            {"/pay/{token}", http.MethodGet, (*Pages).page, false},
	"/events":     {"/pay/{token}/events", http.MethodGet, (*Pages).stream, false},
	"/state":      {"/pay/{token}/state", http.MethodGet, (*Pages).state, false},
	billPath:      {"/pay/{token}/boleto.pdf", http.MethodGet, (*Pages).bill, false},
	"/logo/{}":    {"/pay/{token}/logo/{hash}", http.MethodGet, (*Pages).logo, false},
	"/card":       {"/pay/{token}/card", http.MethodPost, (*Pages).payByCard, true},
	"/card/{}":    {"/pay/{token}/card/{attempt}", http.MethodGet, (*Pages).challenge, false},
	"/confirm/{}": {"/pay/{token}/confirm/{attempt}", http.MethodPost, (*Pages).confirmCard, true},
	"/sandbox/{}": {"/pay/{token}/sandbox/{action}", http.MethodPost, (*Pages).simulate, false},
}

// visit is one request of a payer's browser.
type visit struct {
	w        http.ResponseWriter
	r        *http.Request
	lang     *language
	place    *place
	method   string // one that the place has, or "other": bounded words
	token    string
	part     string
	fields   url.Values // of its form
	merchant *branded
	payin    payment.Payin
	status   int // that was answered
}

func (v *visit) header() http.Header { return v.w.Header() }

// busyMax bounds the requests under way, without streams: what a page costs,
// strangers may ask for.
const busyMax = 512

var (
	errNotFound = problem.New(problem.NotFound, "There is no such page.")
	errMethod   = problem.New(problem.MethodNotAllowed, "The header Allow lists the methods of this path.")
	errBusy     = problem.New(problem.Overloaded, "There are more requests under way than are taken on.")
)

// ServeHTTP implements [http.Handler].
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := p.clock.Monotonic()
	v := &visit{w: w, r: r, method: "other", lang: languageOf(r.Header.Get("Accept-Language"))}
	setHeaders(w.Header())
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close") // see the API's own: a proxy may see the request's end elsewhere
	}
	err := p.serve(v)
	if err != nil && v.status == 0 {
		p.fail(v, err)
	}
	p.logVisit(v, p.clock.Monotonic()-began, err)
}

func (p *Pages) serve(v *visit) (err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			if thrown == http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
				panic(thrown)
			}
			err = fmt.Errorf("checkout: panic: %v\n%s", thrown, debug.Stack())
		}
	}()
	if err := p.find(v); err != nil {
		return err
	}
	// A form is read before it takes a place: who sends one slowly keeps nobody
	// else out.
	if v.place.form {
		if err := v.readForm(); err != nil {
			return err
		}
	}
	if v.place.pattern != places["/events"].pattern {
		if p.busy.Add(1) > busyMax {
			p.busy.Add(-1)
			return errBusy
		}
		defer p.busy.Add(-1)
	}
	if err := p.open(v); err != nil {
		return err
	}
	return v.place.serve(p, v)
}

// find takes the path apart. It is done by hand, as the standard router would
// answer what it does not know in a way of its own.
func (p *Pages) find(v *visit) error {
	rest := strings.TrimPrefix(v.r.URL.Path, pagePath)
	token, below, _ := strings.Cut(rest, "/")
	if below != "" || strings.HasSuffix(rest, "/") {
		below = "/" + below
	}
	at, ok := places[below]
	if !ok {
		if i := strings.LastIndexByte(below, '/'); i > 0 && i < len(below)-1 {
			at, ok = places[below[:i]+"/{}"]
			v.part = below[i+1:]
		}
	}
	if !ok {
		return errNotFound
	}
	v.token, v.place = token, &at
	if v.r.Method != at.method && (v.r.Method != http.MethodHead || at.method != http.MethodGet) {
		v.header().Set("Allow", at.method)
		return errMethod
	}
	v.method = v.r.Method
	if at.method == http.MethodPost && !ownForm(v.r) {
		return problem.New(problem.ForbiddenIP, "The form was not sent from this page.")
	}
	return nil
}

// ownForm says whether a form was sent from one of our pages. They send no
// referrer, and so an Origin of null; a browser that is not told by whom a
// request was made (Sec-Fetch-Site is for trustworthy origins only) can still
// not know the token in its path.
func ownForm(r *http.Request) bool {
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

// open reads the order that the token names. A wrong token, one of another
// installation and one whose order is gone are answered alike.
func (p *Pages) open(v *visit) error {
	number, id, ok := p.tokens.ReadOrderToken(v.token)
	if !ok {
		return errNotFound
	}
	ctx := v.r.Context()
	var err error
	if v.merchant, err = p.brands.of(ctx, number); err == nil {
		v.payin, err = p.reader.Payin(ctx, v.merchant.ID, id)
	}
	if errors.Is(err, store.ErrNotFound) {
		return errNotFound
	}
	return err
}

// fail answers with a page that says what is wrong, and tells nothing else.
func (p *Pages) fail(v *visit, err error) {
	kind := problem.From(err).Kind
	status := kind.Status()
	switch kind {
	case problem.NotFound, problem.MethodNotAllowed, problem.ForbiddenIP:
	case problem.Overloaded, problem.Unavailable, problem.RateLimited:
		status = http.StatusServiceUnavailable
		v.header().Set("Retry-After", "5")
	}
	p.show(v, status, "failed", failedView(v.lang, status))
}

// logVisit writes the one line of a request. The path is a key to the order:
// it is not told.
func (p *Pages) logVisit(v *visit, took time.Duration, err error) {
	level := slog.LevelInfo
	switch {
	case problem.Is(err, problem.Overloaded): // what strangers can cause at will is no error of ours
	case errors.Is(err, context.Canceled) && v.r.Context().Err() != nil: // the payer has gone; nothing is amiss here
	case v.status >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	pattern := ""
	if v.place != nil {
		pattern = v.place.pattern
	}
	attrs := []slog.Attr{
		slog.String("method", v.method), slog.String("route", pattern), slog.Int("status", v.status), slog.Int64("durationMicros", took.Microseconds()),
	}
	if p.observe != nil && v.place != nil && v.place.pattern != places["/events"].pattern {
		p.observe(v.method, pattern, v.status, took)
	}
	if v.merchant != nil {
		attrs = append(attrs, slog.Int64("merchant", v.merchant.Number))
	}
	if err != nil {
		e := problem.From(err)
		attrs = append(attrs, slog.String("code", string(e.Kind)))
		if e.Cause != nil && level == slog.LevelError {
			attrs = append(attrs, slog.String("cause", e.Cause.Error()))
		}
	}
	p.log.LogAttrs(v.r.Context(), level, "page", attrs...)
}
