package checkout_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
)

// typed is the card form, as a payer fills it in.
func typed(changes ...string) string {
	form := url.Values{
		"attempt": {"1"}, "number": {"4111 1111 1111 1111"}, "expiry": {"12/30"}, "code": {"123"}, "holder": {"MARIA A"}, "installments": {"2"},
	}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return form.Encode()
}

func TestCardPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.CreditCard))
	for _, want := range []string{"À vista, R$ 1.234,56", "2x de R$ 617,28 sem juros", "3x de R$ 411,52 sem juros", "Pagar R$ 1.234,56"} {
		if !strings.Contains(a.says(), want) {
			t.Errorf("%q is not said: %s", want, a.says())
		}
	}
	for _, c := range new(sandbox.Processor).TestCards() {
		if digits := strings.ReplaceAll(a.says(), " ", ""); !strings.Contains(digits, c.Number) {
			t.Errorf("%s is not offered", c.Number)
		}
	}
	if strings.Contains(a.body, "http-equiv") {
		t.Error("a form that is being filled in is loaded anew")
	}
}

func TestCardIsTaken(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.ask(http.MethodPost, path+"/card", typed())
	if a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
		t.Fatalf("%d %s", a.Code, a.body)
	}
	if got := strings.Join(h.shop.tries, ";"); got != "1 approved visa 1111 2" {
		t.Errorf("tried %q", got)
	}
	if strings.Contains(h.log.String(), "4111") {
		t.Error("the log has the number")
	}
}

// A number that is no test card goes no further than the page, and is nowhere
// to be found again.
func TestRealCardsAreRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.ask(http.MethodPost, path+"/card", typed("number", "4539 5787 6362 1486"))
	if a.Code != http.StatusUnprocessableEntity || len(h.shop.tries) > 0 {
		t.Fatalf("%d, tried %q", a.Code, h.shop.tries)
	}
	if got := text(a.byID("number-fault")); got != "Aqui só valem cartões de teste. Este número não foi lido nem guardado." {
		t.Errorf("it says %q", got)
	}
	for where, what := range map[string]string{"page": a.body, "log": h.log.String()} {
		if strings.Contains(strings.ReplaceAll(what, " ", ""), "4539578763621486") || strings.Contains(what, "1486") {
			t.Errorf("the number is in the %s", where)
		}
	}
}

func TestFaultsStandBesideTheirFields(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.ask(http.MethodPost, path+"/card", typed("expiry", "13/30", "code", "12", "holder", "", "installments", "9"))
	for id, want := range map[string]string{
		"number-fault": "", "expiry-fault": "Escreva a validade como MM/AA.", "code-fault": "Confira o código de segurança.",
		"holder-fault": "Preencha este campo.", "installments-fault": "Escolha as parcelas.",
	} {
		if got := text(a.byID(id)); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	if attr(a.byID("expiry"), "aria-invalid") != "true" || attr(a.byID("number"), "value") != "" || attr(a.byID("cvv"), "value") != "" {
		t.Error("the field is not marked, or the card is shown again")
	}
}

func TestWhatBecomesOfATry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer   error
		ask      bool
		status   int
		location string
		says     string
	}{
		"asked first":  {nil, true, http.StatusSeeOther, "/card/1", ""},
		"out of date":  {problem.New(problem.InvalidState, ""), false, http.StatusSeeOther, "", ""},
		"not known":    {problem.New(problem.ProcessorTimeout, ""), false, http.StatusGatewayTimeout, "-", "Não pague de novo com outro cartão"},
		"no database":  {problem.New(problem.Unavailable, ""), false, http.StatusServiceUnavailable, "-", "Um momento"},
		"a bug":        {http.ErrBodyNotAllowed, false, http.StatusInternalServerError, "-", "Algo deu errado"},
		"it goes well": {nil, false, http.StatusSeeOther, "", ""},
	} {
		h := newHarness(t)
		path := h.order(payment.CreditCard)
		h.shop.answer, h.shop.ask = c.answer, c.ask
		a := h.ask(http.MethodPost, path+"/card", typed())
		location := "-"
		if a.Code == http.StatusSeeOther {
			location = strings.TrimPrefix(a.Header().Get("Location"), path)
		}
		if a.Code != c.status || location != c.location || c.says != "" && !strings.Contains(a.says(), c.says) {
			t.Errorf("%s: %d %q %s", name, a.Code, location, a.body)
		}
	}
}

// A refused try says why, and the next one has the next number.
func TestRefusedTry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.CreditCard, func(p *payment.Payin) {
		p.Failure, p.Details.CardAttempts = &payment.Failure{Code: "insufficient_funds", Message: "No funds."}, 1
	}))
	if want := "O pagamento não foi aprovado: saldo ou limite insuficiente. Você pode tentar de novo"; !strings.Contains(a.says(), want) || strings.Contains(a.says(), "No funds") {
		t.Errorf("it says %q", a.says())
	}
	if !strings.Contains(a.body, `name="attempt" value="2"`) {
		t.Error("it is not the second try")
	}
}

// Every reason of the sandbox has a text.
func TestReasonsHaveWords(t *testing.T) {
	t.Parallel()
	for _, c := range new(sandbox.Processor).TestCards() {
		h := newHarness(t)
		a := h.get(h.order(payment.CreditCard, status(payment.PayinFailed), func(p *payment.Payin) { p.Failure = &payment.Failure{Code: c.Result} }))
		switch c.Result {
		case "approved", "challenge", "analysis_approved":
		default:
			if strings.Contains(a.says(), "o processador recusou") {
				t.Errorf("%s has no words", c.Result)
			}
		}
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.get(path + "/card/1")
	if !strings.Contains(a.says(), "Confirme com o seu banco") || !strings.Contains(a.body, `action="`+path+`/confirm/1"`) {
		t.Errorf("it says %q", a.says())
	}
	for _, old := range []string{"/card/2", "/card/0", "/card/x"} {
		if a := h.ask(http.MethodGet, path+old, ""); a.Code != http.StatusSeeOther && a.Code != http.StatusNotFound {
			t.Errorf("%s: %d", old, a.Code)
		}
	}
	h.ask(http.MethodPost, path+"/confirm/1", "answer=yes")
	h.ask(http.MethodPost, path+"/confirm/1", "answer=no")
	h.ask(http.MethodPost, path+"/confirm/1", "")
	if got := strings.Join(h.shop.tries, ";"); got != "confirm 1 true;confirm 1 false;confirm 1 false" {
		t.Errorf("tried %q", got)
	}
}

// Where the processor has a page of its own, the payer goes there: no field of
// a card is ever ours.
func TestHostedPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *checkout.Options) { o.Processors = processor.Registry{} })
	path := h.order(payment.CreditCard, func(p *payment.Payin) { p.Details.Card.HostedURL, p.Processor = "https://bank.example/pay/1", "bank" })
	a := h.get(path)
	links := a.all("a")
	if len(links) != 1 || attr(links[0], "href") != "https://bank.example/pay/1" || len(a.all("input")) > 0 || strings.Contains(a.says(), "Ambiente de testes") {
		t.Errorf("it says %q", a.says())
	}
	if a := h.ask(http.MethodPost, path+"/card", typed()); a.Code != http.StatusNotFound || len(h.shop.tries) > 0 {
		t.Errorf("a card is taken: %d", a.Code)
	}
	evil := h.order(payment.CreditCard, func(p *payment.Payin) { p.Details.Card.HostedURL = "javascript:alert(1)" })
	if a := h.get(evil); strings.Contains(a.body, "javascript:") {
		t.Error("a script for a page")
	}
}

// Forms of other pages, of other kinds, and for orders of other methods are
// not taken.
func TestForeignForms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, value string
		status        int
	}{
		"other site":     {"Sec-Fetch-Site", "cross-site", 403},
		"same site":      {"Sec-Fetch-Site", "same-site", 403},
		"other origin":   {"Origin", "https://evil.example", 403},
		"own origin":     {"Origin", "http://example.com", 303},
		"no origin told": {"Origin", "null", 303},
		"own page":       {"Sec-Fetch-Site", "same-origin", 303},
		"json":           {"Content-Type", "application/json", 404},
		"too long":       {"X-Long", "", 404},
	} {
		h := newHarness(t)
		h.headers.Set(c.header, c.value)
		body := typed()
		if name == "too long" {
			body = typed("holder", strings.Repeat("x", 5000))
		}
		if a := h.ask(http.MethodPost, h.order(payment.CreditCard)+"/card", body); a.Code != c.status || (len(h.shop.tries) > 0) != (c.status == 303) {
			t.Errorf("%s: %d, tried %q", name, a.Code, h.shop.tries)
		}
	}
	h := newHarness(t)
	if a := h.ask(http.MethodPost, h.order(payment.PIX)+"/card", typed()); a.Code != http.StatusNotFound || len(h.shop.tries) > 0 {
		t.Errorf("a Pix is paid by card: %d", a.Code)
	}
}

func TestSandboxStrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	for _, action := range []string{"pay", "expire", "refuse"} {
		if a := h.ask(http.MethodPost, path+"/sandbox/"+action, ""); a.Code != http.StatusSeeOther {
			t.Errorf("%s: %d", action, a.Code)
		}
	}
	h.shop.answer = problem.New(problem.InvalidState, "")
	if a := h.ask(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusSeeOther {
		t.Errorf("what cannot be: %d", a.Code)
	}
	if got := strings.Join(h.shop.acts, " "); got != "pay expire refuse pay" {
		t.Errorf("it did %q", got)
	}
	if a := h.ask(http.MethodPost, path+"/sandbox/dispute", ""); a.Code != http.StatusNotFound {
		t.Errorf("dispute: %d", a.Code)
	}
	h.headers.Set("Sec-Fetch-Site", "cross-site")
	if a := h.ask(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", a.Code)
	}

	for name, change := range map[string]func(*checkout.Options){
		"no sandbox":      func(o *checkout.Options) { o.Sandbox = nil },
		"other processor": func(o *checkout.Options) { o.SandboxProcessor = "other" },
	} {
		h := newHarness(t, change)
		path := h.order(payment.PIX)
		if a := h.get(path); strings.Contains(a.body, "/sandbox/pay") {
			t.Errorf("%s: there is a strip", name)
		}
		if a := h.ask(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusNotFound || len(h.shop.acts) > 0 {
			t.Errorf("%s: %d", name, a.Code)
		}
	}
}

// Who sends a form slowly, or never to its end, keeps nobody else from a page.
func TestSlowFormsTakeNoPlaces(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	var senders sync.WaitGroup
	var bodies []*io.PipeWriter
	for range checkout.BusyMax {
		body, end := io.Pipe()
		bodies = append(bodies, end)
		r := httptest.NewRequest(http.MethodPost, path+"/card", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		senders.Go(func() { h.pages.ServeHTTP(httptest.NewRecorder(), r) })
		if _, err := end.Write([]byte("attempt=")); err != nil { // it is being read
			t.Fatal(err)
		}
	}
	if a := h.ask(http.MethodGet, path, ""); a.Code != http.StatusOK {
		t.Errorf("status %d while others send", a.Code)
	}
	for _, end := range bodies {
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
	}
	senders.Wait()
}

// Two clicks on the strip are one payment, at once or one after the other, and
// an order that needs none takes none.
func TestStripPaysOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	id := payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}
	h.shop.act = func() {
		h.shop.act = nil
		if a := h.ask(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusSeeOther { // while the first is under way
			t.Errorf("the second click: %d", a.Code)
		}
		h.shop.mu.Lock()
		defer h.shop.mu.Unlock()
		o := h.shop.orders[id]
		status(payment.PayinPaid)(&o)
		h.shop.orders[id] = o
	}
	for range 2 {
		if a := h.ask(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
			t.Errorf("%d %s", a.Code, a.body)
		}
	}
	if len(h.shop.acts) != 1 {
		t.Errorf("it did %q", h.shop.acts)
	}
}

// Once its time is over, an order shows no form, not even a faulty one again,
// and no bank to confirm it.
func TestNoFormAfterTheEndOfTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	h.clock.Advance(time.Hour)
	for _, a := range []answer{h.ask(http.MethodPost, path+"/card", typed("code", "1")), h.ask(http.MethodGet, path+"/card/1", "")} {
		if a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
			t.Errorf("%d: %s", a.Code, a.body)
		}
	}
}

// A processor that takes cards elsewhere, and has not said where, gets no form
// of ours.
func TestNoFormForRealCards(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *checkout.Options) { o.Processors = processor.Registry{} })
	a := h.get(h.order(payment.CreditCard, func(p *payment.Payin) { p.Processor = "bank" }))
	if len(a.all("input")) > 0 || text(a.byID("heading")) != "Preparando o pagamento" {
		t.Errorf("it says %q", a.says())
	}
}
