package sandboxbank

import (
	"errors"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// A canceled charge cannot be paid; one that was paid cannot be canceled.
func TestCancelCharge(t *testing.T) {
	h := newHarness(t, nil)
	canceled, paid, unseen := h.chargeRequest(payment.PIX), h.chargeRequest(payment.PIX), h.chargeRequest(payment.PIX)
	for _, request := range []processor.ChargeRequest{canceled, paid} {
		if answer := h.driver.Charge(t.Context(), request, willing); answer.Outcome != processor.Done {
			t.Fatal(answer)
		}
	}
	h.pay(paid, bankapi.ForceCharge{})
	for name, c := range map[string]struct {
		request processor.ChargeRequest
		want    processor.CancelAnswer
		state   processor.ChargeState
	}{
		"open":   {canceled, processor.CancelAnswer{Outcome: processor.Done}, processor.ChargeCanceled},
		"paid":   {paid, processor.CancelAnswer{Outcome: processor.Refused}, processor.ChargeOpen},
		"unseen": {unseen, processor.CancelAnswer{NotFound: true}, ""},
	} {
		for range 2 {
			answer := h.driver.CancelCharge(t.Context(), processor.CancelRequest{ExternalID: c.request.ExternalID, Method: c.request.Method}, willing)
			if answer.Outcome != c.want.Outcome || answer.NotFound != c.want.NotFound {
				t.Errorf("%s: %+v", name, answer)
			}
			if state := h.driver.QueryCharge(t.Context(), c.request.ExternalID).State; state != c.state {
				t.Errorf("%s: state %q", name, state)
			}
		}
	}
	if err := h.control.Charge(t.Context(), canceled, "pay", bankapi.ForceCharge{}); !errors.Is(err, bankapi.CodeStateForbids) {
		t.Errorf("paid after it was canceled: %v", err)
	}
}

// A charge whose registration takes a while is shown without its data until then.
func TestRegistrationTakesAWhile(t *testing.T) {
	h := newHarness(t, nil)
	request := h.chargeRequest(payment.PIX)
	h.arm(bankapi.OpCharge, bankapi.Registering)
	answer := h.driver.Charge(t.Context(), request, willing)
	if answer.Outcome != processor.Done || !answer.Registering || answer.Charge.PIX != nil {
		t.Errorf("answered %+v", answer)
	}
	if report := h.driver.QueryCharge(t.Context(), request.ExternalID); report.State != processor.ChargeRegistering || report.Charge.PIX != nil {
		t.Errorf("at first: %+v", report)
	}
	h.clock.Advance(10 * time.Second)
	if report := h.driver.QueryCharge(t.Context(), request.ExternalID); report.State != processor.ChargeOpen || report.Charge.PIX == nil {
		t.Errorf("later: %+v", report)
	}
}
