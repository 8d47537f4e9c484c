package payment_test

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

func TestReady(t *testing.T) {
	t.Parallel()
	details := map[payment.Method]payment.PayinDetails{
		payment.PIX:        {PIX: &payment.PIXDetail{}},
		payment.Boleto:     {Boleto: &payment.BoletoDetail{}},
		payment.CreditCard: {Card: &payment.CardDetail{}},
	}
	for _, method := range payment.Methods {
		for other, d := range details {
			p := payment.Payin{Method: method, Details: d}
			if p.Ready() != (method == other) {
				t.Errorf("%s with the details of a %s: ready is %v", method, other, p.Ready())
			}
		}
	}
	if b := (payment.Beneficiary{PIXKey: "a", NormalKey: "b"}); b.Key() != "b" {
		t.Error("Key ignores the normal form")
	}
	if b := (payment.Beneficiary{PIXKey: "a"}); b.Key() != "a" {
		t.Error("Key changes a key in normal form")
	}
}
