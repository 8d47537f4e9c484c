package bankapi

import (
	"fmt"

	"github.com/porteira/porteira/brcode"
)

const (
	// CodeHost is the host in this bank's BR Codes. No name under .invalid ever
	// resolves (RFC 2606), so no payer's bank can fetch the charge.
	CodeHost = "pix.porteira.invalid"
	codePath = "/qr/v2/"
	// worthless marks a code or bill that looks payable but is not.
	worthless = "SEM VALOR - "
	// defaultCity is used for a merchant without a city.
	defaultCity = "BRASILIA"
)

// Instructions are what a payer needs to pay a charge by Pix or boleto; both are
// nil for a card.
type Instructions struct {
	PIX    *PIX
	Boleto *Boleto
}

// Instruct generates the instructions of a charge from its terms alone: the
// same terms give the same instructions at the bank and in its driver. The
// error says which value does not fit into a code.
func Instruct(externalID string, terms ChargeTerms) (Instructions, error) {
	switch terms.Method {
	case MethodPIX:
		code, err := dynamicCode(externalID, terms)
		if err != nil {
			return Instructions{}, err
		}
		return Instructions{PIX: &PIX{QRCode: code, TxID: externalID, ExpiresAt: terms.ExpiresAt}}, nil
	case MethodBoleto:
		b, err := bill(externalID, terms)
		return Instructions{Boleto: b}, err
	default:
		return Instructions{}, nil
	}
}

// dynamicCode makes a dynamic BR Code that carries its amount, for readers
// without a network.
func dynamicCode(externalID string, terms ChargeTerms) (string, error) {
	city := brcode.Cut(brcode.Fold(terms.MerchantCity), brcode.MaxCity)
	if city == "" {
		city = defaultCity
	}
	code, err := brcode.Dynamic{
		URL:          CodeHost + codePath + externalID,
		MerchantName: brcode.Cut(worthless+brcode.Fold(terms.MerchantName), brcode.MaxMerchantName),
		City:         city,
		Amount:       int64(terms.Amount),
	}.Encode()
	if err != nil {
		return "", fmt.Errorf("bankapi: generate BR Code: %w", err)
	}
	return code, nil
}
