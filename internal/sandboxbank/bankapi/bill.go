package bankapi

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/porteira/porteira/boleto"
)

// billBank begins the bar codes of this bank's bills. Banco Central numbers
// participants upwards and had reached 795 in 2026; 999 is unused, so no bank
// accepts such a bill.
const billBank = "999"

const (
	ourNumberDigits = 18
	freeFieldTail   = "9999999" // fills the free field, 25 digits
)

// bill makes a bill that also carries a Pix. Its number at the bank, which is
// most of its free field, follows from the external id.
func bill(externalID string, terms ChargeTerms) (*Boleto, error) {
	due, err := time.Parse(time.DateOnly, terms.DueDate)
	if err != nil {
		return nil, fmt.Errorf("bankapi: generate bill: %w", err)
	}
	factor, err := boleto.Factor(due)
	if err != nil {
		return nil, fmt.Errorf("bankapi: generate bill: %w", err)
	}
	digest := sha256.Sum256([]byte("bill " + externalID))
	ourNumber := fmt.Sprintf("%0*d", ourNumberDigits, binary.BigEndian.Uint64(digest[:])%1e18)
	barcode, err := boleto.Bill{
		Bank: billBank, Amount: int64(terms.Amount), Factor: factor, FreeField: ourNumber + freeFieldTail,
	}.Barcode()
	if err != nil {
		return nil, fmt.Errorf("bankapi: generate bill: %w", err)
	}
	line, err := boleto.Line(barcode)
	if err != nil {
		return nil, fmt.Errorf("bankapi: generate bill: %w", err)
	}
	code, err := dynamicCode(externalID, terms)
	if err != nil {
		return nil, err
	}
	return &Boleto{
		Barcode: barcode, DigitableLine: line, DueDate: terms.DueDate, OurNumber: ourNumber, PIXQRCode: code,
	}, nil
}
