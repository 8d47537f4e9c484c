package payment_test

import (
	"slices"
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

// Each state allows exactly these uses.
func TestAccountStateAllows(t *testing.T) {
	t.Parallel()
	want := map[payment.AccountState][]payment.AccountUse{
		payment.AccountLive:      payment.AccountUses,
		payment.AccountDraining:  {payment.UseCharge, payment.UseTransfer},
		payment.AccountSuspended: nil,
		"of a later version":     nil,
	}
	if len(want) != len(payment.AccountStates)+1 {
		t.Fatalf("%d states are tested, of %d", len(want)-1, len(payment.AccountStates))
	}
	for state, uses := range want {
		for _, use := range payment.AccountUses {
			if got := state.Allows(use); got != slices.Contains(uses, use) {
				t.Errorf("%s allows %s: %t", state, use, got)
			}
		}
	}
}
