package boleto_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/boleto"
)

// FuzzParse reads any text as a bar code and as a line, as it is and with
// corrected check digits, without which hardly any text is one.
func FuzzParse(f *testing.F) {
	for _, tt := range published {
		f.Add(tt.line)
		f.Add(tt.barcode)
	}
	f.Add("836200000005667800481000180975657313001589636081")
	f.Add("34191.79001 01043.510047 91020.150008 2 91070000026000") // often copied, and wrong
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		parseBarcode(t, s)
		parseLine(t, s)
		if code, ok := sealed(s); ok {
			bill := parseBarcode(t, code)
			if line, err := boleto.Line(code); err != nil || parseLine(t, line) != bill || parseLine(t, boleto.FormatLine(line)) != bill {
				t.Fatalf("%s has the line %q, %v", code, line, err)
			}
		}
	})
}

// parseBarcode reads a bar code, and checks that its bill writes the same one.
func parseBarcode(t *testing.T, s string) boleto.Bill {
	t.Helper()
	bill, err := boleto.ParseBarcode(s)
	if err != nil {
		known(t, err)
		return bill
	}
	if again, ok := sealed(s); !ok || again != s {
		t.Fatalf("%q is taken; its digits should be %q", s, again)
	}
	again, err := bill.Barcode()
	writable := bill.Bank != "000" && (bill.Factor == 0 || bill.Factor >= 1000)
	if (err == nil) != writable || err == nil && again != s {
		t.Fatalf("%q is %+v, which is written as %q, %v", s, bill, again, err)
	}
	return bill
}

// parseLine reads a line, and checks that its bar code writes the same one.
func parseLine(t *testing.T, s string) boleto.Bill {
	t.Helper()
	bill, code, err := boleto.ParseLine(s)
	if err != nil {
		known(t, err)
		return bill
	}
	if parseBarcode(t, code) != bill {
		t.Fatalf("%q is %+v, and its bar code %s another bill", s, bill, code)
	}
	if written, err := boleto.Line(code); err != nil || written != strings.NewReplacer(".", "", " ", "").Replace(s) {
		t.Fatalf("%q is written again as %q, %v", s, written, err)
	}
	return bill
}

func known(t *testing.T, err error) {
	t.Helper()
	for _, kind := range []error{boleto.ErrLength, boleto.ErrDigit, boleto.ErrCheckDigit, boleto.ErrCollection, boleto.ErrCurrency} {
		if errors.Is(err, kind) {
			return
		}
	}
	t.Fatalf("%v is of no kind that is documented", err)
}

// sealed sets the check digit of 44 digits of a bill in reais, as FEBRABAN
// defines it: 0, 10 and 11 become 1.
func sealed(s string) (string, bool) {
	if len(s) != 44 || strings.Trim(s, "0123456789") != "" || s[0] == '8' || s[3] != '9' {
		return "", false
	}
	others := s[:4] + s[5:]
	sum := 0
	for i := range others {
		sum += int(others[len(others)-1-i]-'0') * (2 + i%8)
	}
	digit := 11 - sum%11
	if digit > 9 {
		digit = 1
	}
	return s[:4] + string(rune('0'+digit)) + s[5:], true
}

// FuzzBill writes bills: each that is not rejected is read back unchanged, and so
// are due dates around their own day.
func FuzzBill(f *testing.F) {
	for _, tt := range published {
		bill, _, err := boleto.ParseLine(tt.line)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bill.Bank, bill.Amount, bill.Factor, bill.FreeField, day(tt.due).Unix(), day(tt.around).Unix())
	}
	f.Add("800", int64(-1), 999, "", int64(0), int64(1<<40))
	f.Fuzz(func(t *testing.T, bank string, amount int64, factor int, free string, due, around int64) {
		bill := boleto.Bill{Bank: bank, Amount: amount, Factor: factor, FreeField: free}
		code, err := bill.Barcode()
		if err != nil && !errors.Is(err, boleto.ErrField) {
			t.Fatalf("%+v: %v", bill, err)
		}
		if err == nil && parseBarcode(t, code) != bill {
			t.Fatalf("%+v is written as %s", bill, code)
		}
		dueAgain(t, time.Unix(due%(1<<36), 0).UTC())
		day, err := boleto.Due(factor, time.Unix(around%(1<<36), 0))
		if err != nil {
			return
		}
		if again, err := boleto.Factor(day); err != nil || again != factor {
			t.Fatalf("factor %d is %s, whose factor is %d, %v", factor, day, again, err)
		}
	})
}

// dueAgain: the factor of a day means that day for any reference day within half
// an epoch.
func dueAgain(t *testing.T, due time.Time) {
	t.Helper()
	factor, err := boleto.Factor(due)
	if first := time.Date(2000, time.July, 3, 0, 0, 0, 0, time.UTC); err != nil {
		if !due.Before(first) {
			t.Fatalf("%s has no factor: %v", due, err)
		}
		return
	}
	for _, days := range []int{-4499, -3000, 0, 4499} {
		back, err := boleto.Due(factor, due.AddDate(0, 0, days))
		if err != nil || back.Format(time.DateOnly) != due.Format(time.DateOnly) {
			t.Fatalf("%s has factor %d, which %d days from it means %s, %v", due, factor, days, back, err)
		}
	}
}
