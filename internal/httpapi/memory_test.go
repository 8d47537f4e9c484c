package httpapi_test

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/payment"
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

// Bytes of bodies and answers in flight are bounded for each merchant: requests that need more
// are refused until others end, and health checks are answered.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.Memory = 600 << 10 })
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
	h.want("another merchant's list", h.do("GET", "/payin?limit=50", "", as("key2", "secret2")), 200, "")
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
	h := newHarness(t, func(o *httpapi.Options) { o.Memory = 240 << 10 })
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

// slowBody is a body of which the last byte does not arrive.
type slowBody struct {
	left    int
	waiting chan struct{} // closed when the rest was read
	cut     chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		close(b.waiting)
		<-b.cut
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), b.left)
	for i := range n {
		p[i] = ' '
	}
	b.left -= n
	return n, nil
}

// sendSlowly sends all of a body but its last byte, and returns when it was read or refused.
// The request ends with the test.
func (h *harness) sendSlowly(path string, size int, change sending) {
	h.t.Helper()
	b := &slowBody{left: size - 1, waiting: make(chan struct{}), cut: make(chan struct{})}
	r := httptest.NewRequest("POST", path, b)
	r.ContentLength = int64(size)
	header("Content-Type", "application/json")(r)
	change(r)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.api.ServeHTTP(httptest.NewRecorder(), r)
	}()
	h.t.Cleanup(func() {
		close(b.cut)
		<-ended
	})
	select {
	case <-b.waiting:
	case <-ended:
	}
}

// Bodies that one merchant sends slowly refuse no request of another, and no read of its own.
// Those of many merchants refuse no read.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) { o.Memory = 4 << 20 })
	slow := make([]sending, 4)
	for i := range slow {
		m := h.merchant(int64(3+i), fmt.Sprint("merchant ", i), "")
		h.credential(fmt.Sprint("slow", i), "secret1", m.ID, nil)
		slow[i] = as(fmt.Sprint("slow", i), "secret1")
	}
	sendBatches := func(credential sending) {
		for range 40 {
			h.sendSlowly("/payout-batches", 128<<10, credential)
		}
	}
	payin := func(reference string) answer {
		return h.do("POST", "/payin", strings.Replace(payinBody, "r1", reference, 1))
	}
	sendBatches(slow[0])
	h.want("own order", h.do("POST", "/payin", payinBody, slow[0]), 503, "overloaded")
	h.want("own list", h.do("GET", "/payin?limit=50", "", slow[0]), 200, "")
	h.want("another merchant's order", payin("r1"), 201, "")
	h.want("another merchant's list", h.do("GET", "/payin?limit=200", ""), 200, "")
	for _, credential := range slow[1:] {
		sendBatches(credential)
	}
	h.want("order, while there are many", payin("r2"), 503, "overloaded")
	h.want("list, while there are many", h.do("GET", "/payin?limit=200", ""), 200, "")
	h.want("own list, while there are many", h.do("GET", "/payin?limit=50", "", slow[3]), 200, "")
}

// Bodies of orders without credentials take nothing of the merchant that accepts them.
func TestMemoryWithoutCredentials(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options) {
		o.Memory, o.PublicMerchant, o.AnyWebhookHost = 480<<10, payment.ID{1}, true
	})
	h.sendSlowly("/payin", 60_000, anonymously)
	large := payinBody + strings.Repeat(" ", 60_000)
	h.want("another without credentials", h.do("POST", "/payin", large, anonymously), 503, "overloaded")
	h.want("the merchant", h.do("POST", "/payin", large), 201, "")
}

// The attempts of an event have answers of receivers: their memory is reserved before they are read.
func TestAttemptsReserveMemory(t *testing.T) {
	t.Parallel()
	for memory, status := range map[int64]int{1 << 20: 503, 8 << 20: 200} {
		h := newHarness(t, func(o *httpapi.Options) { o.Memory = memory })
		e := payment.Event{Merchant: h.first.ID, ID: payment.ID{9}, Number: 1}
		h.gateway.events = append(h.gateway.events, e)
		if got := h.do("GET", "/events/"+payment.PublicEventID(e.ID)+"/attempts", ""); got.status != status {
			t.Errorf("with %d bytes: %d, %s", memory, got.status, got.body)
		}
	}
}
