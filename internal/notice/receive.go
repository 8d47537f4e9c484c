package notice

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
)

// Limits of a notice.
const (
	bodyMax    = 256 << 10 // bytes
	headersMax = 8 << 10   // bytes kept of its headers
)

// ConcurrentDefault is how many notices are recorded at once.
const ConcurrentDefault = 64

// readersPerSlot is how many bodies may be read per slot: anyone can send one, and
// slowly.
const readersPerSlot = 16

// Recorder makes a verified notice durable. [Service] implements it.
type Recorder interface {
	Record(ctx context.Context, processorName, noticeID, headers string, body []byte) error
}

// HandlerOptions configure a Handler.
type HandlerOptions struct {
	Recorder   Recorder
	Questions  Questions // nil: no question is answered
	Processors processor.Accounts
	Clock      env.Clock
	Log        *slog.Logger
	// Concurrent bounds the notices recorded at once, so that a flood of them cannot
	// starve the API; 0 is ConcurrentDefault.
	Concurrent int
}

// Handler serves POST /inbound/{account}/{token}, and the questions of processors at
// …/consent. It is safe for concurrent use.
type Handler struct {
	recorder   Recorder
	questions  Questions
	processors processor.Accounts
	clock      env.Clock
	log        *slog.Logger
	readers    *readers
	slots      chan struct{}
}

// NewHandler returns a handler for patterns with {account} and {token} in them, and {rest} for the
// path that processors append.
func NewHandler(o HandlerOptions) *Handler {
	h := &Handler{recorder: o.Recorder, questions: o.Questions, processors: o.Processors, clock: o.Clock, log: o.Log}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if o.Concurrent <= 0 {
		o.Concurrent = ConcurrentDefault
	}
	h.readers = newReaders(readersPerSlot * o.Concurrent)
	h.slots = make(chan struct{}, o.Concurrent)
	return h
}

// ServeHTTP implements [http.Handler]. The answer's header X-Request-Id, if
// already set, names the request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var err error
	if r.PathValue("rest") == consentPath && h.questions != nil {
		err = h.answer(w, r)
	} else if err = h.receive(w, r); err == nil {
		w.WriteHeader(http.StatusOK)
	}
	if err == nil {
		return
	}
	requestID := w.Header().Get("X-Request-Id")
	e := problem.From(err)
	h.log.LogAttrs(r.Context(), slog.LevelWarn, "notice refused",
		slog.String("requestId", requestID), slog.String("code", string(e.Kind)), slog.Any("cause", e.Cause))
	problem.Write(w, e, requestID)
}

var errNoAccount = problem.New(problem.NotFound, "Resource not found.") // as for an unknown path

// receive stores an authentic notice and answers after the commit: until then its
// sender must assume that it is lost.
func (h *Handler) receive(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("account")
	notifier, ok := h.processors.Find(name).(processor.Notifier)
	if !ok || !h.processors.Authentic(name, r.PathValue("token")) {
		return errNoAccount
	}
	if verifier, ok := notifier.(processor.PeerVerifier); ok {
		if err := verifier.VerifyPeer(peerChain(r), h.clock.Now()); err != nil {
			return unverified(err)
		}
	}
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	id, err := notifier.VerifyNotice(r.Header, body, h.clock.Now())
	if err != nil || id == "" {
		return unverified(err)
	}
	release, err := h.slot()
	if err != nil {
		return err
	}
	defer release()
	return h.recorder.Record(r.Context(), name, id, headerText(r.Header), body)
}

// slot takes a slot to record, if one is free.
func (h *Handler) slot() (release func(), err error) {
	select {
	case h.slots <- struct{}{}:
		return func() { <-h.slots }, nil
	default:
		return nil, errOverloaded
	}
}

// unverified is the answer to every failed verification.
func unverified(cause error) error {
	return problem.New(problem.Unauthorized, "The notice could not be authenticated.").With(cause)
}

// secretHeaders are not kept with a notice.
var secretHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "X-Api-Secret", "Asaas-Access-Token"}

// headerText writes headers in their stored form: one a line, sorted by name.
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
