package browser_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/apptest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// shop is a merchant of a gateway that runs for one test, and the site that payers return
// to.
type shop struct {
	*apptest.Client

	gateway *apptest.Installed
	site    *httptest.Server
	visits  chan string // addresses that payers returned to
}

// references and shops number orders and merchants.
var references, shops atomic.Int64

// newShop opens a shop on its own gateway.
func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{gateway: apptest.Start(t, "sqlite"), visits: make(chan string, 16)}
	s.site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/volta" {
			w.WriteHeader(http.StatusNoContent) // favicon.ico
			return
		}
		s.visits <- r.URL.String()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprint(w, fine)
	}))
	t.Cleanup(s.site.Close)
	return s.own(t)
}

// own is another shop on the same gateway, for one test.
func (s *shop) own(t testing.TB) *shop {
	t.Helper()
	return s.merchant(t, fmt.Sprintf("Padaria Pão & Mel %d", shops.Add(1)))
}

// merchant is another merchant of the same gateway.
func (s *shop) merchant(t testing.TB, name string) *shop {
	t.Helper()
	host, _, _ := strings.Cut(strings.TrimPrefix(s.site.URL, "http://"), ":")
	ctx := context.Background()
	m, err := s.gateway.Admin.Merchants.Create(ctx, store.Merchant{
		Name: name, City: "SAO PAULO", Routes: payment.AllRoutes(sandbox.Name), ReturnHosts: []string{host},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	credential, secret, err := s.gateway.Admin.Merchants.CreateCredential(ctx, merchant.NewCredential{Merchant: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	other := *s
	client := *s.gateway.Client
	client.Key, client.Secret = credential.KeyID, secret
	other.Client = &client
	return &other
}

// fields are members of a request.
type fields map[string]any

// order is a pay-in in its merchant's view.
type order struct {
	shop      *shop
	id        string
	reference string
	page      string
	created   apptest.Answer
}

// order makes a pay-in of R$ 1,234.56; more replaces and adds members.
func (s *shop) order(t testing.TB, method string, more fields) order {
	t.Helper()
	body := fields{
		"paymentMethod": method, "amount": 123456, "referenceId": fmt.Sprintf("pedido-%d", references.Add(1)),
		"customer": fields{
			"name": "Maria Aparecida da Silva", "document": "52998224725", "email": "maria@example.com",
			"address": fields{"street": "Rua das Flores", "number": "7", "neighborhood": "Centro", "city": "Belém", "state": "PA", "zipCode": "66010000"},
		},
		"items": []fields{
			{"title": "Bolo de aniversário", "quantity": 1, "unitPrice": 120000, "tangible": true},
			{"title": "Pão de queijo", "quantity": 12, "unitPrice": 288, "tangible": true},
		},
	}
	maps.Copy(body, more)
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	created := s.In(t).Must(http.StatusCreated, "POST", "/payin", string(text))
	o := order{s, created.Get("id"), created.Get("referenceId"), created.Get("checkoutUrl"), created}
	if o.page == "" {
		t.Fatalf("no checkoutUrl in %s", created.Body)
	}
	return o
}

// happens performs an action of the sandbox's bank on the order: pay, expire, fail,
// dispute.
func (o order) happens(t testing.TB, action string) {
	t.Helper()
	o.shop.In(t).Must(http.StatusNoContent, "POST", "/sandbox/payin/"+o.id+"/"+action, "")
}

// now is the order as its merchant sees it.
func (o order) now(t testing.TB) apptest.Answer {
	t.Helper()
	return o.shop.In(t).Must(http.StatusOK, "GET", "/payin/"+o.id, "")
}

// becomes waits until the order has a status.
func (o order) becomes(t testing.TB, status string) apptest.Answer {
	t.Helper()
	var answer apptest.Answer
	apptest.Until(t, func() string {
		if answer = o.now(t); answer.Get("status") != status {
			return fmt.Sprintf("status is %s, not %s", answer.Get("status"), status)
		}
		return ""
	})
	return answer
}

// fetch gets an address like a program other than a browser.
func fetch(t testing.TB, method, url string) (response *http.Response, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err = http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}
