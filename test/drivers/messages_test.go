package drivers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outbound carries the driver's messages to the bank.
type outbound struct {
	*gateway

	from *process
}

// ids are the parts of a path that are different in each run.
var ids = regexp.MustCompile(`/(E?[0-9A-Za-z_-]{20,}|cus_[^/]+)`)

// RoundTrip implements [http.RoundTripper].
func (v outbound) RoundTrip(r *http.Request) (*http.Response, error) {
	name := r.Method + " " + ids.ReplaceAllString(r.URL.Path, "/*")
	arrived := r.Clone(context.WithoutCancel(r.Context()))
	if arrived.Body == nil {
		arrived.Body = http.NoBody
	}
	arrived.Header = http.Header{}
	for key := range r.Header { // names as they are on the wire
		arrived.Header.Set(key, r.Header[key][0])
	}
	v.from.exitIfDead()
	w := httptest.NewRecorder()
	if strings.HasSuffix(name, "/oauth/token") {
		// A driver renews its token beside its calls, and a process that dies then has changed nothing.
		v.bank.handler().ServeHTTP(w, arrived)
		return w.Result(), nil
	}
	if v.nemesis.kills("before " + name) {
		if late, ok := v.nemesis.late(r.Method); ok {
			v.way = append(v.way, letter{v.clock.Monotonic() + late, arrived})
		}
		v.from.die()
	}
	v.bank.handler().ServeHTTP(w, arrived)
	v.point(v.from, "after "+name)
	return w.Result(), nil
}

// letter is a message of a process that died while it was on its way.
type letter struct {
	due     time.Duration // by the monotonic clock
	request *http.Request
}

// advance advances the clock. Messages on their way arrive, and nobody reads the answers.
func (g *gateway) advance(d time.Duration) {
	g.clock.Advance(d)
	g.way = slices.DeleteFunc(g.way, func(l letter) bool {
		if l.due > g.clock.Monotonic() {
			return false
		}
		g.bank.handler().ServeHTTP(httptest.NewRecorder(), l.request)
		return true
	})
}

// inbound carries the bank's notices and questions to the gateway.
type inbound struct{ *gateway }

var errGone = errors.New("the connection was reset")

// RoundTrip implements [http.RoundTripper].
func (v inbound) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	arrived := r.Clone(r.Context())
	arrived.Body = io.NopCloser(bytes.NewReader(body))
	w, p := httptest.NewRecorder(), v.process
	if p.acting { // the test of an address, while it is registered
		p.inbound.ServeHTTP(w, arrived)
		return w.Result(), nil
	}
	alive := v.do(func() {
		v.point(p, "before a notice")
		p.inbound.ServeHTTP(w, arrived)
		v.point(p, "after a notice")
	})
	if !alive {
		v.start()
		return nil, errGone
	}
	return w.Result(), nil
}
