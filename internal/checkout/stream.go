package checkout

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

// keepAliveInterval is how often an idle stream sends a comment, and reads its order again;
// proxies close connections that are idle for a minute.
const keepAliveInterval = 40 * time.Second

// state responds with the version of an order, for browsers without event
// streams.
func (p *Pages) state(req *request) error {
	req.header().Set("Content-Type", "application/json")
	req.status = http.StatusOK
	_, _ = req.w.Write([]byte(`{"version":` + strconv.FormatInt(req.payin.Version, 10) + `}`)) // the client may have disconnected
	return nil
}

// stream sends a server-sent event whenever the order's version differs from
// the one that the page shows (v in the query).
func (p *Pages) stream(req *request) error {
	shown, err := strconv.ParseInt(req.r.URL.Query().Get("v"), 10, 64)
	if err != nil {
		return errNotFound
	}
	req.header().Set("Content-Type", "text/event-stream")
	if req.r.Method == http.MethodHead { // HEAD gets no events
		req.status = http.StatusOK
		req.w.WriteHeader(http.StatusOK)
		return nil
	}
	w := p.hub.watch(req.payin.Merchant, req.payin.ID)
	if w == nil {
		return problem.New(problem.Overloaded, "Too many pages are waiting.")
	}
	defer p.hub.unwatch(w)
	control := http.NewResponseController(req.w)
	// The server's time-outs are for requests that end. A day of events fits
	// into the socket's buffer, so a page that does not read blocks nothing
	// here; TCP keep-alive finds a page that is gone.
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	req.header().Set("X-Accel-Buffering", "no") // or nginx would buffer the stream
	req.status = http.StatusOK
	req.w.WriteHeader(http.StatusOK)
	if !p.writeChunk(control, req.w, "retry: 3000\n\n") {
		return nil
	}
	for woken := true; ; {
		order, err := p.reader.Payin(req.r.Context(), req.payin.Merchant, req.payin.ID)
		switch {
		case err != nil && woken:
			return nil // the browser reconnects and then gets what it missed
		case err == nil && order.Version != shown:
			shown = order.Version
			if !p.writeChunk(control, req.w, "event: change\ndata: "+strconv.FormatInt(shown, 10)+"\n\n") {
				return nil
			}
		}
		var open bool
		if woken, open = p.waitForChange(control, req, w); !open {
			return nil
		}
	}
}

// waitForChange returns once the order is to be read again: woken if it has changed, else after
// keepAliveInterval. A command of the operator, which is another process, wakes nothing, nor does
// another gateway's change without an event. open is false when the client disconnects or the
// process stops.
func (p *Pages) waitForChange(control *http.ResponseController, req *request, w *watcher) (woken, open bool) {
	timer := p.clock.NewTimer(keepAliveInterval)
	defer timer.Stop()
	select {
	case <-w.wake:
		return true, true
	case <-req.r.Context().Done():
		return false, false
	case <-p.hub.closing:
		return false, false
	case <-timer.C():
		return false, p.writeChunk(control, req.w, ":\n\n")
	}
}

// writeChunk writes and flushes a piece of a stream; false if the client
// disconnected.
func (p *Pages) writeChunk(control *http.ResponseController, w http.ResponseWriter, text string) bool {
	_, err := w.Write([]byte(text))
	return err == nil && control.Flush() == nil
}
