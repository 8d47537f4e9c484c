package processortest

import (
	"strings"
	"time"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Key is the receiver's Pix key in the codes of PIX.
const Key = "pix@bank.example"

// PIX is what a payer needs to pay a charge by Pix: a static code of its amount and
// txid, for a bank of tests.
func PIX(r processor.ChargeRequest) *payment.PIXDetail {
	code, err := brcode.Static{
		Key: Key, MerchantName: "LOJA", City: "SAO PAULO",
		TxID: r.ExternalID[:payment.ExternalIDStaticLength], Amount: int64(r.Amount),
	}.Encode()
	if err != nil {
		panic(err)
	}
	return &payment.PIXDetail{QRCode: code, TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}
}

// Boleto is a valid bill of a charge.
func Boleto(r processor.ChargeRequest) *payment.BoletoDetail {
	due, err := time.Parse(time.DateOnly, r.DueDate)
	if err != nil {
		panic(err)
	}
	factor, err := boleto.Factor(due)
	if err != nil {
		panic(err)
	}
	barcode, err := boleto.Bill{Bank: "999", Amount: int64(r.Amount), Factor: factor, FreeField: strings.Repeat("1", 25)}.Barcode()
	if err != nil {
		panic(err)
	}
	line, err := boleto.Line(barcode)
	if err != nil {
		panic(err)
	}
	return &payment.BoletoDetail{Barcode: barcode, DigitableLine: line, DueDate: r.DueDate, OurNumber: "1"}
}
