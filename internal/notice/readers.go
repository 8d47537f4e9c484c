package notice

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
)

// readersShare is the part of the readers that one address may use: anyone can send a body, and
// slowly, before proving its origin.
const readersShare = 8

// Times for a body while more than half of the readers are in use, and while nearly all are: the
// last eighth is free again soon, for notices whose body comes with their header. The server's own
// is longer.
const (
	loadedTimeout = 2 * time.Second
	fullTimeout   = 250 * time.Millisecond
)

var errOverloaded = problem.New(problem.Overloaded, "Too many notices are in flight. Send this one again later.")

// readers bounds the bodies that are read at once, in all and per address, as by
// [env.NetworkOf].
type readers struct {
	max, share int

	mu   sync.Mutex
	open int
	by   map[netip.Prefix]int
}

func newReaders(n int) *readers {
	return &readers{max: n, share: max(n/readersShare, 1), by: map[netip.Prefix]int{}}
}

// acquire takes a reader. timeout is the time for the body; 0 is the server's. ok is false if none
// is free for the address.
func (r *readers) acquire(address netip.Prefix) (timeout time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open >= r.max || r.by[address] >= r.share {
		return 0, false
	}
	r.open++
	r.by[address]++
	switch {
	case r.open > r.max-r.max/8:
		return fullTimeout, true
	case r.open > r.max/2:
		return loadedTimeout, true
	default:
		return 0, true
	}
}

func (r *readers) release(address netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open--
	if r.by[address]--; r.by[address] == 0 {
		delete(r.by, address)
	}
}

// read reads a body, whose sender may be slow, before the notice takes a slot.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	address := env.NetworkOf(r.RemoteAddr)
	timeout, ok := h.readers.acquire(address)
	if !ok {
		return nil, errOverloaded
	}
	defer h.readers.release(address)
	ctx := r.Context()
	if timeout > 0 {
		limit, cancel := h.clock.WithTimeout(ctx, timeout)
		defer cancel()
		stop := context.AfterFunc(limit, func() {
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // ends the read
		})
		defer stop() // before cancel
		ctx = limit
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyMax))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, problem.New(problem.BodyTooLarge, "The notice is larger than 256 KiB.")
	}
	switch {
	case err == nil:
		return body, nil
	case problem.Is(err, problem.Overloaded): // of the server's reader
		return nil, err
	case ctx.Err() != nil:
		return nil, errOverloaded.With(err)
	default:
		return nil, unverified(err)
	}
}
