package checkout_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

// A partly paid order whose payment is disputed, or was charged back, does not just ask for the rest: that
// would not make it a paid order.
func TestUnderpaidAndDisputed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, s := range []payment.PayinStatus{payment.PayinPending, payment.PayinProcessing, payment.PayinExpired, payment.PayinCanceled, payment.PayinFailed} {
		for disputed, want := range map[bool]string{true: "dos quais R$ 400,00 foram contestados. Fale com ", false: "Recebemos R$ 1.000,00"} {
			a := h.get(h.order(payment.PIX, status(s), func(p *payment.Payin) {
				p.PaidAmount = 1_000_00
				if disputed {
					p.DisputedAmount = 400_00
				}
			}))
			page := strings.ReplaceAll(text(a.byID("page")), "\u00a0", " ")
			if !strings.Contains(page, want) || disputed && strings.Contains(page, "Faltam") || strings.Contains(page, "contestad") != disputed {
				t.Errorf("%s, disputed %v: %q, want %q", s, disputed, page, want)
			}
		}
	}
}
