package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// Receipt is one payment that a processor reported: the authoritative record of
// money received. It is unique by (Processor, ExternalID).
type Receipt struct {
	Merchant   ID
	ID         ID
	Payin      ID // zero if it matches no order
	Processor  string
	ExternalID string // the processor's id of the payment: endToEndId for Pix
	OrderID    string // the external id of the order that it names, if any
	EndToEndID string
	Amount     money.Cents
	Applied    money.Cents // the part that went to the order; the rest is unapplied
	Cost       money.Cents // what the processor kept of it; the platform bears it
	Entry      int64       // number of the ledger entry that books it, or its first part
	PaidAt     time.Time
	CreatedAt  time.Time
}
