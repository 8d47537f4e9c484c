package sandboxbank

import (
	"testing"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// wantBalance compares the money that the bank shows, in cents.
func (h *harness) wantBalance(want money.Cents) {
	h.t.Helper()
	if got, err := h.driver.Balance(h.t.Context()); err != nil || got.Amount != want {
		h.t.Errorf("balance %d, %v, want %d", got.Amount, err, want)
	}
}

// The balance is what was received, less what was sent, and survives a restart.
func TestBalance(t *testing.T) {
	t.Parallel()
	h := newHarness(t, onDisk(t))
	h.wantBalance(0)
	charge := h.chargeRequest(payment.PIX)
	h.driver.Charge(t.Context(), charge, willing)
	h.pay(charge, bankapi.ForceCharge{Amount: 100_00})
	h.wantBalance(100_00)
	sent, failed := h.transferRequest(), h.transferRequest()
	h.transfer(sent)
	h.transfer(failed)
	h.wantBalance(100_00 - sent.Amount - failed.Amount)
	for action, r := range map[string]string{"fail": failed.ExternalID, "return": sent.ExternalID} {
		returned := money.Cents(0)
		if action == "return" {
			returned = 1
		}
		if err := h.control.Transfer(t.Context(), r, action, returned); err != nil {
			t.Fatal(err)
		}
	}
	h.wantBalance(100_00 - sent.Amount + 1)
	h.reopen()
	h.wantBalance(100_00 - sent.Amount + 1)
}
