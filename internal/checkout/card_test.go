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

// cardFormBody is an encoded card form with valid values, except the changes.
func cardFormBody(changes ...string) string {
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
		if !strings.Contains(a.text(), want) {
			t.Errorf("%q is not on the page: %s", want, a.text())
		}
	}
	for _, c := range new(sandbox.Processor).TestCards() {
		if digits := strings.ReplaceAll(a.text(), " ", ""); !strings.Contains(digits, c.Number) {
			t.Errorf("test card %s is not listed", c.Number)
		}
	}
	if strings.Contains(a.body, "http-equiv") {
		t.Error("a page with a form reloads itself")
	}
}

func TestCardAttemptIsPassedOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.do(http.MethodPost, path+"/card", cardFormBody())
	if a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
		t.Fatalf("%d %s", a.Code, a.body)
	}
	if got := strings.Join(h.store.attempts, ";"); got != "1 approved visa 1111 2" {
		t.Errorf("attempts %q", got)
	}
	if strings.Contains(h.log.String(), "4111") {
		t.Error("the card number is in the log")
	}
}

// A number that is not a test card is neither passed on nor stored nor logged.
func TestRealCardsAreRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.do(http.MethodPost, path+"/card", cardFormBody("number", "4539 5787 6362 1486"))
	if a.Code != http.StatusUnprocessableEntity || len(h.store.attempts) > 0 {
		t.Fatalf("%d, attempts %q", a.Code, h.store.attempts)
	}
	if got := text(a.byID("number-error")); got != "Aqui só valem cartões de teste. Este número não foi lido nem guardado." {
		t.Errorf("error text %q", got)
	}
	for where, what := range map[string]string{"page": a.body, "log": h.log.String()} {
		if strings.Contains(strings.ReplaceAll(what, " ", ""), "4539578763621486") || strings.Contains(what, "1486") {
			t.Errorf("the card number is in the %s", where)
		}
	}
}

func TestErrorsAreShownBesideTheirFields(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.do(http.MethodPost, path+"/card", cardFormBody("expiry", "13/30", "code", "12", "holder", "", "installments", "9"))
	for id, want := range map[string]string{
		"number-error": "", "expiry-error": "Escreva a validade como MM/AA.", "code-error": "Confira o código de segurança.",
		"holder-error": "Preencha este campo.", "installments-error": "Escolha as parcelas.",
	} {
		if got := text(a.byID(id)); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	if attr(a.byID("expiry"), "aria-invalid") != "true" || attr(a.byID("number"), "value") != "" || attr(a.byID("cvv"), "value") != "" {
		t.Error("the invalid field is not marked, or card data is shown again")
	}
}

func TestResultsOfAnAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err       error
		challenge bool
		status    int
		location  string
		text      string
	}{
		"challenge":      {nil, true, http.StatusSeeOther, "/card/1", ""},
		"stale attempt":  {problem.New(problem.InvalidState, ""), false, http.StatusSeeOther, "", ""},
		"unknown":        {problem.New(problem.ProcessorTimeout, ""), false, http.StatusGatewayTimeout, "-", "Não pague de novo com outro cartão"},
		"no database":    {problem.New(problem.Unavailable, ""), false, http.StatusServiceUnavailable, "-", "Um momento"},
		"internal error": {http.ErrBodyNotAllowed, false, http.StatusInternalServerError, "-", "Algo deu errado"},
		"approved":       {nil, false, http.StatusSeeOther, "", ""},
	} {
		h := newHarness(t)
		path := h.order(payment.CreditCard)
		h.store.err, h.store.challenge = c.err, c.challenge
		a := h.do(http.MethodPost, path+"/card", cardFormBody())
		location := "-"
		if a.Code == http.StatusSeeOther {
			location = strings.TrimPrefix(a.Header().Get("Location"), path)
		}
		if a.Code != c.status || location != c.location || c.text != "" && !strings.Contains(a.text(), c.text) {
			t.Errorf("%s: %d %q %s", name, a.Code, location, a.body)
		}
	}
}

// A refused attempt shows the reason, and the next attempt has the next number.
func TestRefusedAttempt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := h.get(h.order(payment.CreditCard, func(p *payment.Payin) {
		p.Failure, p.Details.CardAttempts = &payment.Failure{Code: "insufficient_funds", Message: "No funds."}, 1
	}))
	if want := "O pagamento não foi aprovado: saldo ou limite insuficiente. Você pode tentar de novo"; !strings.Contains(a.text(), want) || strings.Contains(a.text(), "No funds") {
		t.Errorf("page text %q", a.text())
	}
	if !strings.Contains(a.body, `name="attempt" value="2"`) {
		t.Error("the form is not that of attempt 2")
	}
}

// Every result of a test card has a text.
func TestEveryResultHasText(t *testing.T) {
	t.Parallel()
	for _, c := range new(sandbox.Processor).TestCards() {
		h := newHarness(t)
		a := h.get(h.order(payment.CreditCard, status(payment.PayinFailed), func(p *payment.Payin) { p.Failure = &payment.Failure{Code: c.Result} }))
		switch c.Result {
		case "approved", "challenge", "analysis_approved":
		default:
			if strings.Contains(a.text(), "o processador recusou") {
				t.Errorf("%s has no text", c.Result)
			}
		}
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	a := h.get(path + "/card/1")
	if !strings.Contains(a.text(), "Confirme com o seu banco") || !strings.Contains(a.body, `action="`+path+`/confirm/1"`) {
		t.Errorf("page text %q", a.text())
	}
	for _, old := range []string{"/card/2", "/card/0", "/card/x"} {
		if a := h.do(http.MethodGet, path+old, ""); a.Code != http.StatusSeeOther && a.Code != http.StatusNotFound {
			t.Errorf("%s: %d", old, a.Code)
		}
	}
	h.do(http.MethodPost, path+"/confirm/1", "answer=yes")
	h.do(http.MethodPost, path+"/confirm/1", "answer=no")
	h.do(http.MethodPost, path+"/confirm/1", "")
	if got := strings.Join(h.store.attempts, ";"); got != "confirm 1 true;confirm 1 false;confirm 1 false" {
		t.Errorf("attempts %q", got)
	}
}

// If the processor has a hosted page, the payer is sent there: our page has no
// field for card data.
func TestHostedPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *checkout.Options) { o.Processors = processor.Registry{} })
	path := h.order(payment.CreditCard, func(p *payment.Payin) { p.Details.Card.HostedURL, p.Processor = "https://bank.example/pay/1", "bank" })
	a := h.get(path)
	links := a.all("a")
	if len(links) != 1 || attr(links[0], "href") != "https://bank.example/pay/1" || len(a.all("input")) > 0 || strings.Contains(a.text(), "Ambiente de testes") {
		t.Errorf("page text %q", a.text())
	}
	if a := h.do(http.MethodPost, path+"/card", cardFormBody()); a.Code != http.StatusNotFound || len(h.store.attempts) > 0 {
		t.Errorf("our card form was accepted: %d", a.Code)
	}
	evil := h.order(payment.CreditCard, func(p *payment.Payin) { p.Details.Card.HostedURL = "javascript:alert(1)" })
	if a := h.get(evil); strings.Contains(a.body, "javascript:") {
		t.Error("a javascript: URL is linked")
	}
}

// Forms from other sites, in other formats, too large, and for other payment
// methods are rejected.
func TestForeignFormsAreRejected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, value string
		status        int
	}{
		"other site":   {"Sec-Fetch-Site", "cross-site", 403},
		"same site":    {"Sec-Fetch-Site", "same-site", 403},
		"other origin": {"Origin", "https://evil.example", 403},
		"own origin":   {"Origin", "http://example.com", 303},
		"null origin":  {"Origin", "null", 303},
		"own page":     {"Sec-Fetch-Site", "same-origin", 303},
		"json":         {"Content-Type", "application/json", 404},
		"too long":     {"X-Long", "", 404},
	} {
		h := newHarness(t)
		h.headers.Set(c.header, c.value)
		body := cardFormBody()
		if name == "too long" {
			body = cardFormBody("holder", strings.Repeat("x", 5000))
		}
		if a := h.do(http.MethodPost, h.order(payment.CreditCard)+"/card", body); a.Code != c.status || (len(h.store.attempts) > 0) != (c.status == 303) {
			t.Errorf("%s: %d, attempts %q", name, a.Code, h.store.attempts)
		}
	}
	h := newHarness(t)
	if a := h.do(http.MethodPost, h.order(payment.PIX)+"/card", cardFormBody()); a.Code != http.StatusNotFound || len(h.store.attempts) > 0 {
		t.Errorf("a Pix order was paid by card: %d", a.Code)
	}
}

func TestSandboxStrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	for _, action := range []string{"pay", "expire", "refuse"} {
		if a := h.do(http.MethodPost, path+"/sandbox/"+action, ""); a.Code != http.StatusSeeOther {
			t.Errorf("%s: %d", action, a.Code)
		}
	}
	h.store.err = problem.New(problem.InvalidState, "")
	if a := h.do(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusSeeOther {
		t.Errorf("action that the state forbids: %d", a.Code)
	}
	if got := strings.Join(h.store.actions, " "); got != "pay expire refuse pay" {
		t.Errorf("actions %q", got)
	}
	if a := h.do(http.MethodPost, path+"/sandbox/dispute", ""); a.Code != http.StatusNotFound {
		t.Errorf("dispute: %d", a.Code)
	}
	h.headers.Set("Sec-Fetch-Site", "cross-site")
	if a := h.do(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusForbidden {
		t.Errorf("from another site: %d", a.Code)
	}

	for name, change := range map[string]func(*checkout.Options){
		"no sandbox":      func(o *checkout.Options) { o.Sandbox = nil },
		"other processor": func(o *checkout.Options) { o.SandboxProcessor = "other" },
	} {
		h := newHarness(t, change)
		path := h.order(payment.PIX)
		if a := h.get(path); strings.Contains(a.body, "/sandbox/pay") {
			t.Errorf("%s: the sandbox strip is shown", name)
		}
		if a := h.do(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusNotFound || len(h.store.actions) > 0 {
			t.Errorf("%s: %d", name, a.Code)
		}
	}
}

// A client that sends a form slowly or never completes it blocks no other
// request.
func TestSlowFormsUseNoSlots(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	var senders sync.WaitGroup
	var bodies []*io.PipeWriter
	for range checkout.InFlightMax {
		body, end := io.Pipe()
		bodies = append(bodies, end)
		r := httptest.NewRequest(http.MethodPost, path+"/card", body)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		senders.Go(func() { h.pages.ServeHTTP(httptest.NewRecorder(), r) })
		if _, err := end.Write([]byte("attempt=")); err != nil { // the server is reading
			t.Fatal(err)
		}
	}
	if a := h.do(http.MethodGet, path, ""); a.Code != http.StatusOK {
		t.Errorf("status %d while other forms are incomplete", a.Code)
	}
	for _, end := range bodies {
		_ = end.CloseWithError(io.ErrUnexpectedEOF)
	}
	senders.Wait()
}

// Two clicks on the strip are one payment, concurrently or one after the other,
// and a paid order is not paid again.
func TestSandboxStripPaysOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	id := payment.ID{0: 1, 6: 0x70, 8: 0x80, 15: 9}
	h.store.onAction = func() {
		h.store.onAction = nil
		if a := h.do(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusSeeOther { // while the first is in flight
			t.Errorf("the second click: %d", a.Code)
		}
		h.store.mu.Lock()
		defer h.store.mu.Unlock()
		o := h.store.orders[id]
		status(payment.PayinPaid)(&o)
		h.store.orders[id] = o
	}
	for range 2 {
		if a := h.do(http.MethodPost, path+"/sandbox/pay", ""); a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
			t.Errorf("%d %s", a.Code, a.body)
		}
	}
	if len(h.store.actions) != 1 {
		t.Errorf("actions %q", h.store.actions)
	}
}

// An expired order shows no form, not even after an invalid one, and no
// challenge.
func TestNoFormAfterExpiry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.CreditCard)
	h.clock.Advance(time.Hour)
	for _, a := range []response{h.do(http.MethodPost, path+"/card", cardFormBody("code", "1")), h.do(http.MethodGet, path+"/card/1", "")} {
		if a.Code != http.StatusSeeOther || a.Header().Get("Location") != path {
			t.Errorf("%d: %s", a.Code, a.body)
		}
	}
}

// A processor that accepts cards on a hosted page, but has not sent its URL
// yet, gets no card form here.
func TestNoFormForRealCards(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *checkout.Options) { o.Processors = processor.Registry{} })
	a := h.get(h.order(payment.CreditCard, func(p *payment.Payin) { p.Processor = "bank" }))
	if len(a.all("input")) > 0 || text(a.byID("heading")) != "Preparando o pagamento" {
		t.Errorf("page text %q", a.text())
	}
}
