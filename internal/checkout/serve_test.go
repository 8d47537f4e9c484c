package checkout_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/payment"
)

// Whatever a stranger sends as a method, metrics and log hold no word of it:
// each would be another series that is kept for ever.
func TestMethodsAreBoundedWords(t *testing.T) {
	t.Parallel()
	var observed []string
	h := newHarness(t, func(o *checkout.Options) {
		o.Observe = func(method, route string, status int, _ time.Duration) {
			observed = append(observed, fmt.Sprint(method, " ", route, " ", status))
		}
	})
	path := h.order(payment.PIX)
	for _, method := range []string{"MADEUP1", "MADEUP2", http.MethodDelete, http.MethodHead, http.MethodGet} {
		h.ask(method, path, "")
	}
	const route = " /pay/{token} "
	if want := []string{"other" + route + "405", "other" + route + "405", "other" + route + "405", "HEAD" + route + "200", "GET" + route + "200"}; !slices.Equal(observed, want) {
		t.Errorf("observed %q, want %q", observed, want)
	}
	if strings.Contains(h.log.String(), "MADEUP") {
		t.Error("the log has the method")
	}
}

// What a stranger can cause at will does not cry for a person.
func TestWhatIsNoErrorOfOurs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	h.hub.Close()
	if a := h.ask(http.MethodGet, path+"/events?v=1", ""); a.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d without room", a.Code)
	}
	h.shop.answer = context.Canceled
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h.pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, path+"/sandbox/pay", http.NoBody))
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Error(h.log.String())
	}
	h.shop.answer = http.ErrBodyNotAllowed
	h.pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, path+"/sandbox/pay", http.NoBody))
	if !strings.Contains(h.log.String(), "level=ERROR") {
		t.Error("a bug is no error, as the payer has gone")
	}
}

// A request in chunks may have had a length too, by which a proxy went: its
// connection carries no other.
func TestChunksEndTheirConnection(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, encoding := range [][]string{nil, {"chunked"}} {
		r := httptest.NewRequest(http.MethodPost, h.order(payment.CreditCard)+"/card", strings.NewReader(typed()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.TransferEncoding = encoding
		w := httptest.NewRecorder()
		h.pages.ServeHTTP(w, r)
		if w.Code != http.StatusSeeOther || (w.Header().Get("Connection") == "close") != (encoding != nil) {
			t.Errorf("%v: %d, %v", encoding, w.Code, w.Header())
		}
	}
}

func TestEncoding(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]string{
		"": "", "gzip": "gzip", "br, GZIP ;q=0.5": "gzip", "gzip;q=0, identity": "", "gzip; q=0.000": "", "x-gzip": "",
	} {
		h := newHarness(t)
		h.headers.Set("Accept-Encoding", header)
		if got := h.get(h.order(payment.PIX)).Header().Get("Content-Encoding"); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
