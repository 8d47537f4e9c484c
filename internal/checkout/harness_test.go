package checkout_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

var start = time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC) // still the day before in São Paulo

const (
	payerName     = "Maria Aparecida"
	payerDocument = "52998224725"
	merchantName  = "Livraria"
)

// fakeStore is a merchant with orders, in memory.
type fakeStore struct {
	mu        sync.Mutex
	merchant  store.Merchant
	brand     store.Brand
	orders    map[payment.ID]payment.Payin
	personal  payment.PersonalData
	attempts  []string      // results of the card form
	err       error         // of the next attempt or action
	challenge bool          // the next attempt needs a challenge
	actions   []string      // of the sandbox strip
	onAction  func()        // called during the next action
	failed    chan struct{} // if not nil, the next read of an order fails and closes it
}

// failOnce makes the next read of an order fail; the channel is closed when it
// has failed.
func (s *fakeStore) failOnce() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = make(chan struct{})
	return s.failed
}

func (s *fakeStore) MerchantByNumber(_ context.Context, number int64) (store.Merchant, error) {
	if number != s.merchant.Number {
		return store.Merchant{}, store.ErrNotFound
	}
	return s.merchant, nil
}

func (s *fakeStore) Brand(context.Context, payment.ID) (store.Brand, error) { return s.brand, nil }

func (s *fakeStore) Payin(_ context.Context, merchant, id payment.ID) (payment.Payin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[id]
	if s.failed != nil {
		close(s.failed)
		s.failed = nil
		return o, io.ErrUnexpectedEOF
	}
	if !ok || merchant != s.merchant.ID {
		return o, store.ErrNotFound
	}
	return o, nil
}

func (s *fakeStore) PayinPersonal(context.Context, payment.ID, payment.ID) (payment.PersonalData, error) {
	return s.personal, nil
}

func (s *fakeStore) PayByTestCard(_ context.Context, _ store.Merchant, _ payment.Payin, attempt int, pay processor.TestCardPayment) (bool, error) {
	s.attempts = append(s.attempts, fmt.Sprint(attempt, " ", pay.Result, " ", pay.Card.Brand, " ", pay.Card.Last4, " ", pay.Card.Installments))
	return s.challenge, s.err
}

func (s *fakeStore) ConfirmTestCard(_ context.Context, _ payment.Payin, attempt int, approve bool) error {
	s.attempts = append(s.attempts, fmt.Sprint("confirm ", attempt, " ", approve))
	return s.err
}

func (s *fakeStore) Act(_ context.Context, _ payment.ID, action string) error {
	s.actions = append(s.actions, action)
	if s.onAction != nil {
		s.onAction()
	}
	return s.err
}

// sandboxProcessor is the sandbox as pages see it: it has the driver's test
// cards.
type sandboxProcessor struct{ *sandbox.Processor }

func (sandboxProcessor) Profile() processor.Profile { return processor.Profile{Name: "sandbox"} }

// harness is the pages of one merchant.
type harness struct {
	t       testing.TB
	store   *fakeStore
	keys    *db.Keyring
	clock   *env.VirtualClock
	hub     *checkout.Hub
	pages   *checkout.Pages
	log     bytes.Buffer
	headers http.Header
}

func newHarness(t testing.TB, change ...func(*checkout.Options)) *harness {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	keys, err := db.NewKeyring(bytes.Repeat([]byte{7}, db.MasterKeyLength), w.Random)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, keys: keys, clock: clock, hub: checkout.NewHub(watchers), headers: http.Header{}}
	h.store = &fakeStore{
		merchant: store.Merchant{ID: payment.ID{1}, Number: 7, Name: merchantName, Routes: payment.AllRoutes("sandbox"), ReturnHosts: []string{"shop.example"}},
		orders:   map[payment.ID]payment.Payin{},
		personal: payment.PersonalData{
			Customer: jsontext.Value(`{"name":"` + payerName + `","document":"` + payerDocument + `","email":"maria@example.com","phone":"11987654321",` +
				`"address":{"street":"Rua das Flores","number":"100","city":"Recife","state":"PE","zipCode":"50000-000"}}`),
			Items: jsontext.Value(`[{"title":"Um livro","quantity":2,"unitPrice":4950,"tangible":true}]`),
		},
	}
	o := checkout.Options{
		Reader: h.store, Cards: h.store, Tokens: keys, Hub: h.hub, Clock: clock, Sandbox: h.store, SandboxProcessor: "sandbox",
		Processors: processor.Registry{"sandbox": sandboxProcessor{}}, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	h.pages = checkout.New(o)
	return h
}

// order adds a pending order of a method, and returns the path of its page.
func (h *harness) order(m payment.Method, change ...func(*payment.Payin)) string {
	h.t.Helper()
	id := payment.ID{0: byte(len(h.store.orders) + 1), 6: 0x70, 8: 0x80, 15: 9}
	p := payment.Payin{
		Merchant: h.store.merchant.ID, ID: id, ExternalID: "00007" + strings.Repeat("x", 27), ReferenceID: "pedido-1", Method: m,
		Amount: 123456, Status: payment.PayinPending, Version: 1, Processor: "sandbox",
		ExpiresAt: start.Add(time.Hour), CreatedAt: start, UpdatedAt: start,
	}
	code, err := brcode.Dynamic{URL: "pix.example.invalid/v2/1", MerchantName: "LIVRARIA LTDA", City: "RECIFE"}.Encode()
	if err != nil {
		h.t.Fatal(err)
	}
	switch m {
	case payment.PIX:
		p.Details.PIX = &payment.PIXDetail{QRCode: code, TxID: "tx", ExpiresAt: p.ExpiresAt}
	case payment.Boleto:
		due := start.AddDate(0, 0, 3)
		factor, err := boleto.Factor(due)
		if err != nil {
			h.t.Fatal(err)
		}
		bars, err := boleto.Bill{Bank: "999", Amount: int64(p.Amount), Factor: factor, FreeField: strings.Repeat("1", 25)}.Barcode()
		if err != nil {
			h.t.Fatal(err)
		}
		line, err := boleto.Line(bars)
		if err != nil {
			h.t.Fatal(err)
		}
		p.Details.Boleto = &payment.BoletoDetail{Barcode: bars, DigitableLine: line, DueDate: due.Format(time.DateOnly), OurNumber: "123", PIXQRCode: code}
	default:
		p.Details.Card, p.Details.Installments = &payment.CardDetail{}, 3
	}
	for _, f := range change {
		f(&p)
	}
	h.store.mu.Lock()
	h.store.orders[id] = p
	h.store.mu.Unlock()
	links := checkout.Links("", h.keys)(&p)
	return links.Checkout
}

func status(s payment.PayinStatus) func(*payment.Payin) {
	return func(p *payment.Payin) {
		p.Status = s
		switch s {
		case payment.PayinPaid, payment.PayinPartiallyRefunded, payment.PayinRefunded, payment.PayinDisputed, payment.PayinChargeback:
			p.PaidAmount, p.PaidAt, p.EndToEndID = p.Amount, start, "E99999999202611220130abcdefghijk"
		}
		switch s {
		case payment.PayinPartiallyRefunded:
			p.RefundedAmount = 100
		case payment.PayinRefunded:
			p.RefundedAmount = p.Amount
		}
	}
}

// response is a recorded page.
type response struct {
	*httptest.ResponseRecorder

	body string
	root *html.Node
}

func (h *harness) do(method, path, form string) response {
	h.t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(form))
	for name, values := range h.headers {
		r.Header[name] = values
	}
	if method == http.MethodPost && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := httptest.NewRecorder()
	h.pages.ServeHTTP(w, r)
	a := response{ResponseRecorder: w}
	body, err := io.ReadAll(w.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	a.body = string(body)
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") && w.Header().Get("Content-Encoding") == "" {
		if a.root, err = html.Parse(strings.NewReader(a.body)); err != nil {
			h.t.Fatal(err)
		}
	}
	return a
}

func (h *harness) get(path string) response {
	h.t.Helper()
	a := h.do(http.MethodGet, path, "")
	if a.Code != http.StatusOK {
		h.t.Fatalf("%d: %s", a.Code, a.body)
	}
	return a
}

// all finds the elements with a name.
func (a response) all(name string) (list []*html.Node) {
	for n := range a.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			list = append(list, n)
		}
	}
	return list
}

// byID finds an element; nil if there is none.
func (a response) byID(id string) *html.Node {
	for n := range a.root.Descendants() {
		if n.Type == html.ElementNode && attr(n, "id") == id {
			return n
		}
	}
	return nil
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is the text of an element.
func text(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// text is the visible text of the page.
func (a response) text() string {
	var b strings.Builder
	for d := range a.root.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "script" && d.Parent.Data != "style" {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
