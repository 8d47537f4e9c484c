package sandboxcontrol_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/porteira/porteira/internal/sandboxcontrol"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	guarded := sandboxcontrol.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), "pay.example")
	for _, row := range []struct {
		host, method, path string
		header             [2]string
		want               int
	}{
		{"127.0.0.1:8080", "GET", "/", [2]string{}, 204},
		{"[::1]:8080", "GET", "/", [2]string{}, 204},
		{"192.168.1.5:8080", "POST", "/payin", [2]string{}, 204}, // --listen 0.0.0.0
		{"LocalHost", "GET", "/", [2]string{}, 204},
		{"app.localhost:8080", "GET", "/", [2]string{}, 204},
		{"porteira:8080", "GET", "/", [2]string{}, 204},
		{"pay.example", "GET", "/", [2]string{}, 204},
		{"Pay.Example.:443", "GET", "/", [2]string{}, 204},
		{"", "GET", "/", [2]string{}, 204}, // HTTP/1.0
		{"evil.com", "GET", "/", [2]string{}, 421},
		{"evil.com:8080", "GET", "/balance", [2]string{}, 421},
		{"127.0.0.1.evil.com", "GET", "/", [2]string{}, 421},
		{"localhost.evil.com", "POST", "/sandbox/clock", [2]string{}, 421},
		{"127.0.0.1:8080", "POST", "/sandbox/clock", [2]string{}, 204},
		{"127.0.0.1:8080", "POST", "/sandbox/clock", [2]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"127.0.0.1:8080", "POST", "/sandbox/payin/x/pay", [2]string{"Origin", "https://evil.example"}, 403},
		{"127.0.0.1:8080", "POST", "/sandbox/payin/x/pay", [2]string{"Origin", "http://127.0.0.1:8080"}, 204},
		{"127.0.0.1:8080", "GET", "/sandbox/processor/transfers", [2]string{"Sec-Fetch-Site", "cross-site"}, 204},
		{"127.0.0.1:8080", "POST", "/payin", [2]string{"Sec-Fetch-Site", "cross-site"}, 204}, // needs credentials or JSON
	} {
		r := httptest.NewRequest(row.method, "http://x"+row.path, http.NoBody)
		if r.Host = row.host; row.header[0] != "" {
			r.Header.Set(row.header[0], row.header[1])
		}
		w := httptest.NewRecorder()
		if guarded.ServeHTTP(w, r); w.Code != row.want {
			t.Errorf("%s %s of %q with %v: %d, want %d", row.method, row.path, row.host, row.header, w.Code, row.want)
		}
	}
}
