package wire

import (
	"testing"

	"github.com/porteira/porteira/internal/ledger"
)

func TestBalance(t *testing.T) {
	t.Parallel()
	got, err := Balance(ledger.Balances{
		ledger.Available: 1, ledger.Pending: 2, ledger.Held: 3, ledger.Disputed: 4, ledger.Unapplied: 5, ledger.Owed: -6,
	})
	wantJSON(t, "balance", got, err,
		`{"currency":"BRL","available":1,"pending":2,"held":3,"disputed":4,"unapplied":5,"owed":6}`)
}
