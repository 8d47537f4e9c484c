package checkout

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

var formCards = []processor.TestCard{
	{Number: "4111111111111111", Brand: "visa", Result: "approved"},
	{Number: "378282246310005", Brand: "amex", Result: "approved"},
	{Number: "5200828282828210", Brand: "mastercard", Result: "approved", SplitResult: "installments_not_allowed"},
}

func TestCardForm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC) // still November in São Paulo
	good := cardForm{number: "4111 1111 1111 1111", expiry: "11/26", code: "123", holder: "MARIA", installments: "3"}
	for _, c := range []struct {
		name    string
		change  func(*cardForm)
		invalid string // field=reason
	}{
		{"good", func(*cardForm) {}, ""},
		{"hyphens", func(f *cardForm) { f.number = "4111-1111-1111-1111" }, ""},
		{"year in full", func(f *cardForm) { f.expiry = "12/2030" }, ""},
		{"without slash", func(f *cardForm) { f.expiry = "1230" }, ""},
		{"empty", func(f *cardForm) { *f = cardForm{} }, "code=missing expiry=missing holder=missing installments=installments number=missing"},
		{"letters", func(f *cardForm) { f.number = "4111 1111 1111 111x" }, "number=number"},
		{"wrong check digit", func(f *cardForm) { f.number = "4111111111111112" }, "number=number"},
		{"too long", func(f *cardForm) { f.number = "41111111111111111" }, "number=number"},
		{"a number of a possible real card", func(f *cardForm) { f.number, f.code, f.expiry = "4539578763621486", "", "" }, "number=no_test_card"},
		{"a number of a possible real amex", func(f *cardForm) { f.number = "371449635398431" }, "number=no_test_card"},
		{"an amex one digit short", func(f *cardForm) { f.number = "37144963539843" }, "number=number"},
		{"last month", func(f *cardForm) { f.expiry = "10/26" }, "expiry=expired"},
		{"month 13", func(f *cardForm) { f.expiry = "13/30" }, "expiry=expiry"},
		{"too far in the future", func(f *cardForm) { f.expiry = "01/99" }, "expiry=expiry"},
		{"code of four digits", func(f *cardForm) { f.code = "1234" }, "code=code"},
		{"amex with four digits", func(f *cardForm) { f.number, f.code = "378282246310005", "1234" }, ""},
		{"amex with three digits", func(f *cardForm) { f.number = "378282246310005" }, "code=code"},
		{"more instalments than allowed", func(f *cardForm) { f.installments = "4" }, "installments=installments"},
		{"no instalment", func(f *cardForm) { f.installments = "0" }, "installments=installments"},
		{"long name", func(f *cardForm) { f.holder = strings.Repeat("x", 300) }, "holder=holder"},
	} {
		f := good
		c.change(&f)
		pay, invalid := f.check(formCards, now, 1000, 3)
		var got []string
		for _, field := range slices.Sorted(maps.Keys(invalid)) {
			got = append(got, field+"="+invalid[field])
		}
		if joined := strings.Join(got, " "); joined != c.invalid {
			t.Errorf("%s: %q, want %q", c.name, joined, c.invalid)
		}
		want := payment.CardDetail{Brand: "visa", Last4: "1111", Installments: 3}
		if strings.HasPrefix(f.number, "37") {
			want.Brand, want.Last4 = "amex", "0005"
		}
		if c.invalid == "" && (pay.Result != "approved" || pay.Card != want) {
			t.Errorf("%s: %+v", c.name, pay)
		}
	}
}

func TestSplitResult(t *testing.T) {
	t.Parallel()
	f := cardForm{number: "5200828282828210", expiry: "11/30", code: "123", holder: "M", installments: "1"}
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	if pay, _ := f.check(formCards, now, 1000, 3); pay.Result != "approved" {
		t.Errorf("one instalment: %+v", pay)
	}
	f.installments = "2"
	if pay, invalid := f.check(formCards, now, 1000, 3); pay.Result != "installments_not_allowed" || len(invalid) > 0 {
		t.Errorf("two instalments: %+v %v", pay, invalid)
	}
}

func TestInstallmentsMax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount, allowed, want int
	}{{1000, 0, 1}, {1000, 6, 6}, {5, 12, 5}, {1, 12, 1}} {
		if got := installmentsMax(money.Cents(c.amount), c.allowed); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
