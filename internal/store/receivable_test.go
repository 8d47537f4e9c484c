package store_test

import (
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
)

// A part of which a refund has taken everything is not counted, nor is a day without any other.
func TestEmptiedReceivablesAreNotCounted(t *testing.T) {
	t.Parallel()
	h := &history{coretest.New(t, "sqlite")}
	h.SetPrice(payment.PIX, payment.Terms{Days: 2})
	a, b := h.payin("a", 10_00, 10_00), h.payin("b", 20_00, 20_00)
	h.Refund(a, "a", 10_00)
	if days := h.Receivables(h.Merchant); len(days) != 1 || days[0].Count != 1 || days[0].Amount != 20_00 {
		t.Errorf("after one refund: %+v", days)
	}
	h.Refund(b, "b", 20_00)
	if days := h.Receivables(h.Merchant); len(days) != 0 {
		t.Errorf("after both: %+v", days)
	}
}
