package bankapi

import (
	"strings"
	"unicode/utf8"
)

// Card is the bank's data of a card, never its number.
type Card struct {
	Brand        string `json:"brand,omitempty"`
	Last4        string `json:"last4,omitempty"`
	Installments int    `json:"installments,omitempty"`
}

const (
	cardBrandMax = 64 // bytes
	cardLast4Max = 4
)

// Valid reports whether the texts of the card can be stored and shown.
func (c *Card) Valid() bool {
	return len(c.Brand) <= cardBrandMax && len(c.Last4) <= cardLast4Max && IsText(c.Brand) && IsText(c.Last4)
}

// IsText reports whether s is UTF-8 without NUL, which PostgreSQL refuses.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// CardResult is the result of an attempt to pay with a test card: one of the
// constants, or the [Code] of a failure of a card.
type CardResult string

// The results that are not an immediate failure.
const (
	CardApproved         CardResult = "approved"
	CardChallenge        CardResult = "challenge"         // approved once the payer has confirmed (3-D Secure)
	CardAnalysisApproved CardResult = "analysis_approved" // approved after an analysis
	CardAnalysisRefused  CardResult = "analysis_refused"  // refused, finally, after an analysis
)

// CardAttempt is an attempt to pay a charge with a test card. Terms register a
// charge that the bank has not seen.
type CardAttempt struct {
	Terms  ChargeTerms `json:"charge"`
	Result CardResult  `json:"result"`
	Card   Card        `json:"card"`
}

// CardAnswer is the answer to an attempt. With Challenge the payer has to
// confirm it first.
type CardAnswer struct {
	ExternalID string `json:"externalId"`
	Attempt    int    `json:"attempt"` // from 1
	Challenge  bool   `json:"challenge,omitzero"`
}

// CardConfirmation is the payer's answer to a challenge.
type CardConfirmation struct {
	Approve bool `json:"approve"`
}
