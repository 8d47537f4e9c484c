package wire

import (
	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

type balanceView struct {
	Currency  string      `json:"currency"`
	Available money.Cents `json:"available"`
	Pending   money.Cents `json:"pending"`
	Held      money.Cents `json:"held"`
	Disputed  money.Cents `json:"disputed"`
	Unapplied money.Cents `json:"unapplied"`
	Owed      money.Cents `json:"owed"`
}

// Balance is the answer of GET /balance. Debt is negative in the ledger and
// positive here.
func Balance(b ledger.Balances) ([]byte, error) {
	return json.Marshal(&balanceView{
		payment.Currency, b[ledger.Available], b[ledger.Pending], b[ledger.Held], b[ledger.Disputed],
		b[ledger.Unapplied], -b[ledger.Owed],
	})
}
