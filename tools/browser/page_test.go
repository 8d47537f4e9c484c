package browser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/checkout/checkouttest"
)

// Selectors of the tests.
const (
	qrCode     = `.qr svg`
	pixText    = `#code`
	bars       = `.bars svg`
	line       = `#line`
	copyPix    = `button[data-copy="code"]`
	copyLine   = `button[data-copy="line"]`
	countdown  = `[role="timer"]`
	billLink   = `a[href$="/boleto.pdf"]`
	returnLink = `a[href*="/volta"]`
	simulate   = `form[action$="/sandbox/pay"] button`
	letExpire  = `form[action$="/sandbox/expire"] button`
	letRefuse  = `form[action$="/sandbox/refuse"] button`
)

// headings are the headings of pages by status, in both languages.
var headings = map[string][]string{
	"PENDING":    {"Pague com Pix", "Pay with Pix", "Pague o boleto", "Pay the boleto", "Pague com cartão", "Pay by card"},
	"PROCESSING": {"Pagamento em análise", "Payment under review"},
	"PAID":       {"Pagamento confirmado", "Payment confirmed"},
	"EXPIRED":    {"O prazo terminou", "Payment expired"},
	"CANCELED":   {"Pagamento cancelado", "Payment canceled"},
	"FAILED":     {"Pagamento recusado", "Payment refused"},
	"REFUNDED":   {"Pagamento devolvido", "Payment refunded"},
	"DISPUTED":   {"Pagamento contestado", "Payment disputed"},
	"CHARGEBACK": {"Pagamento estornado", "Payment charged back"},

	"PARTIALLY_REFUNDED": {"Pagamento devolvido em parte", "Payment partly refunded"},
}

// view opens an order's page.
func (o order) view(t testing.TB, l look) *tab {
	t.Helper()
	b := newTab(t, l)
	b.open(o.page)
	b.until(`document.readyState === "complete"`)
	return b
}

// marked marks the page, so that stays can check that it was not reloaded.
func (b *tab) marked() { eval[bool](b, "window.marked = true") }

func (b *tab) stays() {
	b.Helper()
	if !eval[bool](b, "window.marked === true") {
		b.Error("the page was reloaded")
	}
}

// shows waits until the page shows a status.
func (b *tab) shows(status string) {
	b.Helper()
	var any []string
	for _, heading := range headings[status] {
		any = append(any, quoted(heading))
	}
	b.until("[" + strings.Join(any, ",") + `].includes(document.querySelector("h1").textContent)`)
}

// reading is the codes that a reader finds on the screen.
func (b *tab) reading() []checkouttest.Symbol {
	b.Helper()
	return checkouttest.Symbols(b, b.picture())
}

// finds fails the test unless a code is among those that were read.
func finds(t testing.TB, where string, read []checkouttest.Symbol, kind, text string) {
	t.Helper()
	if !slices.Contains(read, checkouttest.Symbol{Kind: kind, Text: text}) {
		t.Errorf("%s: read %v, want the %s %s", where, read, kind, text)
	}
}

// value is the exact text of a node.
func (b *tab) value(css string) string {
	b.Helper()
	return eval[string](b, "(node => node.value ?? node.textContent)(document.querySelector("+quoted(css)+"))")
}

// top is how far down the page a node begins, in CSS pixels.
func (b *tab) top(css string) float64 {
	b.Helper()
	return eval[float64](b, "document.querySelector("+quoted(css)+").getBoundingClientRect().top + scrollY")
}
