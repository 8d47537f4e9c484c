package processortest

import (
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// PIX is what a payer needs to pay a charge by Pix: a static code of its amount and
// txid, for a bank of tests.
func PIX(r processor.ChargeRequest) *payment.PIXDetail {
	code, err := brcode.Static{
		Key: "pix@bank.example", MerchantName: "LOJA", City: "SAO PAULO",
		TxID: r.ExternalID[:payment.ExternalIDStaticLength], Amount: int64(r.Amount),
	}.Encode()
	if err != nil {
		panic(err)
	}
	return &payment.PIXDetail{QRCode: code, TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}
}
