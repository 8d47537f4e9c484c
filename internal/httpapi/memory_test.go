package httpapi_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/httpapi"
)

// stalled is an answer whose client does not read.
type stalled struct {
	*httptest.ResponseRecorder
	writing chan struct{}
	read    chan struct{}
}

func (w *stalled) Write(p []byte) (int, error) {
	close(w.writing)
	<-w.read
	return w.ResponseRecorder.Write(p)
}

// Bytes of bodies and answers in flight are bounded in all: requests that need more are
// refused until others end, and health checks are answered.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.Memory = 150 << 10 })
	payin := func(reference string) string { return strings.Replace(payinBody, "r1", reference, 1) }
	h.want("small", h.do("POST", "/payin", payin("r1")), 201, "")
	h.want("list", h.do("GET", "/payin?limit=50", ""), 200, "")
	h.want("disputes, which have texts", h.do("GET", "/disputes?limit=7", ""), 503, "overloaded")
	h.want("fewer of them", h.do("GET", "/disputes?limit=6", ""), 200, "")

	invalid := `{"items":[` + strings.TrimSuffix(strings.Repeat("0,", 8000), ",") + strings.Repeat(" ", 45_000) + `]}`
	r := httptest.NewRequest("POST", "/payin", strings.NewReader(invalid))
	as("key1", "secret1")(r)
	header("Content-Type", "application/json")(r)
	w := &stalled{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.api.ServeHTTP(w, r)
	}()
	<-w.writing // it now has 61 kB of body and 51 kB of errors
	h.want("large body", h.do("POST", "/payin", payin("r2")+strings.Repeat(" ", 50_000)), 503, "overloaded")
	h.want("list", h.do("GET", "/payin?limit=50", ""), 503, "overloaded")
	h.want("events", h.do("GET", "/events?limit=50", ""), 503, "overloaded")
	h.want("many errors", h.do("POST", "/payin", `{"items":[`+strings.TrimSuffix(strings.Repeat("0,", 200), ",")+`]}`), 503, "overloaded")
	h.want("small", h.do("POST", "/payin", payin("r3")), 201, "")
	h.want("health", h.do("GET", "/healthz", ""), 200, "")
	h.want("contract", h.do("GET", "/openapi.json", ""), 200, "")
	close(w.read)
	<-ended
	if w.Code != 422 {
		t.Errorf("the request that was not read was answered with %d", w.Code)
	}
	h.want("list, after it", h.do("GET", "/payin?limit=50", ""), 200, "")
	h.want("large body, after it", h.do("POST", "/payin", payin("r2")+strings.Repeat(" ", 50_000)), 201, "")
}

// The memory of a body is reserved as it arrives, not as it is announced.
func TestAnnouncedBodyReservesNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.Memory = 60 << 10 })
	body, sender := io.Pipe()
	r := httptest.NewRequest("POST", "/payin", body)
	as("key1", "secret1")(r)
	header("Content-Type", "application/json")(r)
	r.ContentLength = 64 << 10
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.api.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if _, err := sender.Write([]byte("{")); err != nil { // returns when it was read
		t.Fatal(err)
	}
	h.want("another", h.do("POST", "/payin", payinBody+strings.Repeat(" ", 50_000)), 201, "")
	_ = sender.Close()
	<-ended
}
