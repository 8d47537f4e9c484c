package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// instant creates every pay-in at once, and stores none.
type instant struct {
	httpapi.Payins
	order payment.Payin
}

func (f *instant) Admit(payment.ID) error { return nil }

func (f *instant) Create(context.Context, store.Merchant, *wire.PayinRequest) (payment.Payin, bool, error) {
	return f.order, false, nil
}

// BenchmarkCreatePayin measures the API itself: all but the use case, the log and
// the connection.
func BenchmarkCreatePayin(b *testing.B) {
	create := creation(b)
	b.ReportAllocs()
	for b.Loop() {
		create()
	}
}

// A pay-in has a budget of allocations, allocationsMost. Unlike time, they do not
// depend on the machine.
func TestAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(500, creation(t)); n > allocationsMost {
		t.Errorf("a pay-in takes %.0f allocations, want at most %d", n, allocationsMost)
	}
}

// creation returns a function that requests one pay-in.
func creation(b testing.TB) func() {
	b.Helper()
	g := newGateway(env.System(env.OutboundOptions{}))
	keys, err := db.NewKeyring(make([]byte, db.MasterKeyLength), g.env.Random)
	if err != nil {
		b.Fatal(err)
	}
	m := store.Merchant{ID: payment.ID{1}, Number: 1}
	hash := keys.SecretHash("secret1")
	g.merchants[m.ID] = m
	g.credentials["key1"] = store.Credential{KeyID: "key1", Merchant: m.ID, SecretHash: hash[:], Scopes: store.Scopes}
	order := payment.Payin{
		ExternalID: strings.Repeat("0", payment.ExternalIDLength), ReferenceID: "r1", Method: payment.PIX, Amount: 12345,
		Status: payment.PayinPending, Version: 1, ExpiresAt: start, CreatedAt: start, UpdatedAt: start,
		Details: payment.PayinDetails{PIX: &payment.PIXDetail{QRCode: strings.Repeat("x", 150), ExpiresAt: start}},
	}
	orders := &instant{order: order}
	api := httpapi.New(httpapi.Options{Admission: orders, Payins: orders, Reader: g, Keys: keys, Env: g.env, AllowHTTP: true, Links: checkout.Links("https://pay.example", keys)})
	return func() {
		r := httptest.NewRequest(http.MethodPost, "/payin", strings.NewReader(payinBody))
		r.Header["X-Api-Key"], r.Header["X-Api-Secret"] = []string{"key1"}, []string{"secret1"}
		r.Header["Content-Type"] = []string{"application/json"}
		w := httptest.NewRecorder()
		if api.ServeHTTP(w, r); w.Code != http.StatusCreated {
			b.Fatal(w.Code, w.Body)
		}
	}
}
