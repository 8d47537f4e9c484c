package bankapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// start is when tests begin: some afternoon in Brazil.
var start = time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)

func terms(method bankapi.Method) bankapi.ChargeTerms {
	t := bankapi.ChargeTerms{
		Method: method, Amount: 12_345, ExpiresAt: start.Add(24 * time.Hour),
		MerchantName: "Padaria São João", MerchantCity: "São Paulo",
	}
	if method == bankapi.MethodBoleto {
		t.DueDate = "2026-11-23"
	}
	return t
}

// TestCodesAreValidAndWorthless: for any merchant's name, the code decodes, has
// the amount, and cannot be paid.
func TestCodesAreValidAndWorthless(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		terms := terms(bankapi.MethodPIX)
		terms.Amount = money.Cents(rapid.Int64Range(1, int64(money.Max)).Draw(rt, "amount"))
		terms.MerchantName = rapid.String().Draw(rt, "name")
		terms.MerchantCity = rapid.String().Draw(rt, "city")
		id := rapid.StringMatching("[0-9A-Za-z]{32}").Draw(rt, "id")
		got, err := bankapi.Instruct(id, terms)
		if err != nil {
			rt.Fatalf("not generated: %v: %+v", err, terms)
		}
		if got.PIX.TxID != id || !got.PIX.ExpiresAt.Equal(terms.ExpiresAt) {
			rt.Errorf("instructions: %+v", got.PIX)
		}
		code, err := brcode.Decode(got.PIX.QRCode)
		if err != nil {
			rt.Fatalf("decode %q: %v", got.PIX.QRCode, err)
		}
		if code.Kind() != brcode.KindDynamic || code.Amount() != int64(terms.Amount) {
			rt.Errorf("code: %+v", code)
		}
		host, path, _ := strings.Cut(code.URL(), "/")
		if !strings.HasSuffix(host, ".invalid") || !strings.HasSuffix(path, "/"+id) {
			rt.Errorf("address %q", code.URL())
		}
		if !strings.HasPrefix(code.MerchantName(), "SEM VALOR") || code.City() == "" {
			rt.Errorf("name %q, city %q", code.MerchantName(), code.City())
		}
	})
}

func TestBillsAreValidAndWorthless(t *testing.T) {
	t.Parallel()
	numbers := make(map[string]bool)
	for i := range 200 {
		terms := terms(bankapi.MethodBoleto)
		terms.Amount = money.Cents(1 + i*49_999_999)
		terms.DueDate = start.AddDate(0, 0, i*2).Format(time.DateOnly)
		got, err := bankapi.Instruct(fmt.Sprintf("%032d", i), terms)
		if err != nil {
			t.Fatalf("not generated: %v: %+v", err, terms)
		}
		bill, barcode, err := boleto.ParseLine(got.Boleto.DigitableLine)
		if err != nil || barcode != got.Boleto.Barcode {
			t.Fatalf("line %q: %v", got.Boleto.DigitableLine, err)
		}
		day, err := boleto.Due(bill.Factor, start)
		if err != nil || day.Format(time.DateOnly) != terms.DueDate {
			t.Errorf("due %v, want %s (%v)", day, terms.DueDate, err)
		}
		if bill.Bank != "999" || bill.Amount != int64(terms.Amount) || !strings.HasPrefix(bill.FreeField, got.Boleto.OurNumber) {
			t.Errorf("bill %+v, our number %s", bill, got.Boleto.OurNumber)
		}
		if numbers[got.Boleto.OurNumber] {
			t.Errorf("two bills with number %s", got.Boleto.OurNumber)
		}
		numbers[got.Boleto.OurNumber] = true
		code, err := brcode.Decode(got.Boleto.PIXQRCode)
		if err != nil || code.Amount() != bill.Amount {
			t.Errorf("Pix of the bill: %+v, %v", code, err)
		}
	}
}

func TestCardsHaveNoInstructions(t *testing.T) {
	t.Parallel()
	if got, err := bankapi.Instruct("abc", terms(bankapi.MethodCreditCard)); err != nil || got != (bankapi.Instructions{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func BenchmarkInstruct(b *testing.B) {
	for _, method := range []bankapi.Method{bankapi.MethodPIX, bankapi.MethodBoleto} {
		b.Run(string(method), func(b *testing.B) {
			terms := terms(method)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bankapi.Instruct("0000A1234567890123456789abcdefgh", terms); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
