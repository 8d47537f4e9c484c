package browser_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Published test cards, and their results in the sandbox.
const (
	approves     = "4111 1111 1111 1111"
	approvesAmex = "3782 822463 10005"
	lacksFunds   = "4000 0000 0000 9995"
	asksFirst    = "4000 0000 0000 3220"
	isAnalysed   = "4000 0000 0000 0036"
	isRefused    = "4000 0000 0000 0044"
	noTestCard   = "4539 1488 0343 6467" // passes Luhn, and may be somebody's
)

const (
	cardSubmit = `form[data-card] button.button`
	cardBrand  = `#brand`
)

// fill types a card into the form, replacing any other.
func (b *tab) fill(number string) {
	b.Helper()
	for css, text := range map[string]string{"#number": number, "#expiry": "12/40", "#cvv": "123", "#holder": "MARIA A DA SILVA"} {
		if css == "#cvv" && strings.HasPrefix(number, "37") {
			text = "1234"
		}
		eval[bool](b, `((field) => { field.value = ""; return true })(document.querySelector(`+quoted(css)+`))`)
		b.enter(css, text)
	}
}

func testCardIsApproved(t *testing.T, s *shop) {
	o := s.own(t).order(t, "CREDIT_CARD", fields{"installments": 3})
	b := o.view(t, desktop)
	b.shot("card-empty")
	b.fill(approves)
	b.until("/visa/i.test(document.querySelector(" + quoted(cardBrand) + ").textContent)")
	run(b, chromedp.SetValue(chromedp.CSS("#installments"), "3"), "choose three instalments")
	b.shot("card-filled")
	b.click(cardSubmit)
	b.shows("PAID")
	paid := o.becomes(t, "PAID")
	for path, want := range map[string]string{"card.brand": "visa", "card.last4": "1111", "card.installments": "3", "paidAmount": "123456"} {
		if got := paid.Get(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if log := o.shop.gateway.Log.String(); strings.Contains(log, "41111111") || strings.Contains(log, "4111 1111") {
		t.Error("the card's number is in the log")
	}
}

func testCardIsRefusedAndTriedAgain(t *testing.T, s *shop) {
	o := s.own(t).order(t, "CREDIT_CARD", nil)
	b := o.view(t, phone)
	b.fill(lacksFunds)
	b.click(cardSubmit)
	b.reads("insuficiente")
	refused := o.now(t)
	if refused.Get("status") != "PENDING" || refused.Get("failure.code") != "insufficient_funds" {
		t.Errorf("after a refusal: %s", refused.Body)
	}
	b.accessible("a refused card")
	b.shot("card-refused-phone")
	b.fill(approvesAmex)
	b.until("/amex|american/i.test(document.querySelector(" + quoted(cardBrand) + ").textContent)")
	b.click(cardSubmit)
	b.shows("PAID")
	if paid := o.becomes(t, "PAID"); paid.Get("card.brand") != "amex" || paid.Get("paidAmount") != "123456" {
		t.Error(paid.Body)
	}
}

// The order is paid once, even if the button is clicked several times.
func testDoubleClickChargesOnce(t *testing.T, s *shop) {
	for name, hit := range map[string]func(b *tab){
		"a double click": func(b *tab) { run(b, chromedp.DoubleClick(chromedp.CSS(cardSubmit)), "double click") },
		"the same form thrice": func(b *tab) {
			b.again(3)
			run(b, chromedp.Reload(), "reload")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := s.own(t).order(t, "CREDIT_CARD", nil)
			b := o.view(t, desktop)
			b.fill(approves)
			hit(b)
			b.shows("PAID")
			o.once(t)
		})
	}
}

// again sends the form unchanged, several times at once, as for an impatient payer.
func (b *tab) again(times int) {
	b.Helper()
	run(b, chromedp.Evaluate[int](`(() => {
		const form = document.querySelector("form[data-card]"), times = `+string(rune('0'+times))+`
		const sent = []
		for (let i = 0; i < times; i++) sent.push(fetch(form.action, {method: "POST", body: new URLSearchParams(new FormData(form))}))
		return Promise.all(sent).then(all => all.length)
	})()`, chromedp.EvalAwaitPromise), "send the form again")
}

// once fails the test unless the order was paid once.
func (o order) once(t testing.TB) {
	t.Helper()
	paid := o.becomes(t, "PAID")
	if paid.Get("paidAmount") != "123456" {
		t.Errorf("paid %s", paid.Get("paidAmount"))
	}
	events := 0
	for _, kind := range o.shop.In(t).Must(200, "GET", "/events?limit=200", "").List("type") {
		if kind == "payin.overpaid" {
			t.Error("paid twice")
		}
		if kind == "payin.paid" {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d events of a payment", events)
	}
}

func testBackAndReloadChargeOnce(t *testing.T, s *shop) {
	o := s.own(t).order(t, "CREDIT_CARD", nil)
	b := o.view(t, desktop)
	b.fill(approves)
	b.click(cardSubmit)
	b.shows("PAID")
	run(b, chromedp.Reload(), "reload")
	b.shows("PAID")
	run(b, chromedp.NavigateBack(), "go back")
	if b.holds(cardSubmit) { // from the browser's cache: sending it again is harmless
		b.fill(approves)
		b.click(cardSubmit)
	}
	b.open(o.page)
	b.shows("PAID")
	o.once(t)
}

func testCardAsksTheBankFirst(t *testing.T, s *shop) {
	for name, test := range map[string]struct{ word, status string }{"confirmed": {"Confirmar pagamento", "PAID"}, "not me": {"Não fui eu", "PENDING"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := s.own(t).order(t, "CREDIT_CARD", nil)
			b := o.view(t, desktop)
			b.fill(asksFirst)
			b.click(cardSubmit)
			b.reads(test.word)
			if status := o.now(t).Get("status"); status == "PAID" {
				t.Error("paid before the payer confirmed")
			}
			b.accessible("3-D Secure")
			b.shot("card-3ds")
			eval[bool](b, `[...document.querySelectorAll("button")].find(button => button.innerText.includes(`+quoted(test.word)+`)).click() || true`)
			b.shows(test.status)
			o.becomes(t, test.status)
		})
	}
}

func testCardIsAnalysed(t *testing.T, s *shop) {
	for number, status := range map[string]string{isAnalysed: "PAID", isRefused: "FAILED"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			o := s.own(t).order(t, "CREDIT_CARD", nil)
			b := o.view(t, desktop)
			b.fill(number)
			b.click(cardSubmit)
			b.shows(status) // after PROCESSING, which may end before it is seen
			o.becomes(t, status)
		})
	}
}

// A number that is not a test card is rejected next to its field, and stored nowhere.
func testRealCardsAreNotRead(t *testing.T, s *shop) {
	o := s.own(t).order(t, "CREDIT_CARD", nil)
	b := o.view(t, desktop)
	b.allows("status of 422")
	b.fill(noTestCard)
	b.click(cardSubmit)
	b.until(`document.querySelector("#number[aria-invalid=true]")`)
	if help := eval[string](b, `(n => n.getAttribute("aria-describedby").split(" ").map(id => document.getElementById(id)?.textContent).join(" "))(document.querySelector("#number"))`); !strings.Contains(help, "teste") {
		t.Errorf("next to the field: %q", help)
	}
	b.accessible("an invalid form")
	bare := strings.ReplaceAll(noTestCard, " ", "")
	for what, text := range map[string]string{
		"page": eval[string](b, "document.documentElement.outerHTML"), "log": o.shop.gateway.Log.String(), "address": eval[string](b, "location.href"),
	} {
		if strings.Contains(text, bare) || strings.Contains(text, noTestCard) {
			t.Errorf("the number is in the %s", what)
		}
	}
	if status := o.now(t); status.Get("status") != "PENDING" || status.Get("failure.code") != "" {
		t.Error(status.Body)
	}
	b.shot("card-invalid")
}

func testEmptyCardFormNamesItsFields(t *testing.T, s *shop) {
	o := s.own(t).order(t, "CREDIT_CARD", nil)
	b := o.view(t, phone)
	b.allows("status of 422")
	eval[bool](b, `document.querySelector("form[data-card]").noValidate = true`)
	b.click(cardSubmit)
	for _, field := range []string{"number", "expiry", "cvv", "holder"} {
		b.until(`document.querySelector("#` + field + `[aria-invalid=true]")`)
	}
	b.accessible("an empty form")
}

func testCardByKeyboard(t *testing.T, s *shop) {
	o := s.own(t).order(t, "CREDIT_CARD", nil)
	b := o.view(t, desktop)
	for _, step := range []struct{ css, text string }{{"#number", approves}, {"#expiry", "1240"}, {"#cvv", "123"}, {"#holder", "MARIA"}} {
		b.tabTo(step.css)
		b.press(step.text)
	}
	b.press(kb.Enter)
	b.shows("PAID")
}

func testPayersGoBackToTheShop(t *testing.T, s *shop) {
	s = s.own(t)
	o := s.order(t, "PIX", fields{"returnUrl": s.site.URL + "/volta?loja=1"})
	o.happens(t, "pay")
	b := o.view(t, desktop)
	b.shows("PAID")
	b.click(returnLink)
	var got string
	select {
	case got = <-s.visits:
	case <-time.After(patience):
		t.Fatal("the payer does not come back")
	}
	if got != "/volta?loja=1&referenceId="+o.reference {
		t.Errorf("came back to %s", got)
	}
}

// The strip leads to every final state without leaving the page.
func testSandboxStrip(t *testing.T, s *shop) {
	for button, status := range map[string]string{simulate: "PAID", letExpire: "EXPIRED", letRefuse: "FAILED"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			o := s.own(t).order(t, "PIX", nil)
			b := o.view(t, desktop)
			b.click(button)
			b.shows(status)
			o.becomes(t, status)
		})
	}
}
