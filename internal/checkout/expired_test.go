package checkout_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// An order that has expired, but is not marked as expired yet, is shown as
// expired.
func TestExpiredButNotYetMarked(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	path := h.order(payment.PIX)
	h.clock.Advance(time.Hour)
	if a := h.get(path); text(a.byID("heading")) != "O prazo terminou" || a.byID("code") != nil || attr(a.byID("page"), "data-stream") == "" {
		t.Errorf("heading %q", text(a.byID("heading")))
	}
}

// An order that its processor ended early is shown with that time.
func TestExpiredEarly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ended := h.clock.Now()
	a := h.get(h.order(payment.PIX, status(payment.PayinExpired), func(p *payment.Payin) { p.UpdatedAt, p.ExpiresAt = ended, ended.Add(24*time.Hour) }))
	if want := payment.InSaoPaulo(ended).Format("02/01/2006"); !strings.Contains(text(a.byID("page")), "expirou em "+want) {
		t.Errorf("want the day %s in %q", want, text(a.byID("page")))
	}
}

// While a merchant is closed, its open orders ask for no money; one that is paid has its receipt.
func TestClosedMerchant(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.store.merchant.ClosedAt = start
	for _, method := range []payment.Method{payment.PIX, payment.Boleto, payment.CreditCard} {
		a := h.get(h.order(method))
		if text(a.byID("heading")) != "A loja não recebe mais pagamentos" || a.byID("code") != nil || a.byID("number") != nil || attr(a.byID("page"), "data-stream") == "" {
			t.Errorf("%s: heading %q", method, text(a.byID("heading")))
		}
	}
	if a := h.get(h.order(payment.PIX, status(payment.PayinPaid))); text(a.byID("heading")) != "Pagamento confirmado" {
		t.Errorf("paid: heading %q", text(a.byID("heading")))
	}
	if b := h.do(http.MethodGet, h.order(payment.Boleto)+"/boleto.pdf", ""); b.Code != http.StatusSeeOther {
		t.Errorf("the PDF of a boleto: %d", b.Code)
	}
}
