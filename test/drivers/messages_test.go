package drivers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
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
	v.point(v.from, "before "+name)
	arrived := r.Clone(r.Context())
	if arrived.Body == nil {
		arrived.Body = http.NoBody
	}
	arrived.Header = http.Header{}
	for key := range r.Header { // names as they are on the wire
		arrived.Header.Set(key, r.Header[key][0])
	}
	w := httptest.NewRecorder()
	v.bank.handler().ServeHTTP(w, arrived)
	v.point(v.from, "after "+name)
	return w.Result(), nil
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
