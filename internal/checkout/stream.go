package checkout

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

// beatEvery is how often a silent stream says that it lives, which proxies want
// to hear within a minute.
const beatEvery = 40 * time.Second

// state answers with the version of an order, for pages that cannot wait.
func (p *Pages) state(v *visit) error {
	v.header().Set("Content-Type", "application/json")
	v.status = http.StatusOK
	_, _ = v.w.Write([]byte(`{"version":` + strconv.FormatInt(v.payin.Version, 10) + `}`)) // the caller may have gone
	return nil
}

// stream tells a page, as server-sent events, when its order has another
// version than the one that it shows (v in the query).
func (p *Pages) stream(v *visit) error {
	shown, err := strconv.ParseInt(v.r.URL.Query().Get("v"), 10, 64)
	if err != nil {
		return errNotFound
	}
	v.header().Set("Content-Type", "text/event-stream")
	if v.r.Method == http.MethodHead { // it would wait for news that it cannot be told
		v.status = http.StatusOK
		v.w.WriteHeader(http.StatusOK)
		return nil
	}
	w := p.hub.watch(v.payin.Merchant, v.payin.ID)
	if w == nil {
		return problem.New(problem.Overloaded, "Too many pages wait.")
	}
	defer p.hub.leave(w)
	control := http.NewResponseController(v.w)
	// The server's time-outs are for requests that end. What a stream says in a
	// day fits into the socket's buffer, so a page that does not read keeps
	// nobody waiting; one that is gone is found by TCP's own probes.
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	v.header().Set("X-Accel-Buffering", "no") // nginx would keep what it is sent
	v.status = http.StatusOK
	v.w.WriteHeader(http.StatusOK)
	if !p.send(control, v.w, "retry: 3000\n\n") {
		return nil
	}
	for {
		order, err := p.reader.Payin(v.r.Context(), v.payin.Merchant, v.payin.ID)
		if err != nil {
			return nil // the browser comes again, and is told then what was missed
		}
		if order.Version != shown {
			shown = order.Version
			if !p.send(control, v.w, "event: change\ndata: "+strconv.FormatInt(shown, 10)+"\n\n") {
				return nil
			}
		}
		if !p.wait(control, v, w) {
			return nil
		}
	}
}

// wait returns true once the order may have changed, and false when the page
// or the process goes. Meanwhile it sends a sign of life now and then.
func (p *Pages) wait(control *http.ResponseController, v *visit, w *watcher) bool {
	for {
		timer := p.clock.NewTimer(beatEvery)
		select {
		case <-w.wake:
			timer.Stop()
			return true
		case <-v.r.Context().Done():
			timer.Stop()
			return false
		case <-p.hub.closing:
			timer.Stop()
			return false
		case <-timer.C():
			if !p.send(control, v.w, ":\n\n") {
				return false
			}
		}
	}
}

// send writes a piece of a stream, or says that nobody takes it.
func (p *Pages) send(control *http.ResponseController, w http.ResponseWriter, text string) bool {
	_, err := w.Write([]byte(text))
	return err == nil && control.Flush() == nil
}
