package sandbox

import (
	"fmt"

	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

const (
	// codeHost is where this bank's BR Codes point to. No name under .invalid
	// ever resolves (RFC 2606), so no payer's bank can fetch the charge.
	codeHost = "pix.porteira.invalid/qr/v2/"
	// worthless marks what looks like a means of payment and is none.
	worthless = "SEM VALOR - "
	// defaultCity stands where a merchant has none.
	defaultCity = "BRASILIA"
)

// Mint implements [processor.Minter]: what a payer needs follows from the
// order alone, so a bank in this process need not be called, unless a fault is
// to strike the call.
func (p *Processor) Mint(r processor.ChargeRequest) (c processor.Charge, ok bool) {
	if p.bank == nil || !p.bank.faults.mints() {
		return processor.Charge{}, false
	}
	c, err := mint(r.ExternalID, termsOf(r))
	return c, err == nil
}

// mint makes what a payer is shown. The same terms make the same charge, here
// and at a bank far away.
func mint(externalID string, terms chargeTerms) (c processor.Charge, err error) {
	switch terms.Method {
	case payment.PIX:
		code, err := mintCode(externalID, terms)
		if err != nil {
			return c, err
		}
		c.PIX = &payment.PIXDetail{QRCode: code, TxID: externalID, ExpiresAt: terms.ExpiresAt}
	case payment.Boleto:
		c.Boleto, err = mintBill(externalID, terms)
	default:
		c.Card = &payment.CardDetail{}
	}
	return c, err
}

// mintCode makes a dynamic BR Code that carries its amount for those who read
// codes without a network.
func mintCode(externalID string, terms chargeTerms) (string, error) {
	city := brcode.Cut(brcode.Fold(terms.MerchantCity), brcode.MaxCity)
	if city == "" {
		city = defaultCity
	}
	code, err := brcode.Dynamic{
		URL:          codeHost + externalID,
		MerchantName: brcode.Cut(worthless+brcode.Fold(terms.MerchantName), brcode.MaxMerchantName),
		City:         city,
		Amount:       int64(terms.Amount),
	}.Encode()
	if err != nil {
		return "", fmt.Errorf("sandbox: mint BR Code: %w", err)
	}
	return code, nil
}
