package sandboxbank

import (
	"errors"
	"testing"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Refused credentials are those of every call of the account, but not of the control, for as
// many calls as were armed or until all faults are removed.
func TestCredentialsAreRefused(t *testing.T) {
	h := newHarness(t, nil)
	request := h.transferRequest()
	arm := func(count int) {
		t.Helper()
		if err := h.control.Arm(t.Context(), bankapi.Fault{Operation: bankapi.OpCredentials, Kind: bankapi.Refuse, Count: count}); err != nil {
			t.Fatal(err)
		}
	}
	arm(2)
	if a := h.driver.Transfer(t.Context(), request, func() error { return nil }); a.Outcome != processor.Unknown || !h.driver.Refused() {
		t.Errorf("transfer: %+v", a)
	}
	if err := h.driver.Authenticate(t.Context()); !errors.Is(err, processor.ErrCredentials) {
		t.Errorf("refused: %v", err)
	}
	if err := h.driver.Authenticate(t.Context()); err != nil || h.driver.Refused() {
		t.Errorf("accepted: %v", err)
	}
	if r := h.driver.QueryTransfer(t.Context(), request.ExternalID); r.Lookup != processor.NotFound {
		t.Errorf("the refused transfer: %+v", r)
	}
	arm(1_000_000)
	if err := h.control.Disarm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.driver.Authenticate(t.Context()); err != nil {
		t.Errorf("without faults: %v", err)
	}
	if err := h.control.Arm(t.Context(), bankapi.Fault{Operation: bankapi.OpCredentials, Kind: bankapi.Later, Count: 1}); !errors.Is(err, bankapi.CodeRequestInvalid) {
		t.Errorf("another kind: %v", err)
	}
}
