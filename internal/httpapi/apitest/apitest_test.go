package apitest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// failures is a test that counts its failures and continues.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

const goodID = "019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a"

const goodPayin = `{"id":"` + goodID + `","externalId":"000014Zv0uTqGxW8bYc2RkPmNs5LdAeF","referenceId":"r","status":"PENDING",` +
	`"amount":1,"currency":"BRL","paymentMethod":"CREDIT_CARD",` +
	`"checkoutUrl":"https://pay.example/pay/00001qPZL0m2u7xG7Qy8sVw1nT5kRb3cHd9eJf4aYo6iUpWk","expiresAt":"2026-03-01T12:00:00.000Z","version":1,` +
	`"createdAt":"2026-03-01T12:00:00.000Z","updatedAt":"2026-03-01T12:00:00.000Z"}`

const goodRequest = `{"paymentMethod":"CREDIT_CARD","amount":1,"referenceId":"r","customer":{"name":"M","document":"52998224725"}}`

const notFound = `{"type":"/docs/errors#not_found","title":"t","status":404,"code":"not_found","requestId":"x"}`

// The checks detect violations of the contract.
func TestCheck(t *testing.T) {
	t.Parallel()
	change := func(text, old, replacement string) string { return strings.Replace(text, old, replacement, 1) }
	for _, tt := range []struct {
		name, method, path, sent string
		status                   int
		body                     string
		header                   string // of the answer, "Name: value"
		want                     int
	}{
		{"good", "GET", "/payin/" + goodID, "", 200, goodPayin, "", 0},
		{"HEAD", "HEAD", "/payin/" + goodID, "", 200, "", "", 0},
		{"a field too many", "GET", "/payin/" + goodID, "", 200, change(goodPayin, `{`, `{"surplus":"x",`), "", 1},
		{"a field too few", "GET", "/payin/" + goodID, "", 200, change(goodPayin, `"version":1,`, ``), "", 1},
		{"a wrong type", "GET", "/payin/" + goodID, "", 200, change(goodPayin, `"amount":1`, `"amount":"1"`), "", 1},
		{"a wrong time", "GET", "/payin/" + goodID, "", 200, change(goodPayin, `00.000Z`, `00Z`), "", 1},
		{"a wrong id", "GET", "/payin/" + goodID, "", 200, change(goodPayin, goodID, "1"), "", 1},
		{"an unknown status", "GET", "/payin/" + goodID, "", 200, change(goodPayin, "PENDING", "NEW"), "", 1},
		{"a status that is not listed", "GET", "/payin/" + goodID, "", 201, goodPayin, "", 1},
		{"a parameter that is not there", "GET", "/payin?status=NEW", "", 200, `{"data":[],"nextCursor":null}`, "", 1},
		{"another media type", "GET", "/payin/" + goodID, "", 200, goodPayin, "Content-Type: text/html", 1},
		{"no request id", "GET", "/payin/" + goodID, "", 200, goodPayin, "X-Request-Id: ", 1},
		{"cacheable", "GET", "/payin/" + goodID, "", 200, goodPayin, "Cache-Control: public", 1},
		{"taken", "POST", "/payin", goodRequest, 201, goodPayin, "", 0},
		{"taken by mistake", "POST", "/payin", change(goodRequest, `"amount":1`, `"amount":0`), 201, goodPayin, "", 1},
		{"taken with garbage", "POST", "/payin", change(goodRequest, `{`, `{"a":1,`), 201, goodPayin, "", 1},
		{"refused", "POST", "/payin", "garbage", 404, notFound, "", 1},
		{"no such path", "GET", "/nowhere", "", 404, notFound, "", 0},
		{"no such path, no problem", "GET", "/nowhere", "", 404, `{}`, "", 1},
		{"no such path, but answered", "GET", "/nowhere", "", 200, `{}`, "", 1},
		{"no such method", "PUT", "/payin", "", 405, change(change(notFound, "404", "405"), `"not_found"`, `"method_not_allowed"`), "Allow: GET", 0},
		{"no such method, and no Allow", "PUT", "/payin", "", 405, notFound, "", 1},
		{"a body where none belongs", "DELETE", "/sandbox/faults", "", 204, "x", "", 1},
		{"503 without Retry-After", "GET", "/readyz", "", 503, change(change(notFound, "404", "503"), `"not_found"`, `"unavailable"`), "", 1},
	} {
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Request-Id", strings.Repeat("0", 32))
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Content-Type", "application/json")
			if tt.status >= 400 {
				w.Header().Set("Content-Type", "application/problem+json")
			}
			if name, value, ok := strings.Cut(tt.header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		})
		r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.sent))
		if tt.sent != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		f := &failures{TB: t}
		w := httptest.NewRecorder()
		Handler(f, next).ServeHTTP(w, r)
		if f.n != tt.want || w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("%s: %d failures, want %d; answered %d %s", tt.name, f.n, tt.want, w.Code, w.Body)
		}
	}
}

// The transport performs the same checks as the handler.
func TestTransport(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", strings.Repeat("0", 32))
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, goodPayin)
	}))
	defer server.Close()
	for want, sent := range []string{goodRequest, "{}"} {
		f := &failures{TB: t}
		client := server.Client()
		client.Transport = Transport(f, client.Transport)
		answer, err := client.Post(server.URL+"/payin", "application/json", strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(body) != goodPayin || f.n != want {
			t.Errorf("%s: %d failures, answered %s, %v", sent, f.n, body, err)
		}
	}
}
