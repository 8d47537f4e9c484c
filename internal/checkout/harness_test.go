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
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

var start = time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC) // the day before, in São Paulo

const (
	payerName     = "Maria Aparecida"
	payerDocument = "52998224725"
	merchantName  = "Livraria"
)

// shop is a merchant with orders, in memory.
type shop struct {
	mu       sync.Mutex
	merchant store.Merchant
	brand    store.Brand
	orders   map[payment.ID]payment.Payin
	personal payment.PersonalData
	tries    []string      // what came of the card form
	answer   error         // to the next try
	ask      bool          // the next try asks the payer
	acts     []string      // of the sandbox
	act      func()        // what else the next one does
	broken   chan struct{} // the next order cannot be read, which closes it
}

// failOnce breaks the next reading of an order; it has failed once the channel
// is closed.
func (s *shop) failOnce() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = make(chan struct{})
	return s.broken
}

func (s *shop) MerchantByNumber(_ context.Context, number int64) (store.Merchant, error) {
	if number != s.merchant.Number {
		return store.Merchant{}, store.ErrNotFound
	}
	return s.merchant, nil
}

func (s *shop) Brand(context.Context, payment.ID) (store.Brand, error) { return s.brand, nil }

func (s *shop) Payin(_ context.Context, merchant, id payment.ID) (payment.Payin, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.orders[id]
	if s.broken != nil {
		close(s.broken)
		s.broken = nil
		return o, io.ErrUnexpectedEOF
	}
	if !ok || merchant != s.merchant.ID {
		return o, store.ErrNotFound
	}
	return o, nil
}

func (s *shop) PayinPersonal(context.Context, payment.ID, payment.ID) (payment.PersonalData, error) {
	return s.personal, nil
}

func (s *shop) PayByTestCard(_ context.Context, _ store.Merchant, _ payment.Payin, attempt int, pay processor.TestCardPayment) (bool, error) {
	s.tries = append(s.tries, fmt.Sprint(attempt, " ", pay.Result, " ", pay.Card.Brand, " ", pay.Card.Last4, " ", pay.Card.Installments))
	return s.ask, s.answer
}

func (s *shop) ConfirmTestCard(_ context.Context, _ store.Merchant, _ payment.Payin, attempt int, approve bool) error {
	s.tries = append(s.tries, fmt.Sprint("confirm ", attempt, " ", approve))
	return s.answer
}

func (s *shop) Act(_ context.Context, _ payment.ID, action string) error {
	s.acts = append(s.acts, action)
	if s.act != nil {
		s.act()
	}
	return s.answer
}

// taker is the sandbox as pages see it: it has the driver's test cards.
type taker struct{ *sandbox.Processor }

func (taker) Profile() processor.Profile { return processor.Profile{Name: "sandbox"} }

// harness is the pages of one shop.
type harness struct {
	t       testing.TB
	shop    *shop
	keys    *store.Keyring
	clock   *env.VirtualClock
	hub     *checkout.Hub
	pages   *checkout.Pages
	log     bytes.Buffer
	headers http.Header
}

func newHarness(t testing.TB, change ...func(*checkout.Options)) *harness {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	keys, err := store.NewKeyring(bytes.Repeat([]byte{7}, store.MasterKeyLength), w.Random)
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, keys: keys, clock: clock, hub: checkout.NewHub(watchers), headers: http.Header{}}
	h.shop = &shop{
		merchant: store.Merchant{ID: payment.ID{1}, Number: 7, Name: merchantName, Processor: "sandbox", ReturnHosts: []string{"shop.example"}},
		orders:   map[payment.ID]payment.Payin{},
		personal: payment.PersonalData{
			Customer: jsontext.Value(`{"name":"` + payerName + `","document":"` + payerDocument + `","email":"maria@example.com","phone":"11987654321",` +
				`"address":{"street":"Rua das Flores","number":"100","city":"Recife","state":"PE","zipCode":"50000-000"}}`),
			Items: jsontext.Value(`[{"title":"Um livro","quantity":2,"unitPrice":4950,"tangible":true}]`),
		},
	}
	o := checkout.Options{
		Reader: h.shop, Flow: h.shop, Tokens: keys, Hub: h.hub, Clock: clock, Sandbox: h.shop, SandboxProcessor: "sandbox",
		Processors: processor.Registry{"sandbox": taker{}}, Log: slog.New(slog.NewTextHandler(&h.log, nil)),
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
	id := payment.ID{0: byte(len(h.shop.orders) + 1), 6: 0x70, 8: 0x80, 15: 9}
	p := payment.Payin{
		Merchant: h.shop.merchant.ID, ID: id, ExternalID: "00007" + strings.Repeat("x", 27), ReferenceID: "pedido-1", Method: m,
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
	h.shop.mu.Lock()
	h.shop.orders[id] = p
	h.shop.mu.Unlock()
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

// answer is a page as it came.
type answer struct {
	*httptest.ResponseRecorder

	body string
	root *html.Node
}

func (h *harness) ask(method, path, form string) answer {
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
	a := answer{ResponseRecorder: w}
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

func (h *harness) get(path string) answer {
	h.t.Helper()
	a := h.ask(http.MethodGet, path, "")
	if a.Code != http.StatusOK {
		h.t.Fatalf("%d: %s", a.Code, a.body)
	}
	return a
}

// all finds the elements of a name.
func (a answer) all(name string) (list []*html.Node) {
	for n := range a.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			list = append(list, n)
		}
	}
	return list
}

// byID finds an element; nil where there is none.
func (a answer) byID(id string) *html.Node {
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

// text is what an element says.
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

// says is what people read on the page.
func (a answer) says() string {
	var b strings.Builder
	for d := range a.root.Descendants() {
		if d.Type == html.TextNode && d.Parent.Data != "script" && d.Parent.Data != "style" {
			b.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
