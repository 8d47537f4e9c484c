package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

var (
	merchantID = payment.ID{0: 0x01, 6: 0x70, 8: 0x80, 15: 0x01}
	orderID    = payment.ID{0: 0x01, 6: 0x70, 8: 0x80, 15: 0x02}
	// created has microseconds and a time zone, which the API does not show.
	created = time.Date(2026, 3, 1, 0, 30, 5, 7_999_000, time.FixedZone("", 3600))
)

// wantJSON compares JSON; the golden text may be broken into lines.
func wantJSON(t *testing.T, name string, got []byte, err error, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), "\n", "")
	if err != nil || string(got) != want {
		t.Errorf("%s: %v\n got %s\nwant %s", name, err, got, want)
	}
}

func pixPayin() payment.Payin {
	return payment.Payin{
		Merchant: merchantID, ID: orderID, ExternalID: "00001IPd0ZubfafOGFbEbpuxefV5acEx", ReferenceID: "pedido <7> & \"ç\"",
		Method: payment.PIX, Amount: 99_999_999_999, Status: payment.PayinPending, Version: 1, Processor: "sandbox",
		Details: payment.PayinDetails{
			PIX:     &payment.PIXDetail{QRCode: "000201", TxID: "tx", ExpiresAt: created.Add(24 * time.Hour)},
			DueDate: "2026-03-04", Installments: 3, IdempotencyKey: "not shown",
		},
		ExpiresAt: created.Add(24 * time.Hour), CreatedAt: created, UpdatedAt: created,
	}
}

func TestPayinViewWhenNew(t *testing.T) {
	t.Parallel()
	p := pixPayin()
	got, err := Payin(&p, payment.Links{}, payment.PersonalData{})
	wantJSON(t, "new", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"00001IPd0ZubfafOGFbEbpuxefV5acEx",
"referenceId":"pedido <7> & \"ç\"","status":"PENDING","amount":99999999999,"currency":"BRL","paymentMethod":"PIX",
"pix":{"qrcode":"000201","txid":"tx","expiresAt":"2026-03-01T23:30:05.007Z"},
"expiresAt":"2026-03-01T23:30:05.007Z","version":1,"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z"}`)
}

func TestPayinViewWithEverything(t *testing.T) {
	t.Parallel()
	p := pixPayin()
	p.ReferenceID, p.ProcessorID, p.WebhookURL = "r", "their-id", "https://shop.example/hook?a=1&b=2"
	p.Details.Origin = payment.OriginPublic
	p.Details.Description, p.Details.ReturnURL = "Camisa", "https://shop.example/back"
	p.Details.Metadata = map[string]string{"loja": "7"}
	p.Status, p.Version, p.Amount, p.PaidAmount, p.RefundedAmount, p.Fee = payment.PayinPartiallyRefunded, 4, 1000, 1000, 300, 25
	p.EndToEndID, p.Late, p.PaidAt = "E1", true, created.Add(time.Second)
	p.Failure = &payment.Failure{Code: "card_declined", Message: "The card was refused."}
	personal := payment.PersonalData{Customer: []byte(`{"name":"Ana"}`), Items: []byte(`[]`)}
	got, err := Payin(&p, payment.Links{}, personal)
	wantJSON(t, "everything", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"00001IPd0ZubfafOGFbEbpuxefV5acEx","processorId":"their-id",
"referenceId":"r","origin":"public","status":"PARTIALLY_REFUNDED","amount":1000,"currency":"BRL","paymentMethod":"PIX",
"pix":{"qrcode":"000201","txid":"tx","expiresAt":"2026-03-01T23:30:05.007Z"},
"description":"Camisa","metadata":{"loja":"7"},"returnUrl":"https://shop.example/back",
"webhookUrl":"https://shop.example/hook?a=1&b=2","paidAmount":1000,"refundedAmount":300,"fee":25,"netAmount":975,
"endToEndId":"E1","late":true,"failure":{"code":"card_declined","message":"The card was refused."},
"expiresAt":"2026-03-01T23:30:05.007Z","paidAt":"2026-02-28T23:30:06.007Z","version":4,
"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z","customer":{"name":"Ana"},"items":[]}`)
	if _, err := Payin(&p, payment.Links{}, payment.PersonalData{Customer: []byte(`{"name"`)}); err == nil {
		t.Error("damaged personal data is accepted")
	}
}

// A fee of 0 is shown once the order is paid, and not before.
func TestPayinViewOfOtherMethods(t *testing.T) {
	t.Parallel()
	p := pixPayin()
	p.ReferenceID, p.Method, p.Amount = "r", payment.Boleto, 500
	p.Details = payment.PayinDetails{Boleto: &payment.BoletoDetail{Barcode: "b", DigitableLine: "d", DueDate: "2026-03-04", OurNumber: "n"}}
	p.Status, p.PaidAmount = payment.PayinPending, 200 // underpaid
	got, err := Payin(&p, payment.Links{Checkout: "https://pay/1", Bill: "https://pay/1/b.pdf"}, payment.PersonalData{})
	wantJSON(t, "boleto, underpaid", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"00001IPd0ZubfafOGFbEbpuxefV5acEx","referenceId":"r",
"status":"PENDING","amount":500,"currency":"BRL","paymentMethod":"BOLETO","checkoutUrl":"https://pay/1",
"boleto":{"barcode":"b","digitableLine":"d","dueDate":"2026-03-04","ourNumber":"n","pdfUrl":"https://pay/1/b.pdf"},"paidAmount":200,
"expiresAt":"2026-03-01T23:30:05.007Z","version":1,"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z"}`)

	p.Method, p.Details = payment.CreditCard, payment.PayinDetails{Card: &payment.CardDetail{}}
	p.PaidAmount, p.ExpiresAt = 0, time.Time{}
	got, err = Payin(&p, payment.Links{Checkout: "https://pay/1"}, payment.PersonalData{})
	wantJSON(t, "card, nothing known yet", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"00001IPd0ZubfafOGFbEbpuxefV5acEx","referenceId":"r",
"status":"PENDING","amount":500,"currency":"BRL","paymentMethod":"CREDIT_CARD","checkoutUrl":"https://pay/1",
"card":{"checkoutUrl":"https://pay/1"},
"version":1,"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z"}`)

	p.Details.Card = &payment.CardDetail{HostedURL: "https://bank/2", Brand: "visa", Last4: "1111", Installments: 2}
	p.Status, p.PaidAmount, p.PaidAt = payment.PayinPaid, 500, created
	got, err = Payin(&p, payment.Links{Checkout: "https://pay/1"}, payment.PersonalData{})
	wantJSON(t, "card, paid", got, err, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"00001IPd0ZubfafOGFbEbpuxefV5acEx","referenceId":"r",
"status":"PAID","amount":500,"currency":"BRL","paymentMethod":"CREDIT_CARD","checkoutUrl":"https://pay/1",
"card":{"checkoutUrl":"https://bank/2","brand":"visa","last4":"1111","installments":2},"paidAmount":500,"fee":0,"netAmount":500,
"paidAt":"2026-02-28T23:30:05.007Z","version":1,"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z"}`)
}

func TestPayoutView(t *testing.T) {
	t.Parallel()
	p := payment.Payout{
		Merchant: merchantID, ID: orderID, ExternalID: "e", ReferenceID: "saque-1", Amount: 150075, Status: payment.PayoutPending,
		Step: payment.StepQueued, Version: 1, Processor: "sandbox", PIXKeyType: "PHONE", Approval: payment.ApprovalNone,
		Beneficiary: payment.Beneficiary{Name: "Ana", Document: "52998224725", PIXKey: "11987654321", NormalKey: "+5511987654321"},
		CreatedAt:   created, UpdatedAt: created,
	}
	got := Payout(&p, false)
	wantJSON(t, "new", got, nil, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"e","referenceId":"saque-1","status":"PENDING","amount":"150075",
"currency":"BRL","pixKey":"11987654321","pixKeyType":"PHONE","approval":"none","version":1,
"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z"}`)

	p.Status, p.Step, p.Version, p.ProcessorID, p.WebhookURL = payment.PayoutReturned, payment.StepDone, 4, "their-id", "https://shop.example"
	p.Fee, p.ReturnedAmount, p.EndToEndID, p.CompletedAt = 50, 150075, "E2", created.Add(time.Minute)
	p.Failure = &payment.Failure{Code: "key_not_found", Message: "The key does not exist."}
	got = Payout(&p, true)
	wantJSON(t, "everything", got, nil, `
{"id":"01000000-0000-7000-8000-000000000002","externalId":"e","processorId":"their-id","referenceId":"saque-1",
"status":"RETURNED","amount":"150075","currency":"BRL","pixKey":"11987654321","pixKeyType":"PHONE","approval":"none",
"webhookUrl":"https://shop.example","endToEndId":"E2","fee":"50","returnedAmount":"150075",
"failure":{"code":"key_not_found","message":"The key does not exist."},"completedAt":"2026-02-28T23:31:05.007Z","version":4,
"createdAt":"2026-02-28T23:30:05.007Z","updatedAt":"2026-02-28T23:30:05.007Z",
"beneficiary":{"name":"Ana","document":"52998224725"}}`)
}
