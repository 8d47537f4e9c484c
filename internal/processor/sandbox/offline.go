package sandbox

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// NewCharge implements [processor.OfflineCharger]: it generates an offline charge if the
// bank allows it. The payer's instructions follow from the order alone.
func (p *Processor) NewCharge(r processor.ChargeRequest) (c processor.Charge, ok bool) {
	if p.offline == nil || !p.offline() {
		return processor.Charge{}, false
	}
	instructions, err := bankapi.Instruct(r.ExternalID, termsOf(r))
	return chargeOf(bankapi.Method(r.Method), instructions.PIX, instructions.Boleto), err == nil
}

// chargeOf is the payer's instructions in the gateway's form.
func chargeOf(method bankapi.Method, pix *bankapi.PIX, boleto *bankapi.Boleto) processor.Charge {
	c := processor.Charge{PIX: (*payment.PIXDetail)(pix), Boleto: (*payment.BoletoDetail)(boleto)}
	if method == bankapi.MethodCreditCard {
		c.Card = &payment.CardDetail{}
	}
	return c
}
