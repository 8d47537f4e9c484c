package store_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
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

// The fees of the parts of a payment are proved in the order of the commits, also if the clock was set
// back between two of them.
func TestVerifyFollowsTheOrderOfCommits(t *testing.T) {
	t.Parallel()
	h := &history{coretest.New(t, "sqlite")}
	h.SetPrice(payment.PIX, payment.Terms{Fixed: 1_00, Days: 2})
	p := h.payin("a", 10_00, 60)
	h.Clock.SetOffset(-time.Minute)
	h.receive(p.ExternalID, processor.ChargeReport{Payments: []processor.Payment{{ID: "second", Amount: 9_40, PaidAt: p.CreatedAt}}})
	h.WantProven()
}
