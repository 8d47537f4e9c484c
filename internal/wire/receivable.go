package wire

import (
	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// ReceivableDay is what becomes available on a date, in cents.
type ReceivableDay struct {
	Date   string      `json:"date"` // YYYY-MM-DD in São Paulo
	Amount money.Cents `json:"amount"`
	Count  int64       `json:"count"`
}

// ReceivableDays is the answer of GET /receivables.
func ReceivableDays(list []ReceivableDay) ([]byte, error) { return marshalList(list) }

// Receivable is a part of a pay-in's money that becomes available on a date. Amounts are cents.
type Receivable struct {
	OrderType   payment.Operation `json:"orderType"`
	OrderID     payment.ID        `json:"orderId"`
	ReferenceID string            `json:"referenceId"`
	Installment int               `json:"installment"`
	Gross       money.Cents       `json:"gross"`
	Fee         money.Cents       `json:"fee"`
	Taken       money.Cents       `json:"taken,omitzero"` // for disputes and refunds
	Net         money.Cents       `json:"net"`
	SettledAt   Timestamp         `json:"settledAt,omitempty"`
}

// MarshalReceivable is an entry of GET /receivables/{date}.
func MarshalReceivable(v *Receivable) ([]byte, error) { return json.Marshal(v) }
