package httpapi_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/httpapi/apitest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const payinBody = `{"paymentMethod":"PIX","amount":12345,"referenceId":"r1","webhookUrl":"http://127.0.0.1:1/hook",` +
	`"customer":{"name":"Maria","document":"52998224724","email":"maria@example.com"},` +
	`"items":[{"title":"Livro","quantity":1,"unitPrice":12345,"tangible":true}]}`

const payoutBody = `{"amount":5000,"pixKey":"m@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria",` +
	`"beneficiaryDocument":"52998224725","referenceId":"r1"}`

// harness is an API over a gateway in memory, for two merchants; every request and
// answer is validated against the contract.
type harness struct {
	t       testing.TB
	gateway *gateway
	clock   *env.VirtualClock
	keys    *db.Keyring
	handler http.Handler
	api     http.Handler // handler without validation
	log     *apptest.Log
	first   store.Merchant
	second  store.Merchant
}

func newHarness(t *testing.T, change ...func(*httpapi.Options)) *harness {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	keys, err := db.NewKeyring(bytes.Repeat([]byte{7}, db.MasterKeyLength), w.Random)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, gateway: newGateway(w), clock: clock, keys: keys, log: &apptest.Log{}}
	h.first = h.merchant(1, "sandbox", "")
	h.second = h.merchant(2, "other", "strict")
	h.credential("key1", "secret1", h.first.ID, nil)
	h.credential("key2", "secret2", h.second.ID, nil)
	o := httpapi.Options{
		Admission: h.gateway, Payins: payins{h.gateway}, Payouts: payouts{h.gateway}, Refunds: refunds{h.gateway}, Disputes: disputes{h.gateway}, Events: h.gateway,
		Reader: h.gateway, Keys: keys, Env: w, AllowHTTP: true, Links: checkout.Links("https://pay.example", keys),
		Processors: processor.Registry{"strict": strict{}},
		Log:        slog.New(slog.NewJSONHandler(h.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	h.api = httpapi.New(o)
	h.handler = apitest.Handler(t, h.api)
	return h
}

func (h *harness) merchant(number int64, name, proc string) store.Merchant {
	m := store.Merchant{ID: payment.ID{byte(number)}, Number: number, Name: name, Routes: payment.AllRoutes(proc)}
	h.gateway.merchants[m.ID] = m
	return m
}

func (h *harness) credential(key, secret string, merchant payment.ID, change func(*store.Credential)) {
	hash := h.keys.SecretHash(secret)
	c := store.Credential{KeyID: key, Merchant: merchant, SecretHash: hash[:], Scopes: store.Scopes, CreatedAt: start}
	if change != nil {
		change(&c)
	}
	h.gateway.mu.Lock()
	defer h.gateway.mu.Unlock()
	h.gateway.credentials[key] = c
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// field reads a member of the answer by its path, as in "data.0.id".
func (a answer) field(path string) any {
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		return nil
	}
	for name := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			v = at[name]
		case []any:
			if i := int(name[0] - '0'); i < len(at) {
				v = at[i]
			} else {
				return nil
			}
		default:
			return nil
		}
	}
	return v
}

func (a answer) text(path string) string {
	s, _ := a.field(path).(string)
	return s
}

// sending changes a request before it is sent.
type sending func(r *http.Request)

func header(name string, values ...string) sending {
	return func(r *http.Request) {
		r.Header.Del(name)
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
}

func as(key, secret string) sending {
	return func(r *http.Request) {
		r.Header.Set("x-api-key", key)
		r.Header.Set("x-api-secret", secret)
	}
}

func from(address string) sending {
	return func(r *http.Request) { r.RemoteAddr = netip.MustParseAddrPort(address).String() }
}

// anonymously removes the credentials that do sets.
func anonymously(r *http.Request) {
	r.Header.Del("x-api-key")
	r.Header.Del("x-api-secret")
}

// do sends a request with the credentials of the first merchant.
func (h *harness) do(method, path, body string, changes ...sending) answer {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, reader)
	as("key1", "secret1")(r)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// want checks status and problem code ("" for none).
func (h *harness) want(what string, a answer, status int, code string) {
	h.t.Helper()
	got := ""
	if a.status >= 400 {
		got = a.text("code")
	}
	if a.status != status || got != code {
		h.t.Errorf("%s: answered %d %s %s, want %d %s", what, a.status, got, a.body, status, code)
	}
}
