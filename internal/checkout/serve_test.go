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

// Unknown methods are not recorded in metrics and logs: each would be another
// time series.
func TestUnknownMethodsAreLoggedAsOther(t *testing.T) {
	t.Parallel()
	var observed []string
	h := newHarness(t, func(o *checkout.Options) {
		o.Observe = func(method, route string, status int, _ time.Duration) {
			observed = append(observed, fmt.Sprint(method, " ", route, " ", status))
		}
	})
	path := h.order(payment.PIX)
	for _, method := range []string{"MADEUP1", "MADEUP2", http.MethodDelete, http.MethodHead, http.MethodGet} {
		h.do(method, path, "")
	}
	const route = " /pay/{token} "
	if want := []string{"other" + route + "405", "other" + route + "405", "other" + route + "405", "HEAD" + route + "200", "GET" + route + "200"}; !slices.Equal(observed, want) {
		t.Errorf("observed %q, want %q", observed, want)
	}
	if strings.Contains(h.log.String(), "MADEUP") {
		t.Error("the log contains the unknown method")
	}
}

// Failures that anyone can cause at will are not logged as errors.
func TestClientFailuresAreNotLoggedAsErrors(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	h.hub.Close()
	if a := h.do(http.MethodGet, path+"/events?v=1", ""); a.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d with a closed hub", a.Code)
	}
	h.store.err = context.Canceled
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h.pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, path+"/sandbox/pay", http.NoBody))
	if strings.Contains(h.log.String(), "level=ERROR") {
		t.Error(h.log.String())
	}
	h.store.err = http.ErrBodyNotAllowed
	h.pages.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, path+"/sandbox/pay", http.NoBody))
	if !strings.Contains(h.log.String(), "level=ERROR") {
		t.Error("an internal error is not logged as an error if the payer disconnected")
	}
}

// A chunked request may also have a length, which a proxy may have used: its
// connection carries no other request.
func TestChunkedRequestsCloseTheConnection(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, encoding := range [][]string{nil, {"chunked"}} {
		r := httptest.NewRequest(http.MethodPost, h.order(payment.CreditCard)+"/card", strings.NewReader(cardFormBody()))
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
