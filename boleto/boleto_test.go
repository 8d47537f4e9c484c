package boleto_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/boleto"
)

func day(s string) time.Time {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		panic(err)
	}
	return t
}

// Published bills, and bills whose digits two npm packages accept
// (@brazilian-utils/brazilian-utils 2.4.0, @mrmgomes/boleto-utils 1.3.3).
var published = []struct {
	source, line, barcode string
	amount                int64
	around, due           string
}{
	{"docs.pluggy.ai", "00190.50095 40144.816069 06809.350314 3 37370000000100", "00193373700000001000500940144816060680935031", 100, "2008-01-01", "2007-12-31"},
	{"published test suites", "21290.00119 21100.012109 04475.617405 9 75870000002000", "21299758700000020000001121100012100447561740", 2000, "2018-01-01", "2018-07-16"},
	{"README of boleto-utils", "23793.38128 60007.827136 95000.063305 9 75520000370000", "23799755200003700003381260007827139500006330", 370000, "2018-01-01", "2018-06-11"},
	{"Itaú manual, first epoch", "34191.10121 34567.880058 71234.570001 6 16670000012345", "34196166700000123451101234567880057123457000", 12345, "2005-01-01", "2002-05-01"},
	{"Itaú manual, second epoch", "34191.10121 34567.880058 71234.570001 6 16670000012345", "34196166700000123451101234567880057123457000", 12345, "2026-11-21", "2026-12-21"},
	{"accepted by both packages", "00190.00009 01234.567004 00000.010173 1 16460000012345", "00191164600000123450000001234567000000001017", 12345, "2026-11-21", "2026-11-30"},
	{"first day of the second epoch", "34191.09123 34567.812341 56712.300005 7 10000000000001", "34197100000000000011091234567812345671230000", 1, "2026-11-21", "2025-02-22"},
	{"accepted by both packages", "03399.12347 56712.345679 89012.010107 4 16770000150000", "03394167700001500009123456712345678901201010", 150000, "2026-11-21", "2026-12-31"},
}

func TestPublishedBills(t *testing.T) {
	for _, tt := range published {
		bill, barcode, err := boleto.ParseLine(tt.line)
		if err != nil || barcode != tt.barcode {
			t.Errorf("%s: line gives %s, %v", tt.source, barcode, err)
			continue
		}
		if bill.Amount != tt.amount {
			t.Errorf("%s: amount %d, want %d", tt.source, bill.Amount, tt.amount)
		}
		due, err := boleto.Due(bill.Factor, day(tt.around))
		if err != nil || !due.Equal(day(tt.due)) {
			t.Errorf("%s: due %s, %v; want %s", tt.source, due.Format(time.DateOnly), err, tt.due)
		}
		again, err := bill.Barcode()
		if err != nil || again != tt.barcode {
			t.Errorf("%s: written again: %s, %v", tt.source, again, err)
		}
		line, err := boleto.Line(barcode)
		if err != nil || boleto.FormatLine(line) != tt.line {
			t.Errorf("%s: line written again: %s, %v", tt.source, boleto.FormatLine(line), err)
		}
	}
}

func TestInvalidBills(t *testing.T) {
	good := "23793381286000782713695000063305975520000370000"
	for _, tt := range []struct {
		name, line string
		want       error
	}{
		{"mis-spaced copy found in public code", "23793.38128 60000.782713 95000.063305 9 75520000370000", boleto.ErrCheckDigit},
		{"invented line found in dozens of repositories", "34191.79001 01043.510047 91020.150008 2 91070000026000", boleto.ErrCheckDigit},
		{"empty", "", boleto.ErrLength},
		{"one short", good[:46], boleto.ErrLength},
		{"one long", good + "0", boleto.ErrLength},
		{"many", strings.Repeat(good, 3), boleto.ErrLength},
		{"letter", "x" + good[1:], boleto.ErrDigit},
		{"hyphen", good[:9] + "-" + good[9:], boleto.ErrDigit},
		{"full-width digits", "２" + good[1:], boleto.ErrDigit},
		{"collection slip", "836200000005667800481000180975657313001589636081", boleto.ErrCollection},
	} {
		if _, _, err := boleto.ParseLine(tt.line); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	code := "23799755200003700003381260007827139500006330"
	for _, tt := range []struct {
		name, barcode string
		want          error
	}{
		{"short", code[1:], boleto.ErrLength},
		{"letter", "A" + code[1:], boleto.ErrDigit},
		{"check digit", code[:4] + "1" + code[5:], boleto.ErrCheckDigit},
		{"currency", code[:3] + "8" + code[4:], boleto.ErrCurrency},
		{"collection slip", "8" + code[1:], boleto.ErrCollection},
	} {
		if _, err := boleto.ParseBarcode(tt.barcode); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if _, err := boleto.Line(tt.barcode); !errors.Is(err, tt.want) {
			t.Errorf("line of %s: %v, want %v", tt.name, err, tt.want)
		}
	}
	free := strings.Repeat("1", 25)
	for name, b := range map[string]boleto.Bill{
		"bank":       {Bank: "12", FreeField: free},
		"no bank":    {Bank: "000", FreeField: free},
		"8xx":        {Bank: "899", FreeField: free},
		"negative":   {Bank: "001", Amount: -1, FreeField: free},
		"amount":     {Bank: "001", Amount: boleto.AmountMax + 1, FreeField: free},
		"factor":     {Bank: "001", Factor: 999, FreeField: free},
		"far factor": {Bank: "001", Factor: 10000, FreeField: free},
		"free field": {Bank: "001", FreeField: free[1:]},
		"letters":    {Bank: "001", FreeField: free[1:] + "x"},
	} {
		if _, err := b.Barcode(); !errors.Is(err, boleto.ErrField) {
			t.Errorf("%s: %v, want ErrField", name, err)
		}
	}
}

// The general check digit is never 0: 0, 10 and 11 become 1 (FEBRABAN, "Layout padrão
// de código de barras"). Computed independently of the package's own sum.
func TestGeneralDigitIsNeverZero(t *testing.T) {
	t.Parallel()
	ones := 0
	for free := range 200 {
		barcode, err := boleto.Bill{Bank: "001", Amount: 12345, FreeField: fmt.Sprintf("%025d", free)}.Barcode()
		if err != nil {
			t.Fatal(err)
		}
		rest := barcode[:4] + barcode[5:]
		sum := 0
		for i := range len(rest) {
			sum += int(rest[len(rest)-1-i]-'0') * (2 + i%8)
		}
		want := byte('1')
		if sum%11 > 1 {
			want = byte('0' + 11 - sum%11)
		} else {
			ones++
		}
		if barcode[4] != want {
			t.Errorf("%s has the check digit %c, want %c", barcode, barcode[4], want)
		}
	}
	if ones == 0 {
		t.Error("no bill had a digit that becomes 1")
	}
}

func TestFactor(t *testing.T) {
	for _, tt := range []struct {
		date   string
		factor int
	}{
		{"2000-07-03", 1000}, {"2000-07-05", 1002}, {"2002-05-01", 1667}, {"2010-11-17", 4789}, {"2025-02-21", 9999},
		{"2025-02-22", 1000}, {"2026-11-21", 1637}, {"2049-10-13", 9999}, {"2049-10-14", 1000},
	} {
		got, err := boleto.Factor(day(tt.date))
		if err != nil || got != tt.factor {
			t.Errorf("factor of %s is %d, %v; want %d", tt.date, got, err, tt.factor)
		}
	}
	if _, err := boleto.Factor(day("2000-07-02")); !errors.Is(err, boleto.ErrDate) {
		t.Errorf("a day before the first factor: %v", err)
	}
	for _, bad := range []int{-1, 0, 999, 10000} {
		if _, err := boleto.Due(bad, day("2026-11-21")); !errors.Is(err, boleto.ErrDate) {
			t.Errorf("due of factor %d: %v", bad, err)
		}
	}
}

// A due date is read back from its factor around any day within 4,500 of it.
func TestDueIsNearest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		due := day("2000-07-03").AddDate(0, 0, rapid.IntRange(0, 40_000).Draw(t, "due"))
		around := due.AddDate(0, 0, rapid.IntRange(-4_499, 4_499).Draw(t, "around"))
		factor, err := boleto.Factor(due)
		if err != nil {
			t.Fatal(err)
		}
		got, err := boleto.Due(factor, around)
		if err != nil || !got.Equal(due) {
			t.Fatalf("factor %d of %s around %s is read as %s, %v", factor, due, around, got, err)
		}
	})
}

func anyBill(t *rapid.T) boleto.Bill {
	return boleto.Bill{
		Bank:   rapid.StringMatching(`[0-79][0-9]{2}`).Filter(func(s string) bool { return s != "000" }).Draw(t, "bank"),
		Amount: rapid.Int64Range(0, boleto.AmountMax).Draw(t, "amount"),
		Factor: rapid.OneOf(rapid.Just(0), rapid.IntRange(1000, 9999)).Draw(t, "factor"), FreeField: rapid.StringMatching(`[0-9]{25}`).Draw(t, "free"),
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bill := anyBill(t)
		barcode, err := bill.Barcode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := boleto.ParseBarcode(barcode); err != nil || got != bill {
			t.Fatalf("%+v became %+v, %v", bill, got, err)
		}
		line, err := boleto.Line(barcode)
		if err != nil {
			t.Fatal(err)
		}
		for _, typed := range []string{line, boleto.FormatLine(line)} {
			if got, code, err := boleto.ParseLine(typed); err != nil || got != bill || code != barcode {
				t.Fatalf("%+v became %+v, %s, %v", bill, got, code, err)
			}
		}
	})
}

// One mistyped digit in the first three fields is always found: modulo 10 detects
// every change of one digit. In the rest, the general digit finds all except
// those that modulo 11 maps to 1, so there only most must be found.
func TestOneMistypedDigitIsFound(t *testing.T) {
	tried, missed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		barcode, err := anyBill(t).Barcode()
		if err != nil {
			t.Fatal(err)
		}
		line, err := boleto.Line(barcode)
		if err != nil {
			t.Fatal(err)
		}
		at := rapid.IntRange(0, boleto.LineLength-1).Draw(t, "at")
		other := (line[at]-'0'+byte(rapid.IntRange(1, 9).Draw(t, "by")))%10 + '0'
		_, _, err = boleto.ParseLine(line[:at] + string(other) + line[at+1:])
		if tried++; err == nil {
			missed++
			if at < 32 {
				t.Fatalf("digit %d of %s as %c was not found", at+1, line, other)
			}
		}
	})
	if missed*5 > tried {
		t.Errorf("%d of %d mistyped digits were not found", missed, tried)
	}
}

func BenchmarkBarcodeAndLine(b *testing.B) {
	bill := boleto.Bill{Bank: "001", Amount: 12345, Factor: 1646, FreeField: "0000001234567000000001017"}
	b.ReportAllocs()
	for b.Loop() {
		barcode, err := bill.Barcode()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := boleto.Line(barcode); err != nil {
			b.Fatal(err)
		}
	}
}
