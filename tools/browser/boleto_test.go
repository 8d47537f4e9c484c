package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/internal/checkout/checkouttest"
)

func testBoletoOnTheScreen(t *testing.T, s *shop) {
	o := s.own(t).order(t, "BOLETO", nil)
	for name, l := range map[string]look{"light": desktop, "dark": desktop.inDark()} {
		b := o.view(t, l)
		read := b.reading()
		finds(t, name, read, "I2/5", o.created.Get("boleto.barcode"))
		finds(t, name, read, "QR-Code", o.created.Get("boleto.pixQrcode"))
		if got, want := b.value(line), boleto.FormatLine(o.created.Get("boleto.digitableLine")); got != want {
			t.Errorf("the digitable line is %q, want %q", got, want)
		}
		b.shot("boleto-" + name)
	}
	b := o.view(t, phone)
	if got := b.copied("copiad[oa]", func() { b.click(copyLine) }); got != o.created.Get("boleto.digitableLine") {
		t.Errorf("copied %q", got)
	}
	b.shot("boleto-phone")
}

func testBoletoOnPaper(t *testing.T, s *shop) {
	o := s.own(t).order(t, "BOLETO", nil)
	barcode, pix := o.created.Get("boleto.barcode"), o.created.Get("boleto.pixQrcode")

	b := o.view(t, desktop.inDark())
	read := checkouttest.Symbols(t, checkouttest.Picture(t, b.paper(), "200"))
	finds(t, "the printed page", read, "I2/5", barcode)
	finds(t, "the printed page", read, "QR-Code", pix)

	response, pdf := fetch(t, http.MethodGet, o.created.Get("boleto.pdfUrl"))
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/pdf" {
		t.Fatalf("the bill: %s, %s", response.Status, response.Header.Get("Content-Type"))
	}
	read = checkouttest.Symbols(t, checkouttest.Picture(t, []byte(pdf), "200"))
	finds(t, "the bill", read, "I2/5", barcode)
	finds(t, "the bill", read, "QR-Code", pix)
	if words := checkouttest.Words(t, []byte(pdf)); !strings.Contains(words, "Maria Aparecida da Silva") || !strings.Contains(words, "529.982.247-25") {
		t.Errorf("the bill does not name the payer: %s", words)
	}
	if link := eval[string](b, "document.querySelector("+quoted(billLink)+").href"); link != o.created.Get("boleto.pdfUrl") {
		t.Errorf("the page links %s", link)
	}
}

func testBoletoIsPaidWhileLooking(t *testing.T, s *shop) {
	o := s.own(t).order(t, "BOLETO", nil)
	b := o.view(t, phone)
	b.shows("PENDING")
	b.marked()
	o.happens(t, "pay")
	b.shows("PAID")
	b.stays()
	if b.holds(bars) {
		t.Error("a paid bill still shows its bars")
	}
}

func testBoletoWithoutScript(t *testing.T, s *shop) {
	o := s.own(t).order(t, "BOLETO", nil)
	b := o.view(t, desktop.withoutScript())
	finds(t, "without script", b.reading(), "I2/5", o.created.Get("boleto.barcode"))
	if !b.looksAgain() {
		t.Error("the page does not reload by itself")
	}
	o.happens(t, "pay")
	b.open(o.page)
	b.shows("PAID")
}
