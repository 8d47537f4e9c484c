// Package inbound is notices from processors: verify, record raw, answer; acts on nothing itself.
package inbound

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// Limits of a notice.
const (
	bodyMax    = 256 << 10 // bytes
	headersMax = 8 << 10   // bytes kept of its headers
)

// ConcurrentDefault is how many notices are taken at once.
const ConcurrentDefault = 64

// readersPerPlace is how many bodies may be on their way for each notice that
// may be taken: anybody can send one, and slowly.
const readersPerPlace = 16

// Flow makes a verified notice durable: [flow.Flow].
type Flow interface {
	RecordNotice(ctx context.Context, name, noticeID, headers string, body []byte) error
}

var _ Flow = (*flow.Flow)(nil)

// Options assemble a Handler.
type Options struct {
	Flow       Flow
	Processors processor.Registry
	Clock      env.Clock
	Log        *slog.Logger
	// Concurrent bounds notices under way, so that a flood of them cannot
	// starve the API; 0 is ConcurrentDefault.
	Concurrent int
}

// Handler takes POST /inbound/{processor}. It is safe for concurrent use.
type Handler struct {
	flow       Flow
	processors processor.Registry
	clock      env.Clock
	log        *slog.Logger
	readers    chan struct{}
	places     chan struct{}
}

// New returns a handler to be mounted at a pattern with {processor} in it.
func New(o Options) *Handler {
	h := &Handler{flow: o.Flow, processors: o.Processors, clock: o.Clock, log: o.Log}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if o.Concurrent <= 0 {
		o.Concurrent = ConcurrentDefault
	}
	h.readers = make(chan struct{}, readersPerPlace*o.Concurrent)
	h.places = make(chan struct{}, o.Concurrent)
	return h
}

// ServeHTTP implements [http.Handler]. The answer's header X-Request-Id, if it
// is set already, names the request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h.receive(w, r)
	if err == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	requestID := w.Header().Get("X-Request-Id")
	e := problem.From(err)
	h.log.LogAttrs(r.Context(), slog.LevelWarn, "notice refused",
		slog.String("requestId", requestID), slog.String("code", string(e.Kind)), slog.Any("cause", e.Cause))
	problem.Write(w, e, requestID)
}

// receive stores a notice that proves where it comes from. It is answered
// after the commit: until then its sender must believe it lost.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("processor")
	notifier, ok := h.processors[name].(processor.Notifier)
	if !ok {
		return problem.New(problem.NotFound, "There is no such processor.")
	}
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	id, err := notifier.VerifyNotice(r.Header, body, h.clock.Now())
	if err != nil || id == "" {
		return unverified(err)
	}
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		return errOverloaded
	}
	return h.flow.RecordNotice(r.Context(), name, id, headerText(r.Header), body)
}

var errOverloaded = problem.New(problem.Overloaded, "Too many notices are under way. Send this one again later.")

// read takes a body in, which must not keep a notice out that has arrived.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	select {
	case h.readers <- struct{}{}:
		defer func() { <-h.readers }()
	default:
		return nil, errOverloaded
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.New(problem.BodyTooLarge, "A notice has at most 256 KiB.")
	}
	if err != nil {
		return nil, unverified(err)
	}
	return body, nil
}

// unverified is the one answer to every doubt, whatever it is.
func unverified(cause error) error {
	return problem.New(problem.Unauthorized, "The notice does not prove where it comes from.").With(cause)
}

// secretHeaders are not kept with a notice.
var secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Api-Secret"}

// headerText writes headers one a line, sorted by name, as the notice is kept.
func headerText(h http.Header) string {
	names := make([]string, 0, len(h))
	for name := range h {
		if !slices.Contains(secretHeaders, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		for _, value := range h[name] {
			if line := name + ": " + strings.ToValidUTF8(value, "\ufffd") + "\n"; text.Len()+len(line) <= headersMax {
				text.WriteString(line)
			}
		}
	}
	return text.String()
}
