package store

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
)

// optional draws nil or a value.
func optional[T any](t *rapid.T, name string, draw func() T) *T {
	if !rapid.Bool().Draw(t, "has "+name) {
		return nil
	}
	v := draw()
	return &v
}

func drawDetails(t *rapid.T) payment.PayinDetails {
	text := func(name string) string { return rapid.String().Draw(t, name) }
	number := func(name string) int { return rapid.IntRange(0, 12).Draw(t, name) }
	d := payment.PayinDetails{
		PIX: optional(t, "pix", func() payment.PIXDetail {
			at := time.UnixMicro(rapid.Int64Range(0, 4_000_000_000_000_000).Draw(t, "expiry")).UTC()
			return payment.PIXDetail{QRCode: text("code"), TxID: text("txid"), ExpiresAt: at}
		}),
		Boleto: optional(t, "boleto", func() payment.BoletoDetail {
			return payment.BoletoDetail{Barcode: text("bars"), DigitableLine: text("line"), DueDate: text("due"), OurNumber: text("number"), PIXQRCode: text("pix of boleto")}
		}),
		Card: optional(t, "card", func() payment.CardDetail {
			return payment.CardDetail{HostedURL: text("url"), Brand: text("brand"), Last4: text("last4"), Installments: number("of card")}
		}),
		Origin: text("origin"), Description: text("description"), ReturnURL: text("return"), DueDate: text("due date"),
		Installments: number("installments"), CardAttempts: number("attempts"), IdempotencyKey: text("key"),
	}
	if rapid.Bool().Draw(t, "has metadata") {
		d.Metadata = map[string]string{text("name"): text("value")}
	}
	if rapid.Bool().Draw(t, "has prices") {
		d.Prices = []payment.Range{{From: 1, To: number("to"), Terms: payment.Terms{
			BasisPoints: 99, Fixed: 10, Minimum: 1, Maximum: 900, Days: number("days"), Business: rapid.Bool().Draw(t, "business"),
			PerInstallment: rapid.Bool().Draw(t, "per"), RefundsFee: rapid.Bool().Draw(t, "refunds"),
		}}}
	}
	return d
}

// TestDetailsAreReadAsWritten: the column of a pay-in's details loses nothing.
func TestDetailsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawDetails(t)
		var got payment.PayinDetails
		if err := (detailsDest{&got}).Scan(detailsText(&want)); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v was read as %+v", want, got)
		}
	})
}

// Each member of the details is drawn above, so that one that is forgotten is found.
func TestDetailsHaveNoOtherMembers(t *testing.T) {
	t.Parallel()
	for typ, want := range map[reflect.Type]int{
		reflect.TypeFor[payment.PayinDetails](): 12, reflect.TypeFor[payment.PIXDetail](): 3, reflect.TypeFor[payment.BoletoDetail](): 5,
		reflect.TypeFor[payment.CardDetail](): 4, reflect.TypeFor[payment.Range](): 3, reflect.TypeFor[payment.Terms](): 8,
	} {
		if typ.NumField() != want {
			t.Errorf("%v has %d members; draw the new ones in drawDetails", typ, typ.NumField())
		}
	}
}
