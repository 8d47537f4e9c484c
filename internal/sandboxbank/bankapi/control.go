package bankapi

import (
	"net/url"

	"github.com/porteira/porteira/internal/money"
)

// ForceCharge is the body of the routes that force an outcome of a charge. The
// zero value of each field changes nothing.
type ForceCharge struct {
	// Terms register a charge that was generated offline, which the bank has
	// not seen.
	Terms *ChargeTerms `json:"charge,omitempty"`
	// Amount of the payment, in cents; 0 pays the charge's own.
	Amount money.Cents `json:"amount,omitzero"`
	// Method is how it is paid: a boleto may be paid by Pix.
	Method Method `json:"method,omitempty"`
	// Attempt fails one attempt by card only: the charge stays open.
	Attempt bool `json:"attempt,omitzero"`
	// Of a dispute that is opened, whose amount is Amount, or all that is left.
	Kind             string `json:"kind,omitempty"` // CHARGEBACK or MED; by the method if it is empty
	Reason           string `json:"reason,omitempty"`
	RespondInSeconds int64  `json:"respondInSeconds,omitzero"`
	Blocked          bool   `json:"blocked,omitzero"` // a block, not yet a dispute
}

// ForceTransfer is the body of the routes that force an outcome of a transfer.
type ForceTransfer struct {
	Amount money.Cents `json:"amount,omitzero"` // to return, in cents; 0 returns all
}

// Listener registers a gateway's address for notices.
type Listener struct {
	URL        string `json:"url"`
	TTLSeconds int64  `json:"ttlSeconds"`
}

// ClockOffset is how far the bank's clock runs ahead of its machine's.
type ClockOffset struct {
	Offset int64 `json:"offset"` // seconds
}

// externalIDMax is the longest id that API Pix of Banco Central accepts
// (schemas TxId and IdEnvio).
const externalIDMax = 35

// IsExternalID reports whether s can be a gateway's id of an order.
func IsExternalID(s string) bool {
	if s == "" || len(s) > externalIDMax {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// IsURL reports whether s is an absolute HTTP address without user info.
func IsURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}
