package payment_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

func TestCardBrand(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"": "", "4": "", "41": "visa", "4011": "", "40117": "", "401178": "elo", "401177": "visa", "4111": "visa",
		"5": "", "51": "mastercard", "5067": "", "506699": "elo", "2221": "mastercard", "2720": "mastercard", "2721": "", "22": "",
		"34": "amex", "37": "amex", "36": "", "606282": "hipercard", "606283": "", "6362970000457013": "elo", "650031": "elo", "6011": "",
	} {
		if got := payment.CardBrand(number); got != want {
			t.Errorf("%q is %q, want %q", number, got, want)
		}
	}
}

// Every test card is a number that its brand could have, once, and all brands
// and all that can happen are among them.
func TestTestCards(t *testing.T) {
	t.Parallel()
	numbers, brands, results := map[string]bool{}, map[string]bool{}, map[payment.CardResult]bool{}
	for _, c := range payment.TestCards {
		if !payment.ValidNumber(c.Number) || numbers[c.Number] {
			t.Errorf("%s is no number, or there twice", c.Number)
		}
		numbers[c.Number], results[c.Result] = true, true
		if c.Result == payment.CardApproved {
			brands[c.Brand()] = true
		}
	}
	if len(brands) != 5 || len(results) != 15 {
		t.Errorf("%d brands and %d results: %v", len(brands), len(results), results)
	}
	if _, ok := payment.FindTestCard("4539578763621486"); ok {
		t.Error("a number that nobody published is taken")
	}
}

func TestCardForm(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC) // still November in São Paulo
	good := payment.CardForm{Number: "4111 1111 1111 1111", Expiry: "11/26", Code: "123", Holder: "MARIA", Installments: "3"}
	for _, c := range []struct {
		name   string
		change func(*payment.CardForm)
		faults string // field=reason
	}{
		{"good", func(*payment.CardForm) {}, ""},
		{"hyphens", func(f *payment.CardForm) { f.Number = "4111-1111-1111-1111" }, ""},
		{"year in full", func(f *payment.CardForm) { f.Expiry = "12/2030" }, ""},
		{"without slash", func(f *payment.CardForm) { f.Expiry = "1230" }, ""},
		{"nothing", func(f *payment.CardForm) { *f = payment.CardForm{} }, "code=missing expiry=missing holder=missing installments=installments number=missing"},
		{"letters", func(f *payment.CardForm) { f.Number = "4111 1111 1111 111x" }, "number=number"},
		{"wrong check digit", func(f *payment.CardForm) { f.Number = "4111111111111112" }, "number=number"},
		{"too long", func(f *payment.CardForm) { f.Number = "41111111111111111" }, "number=number"},
		{"a card that may be somebody's", func(f *payment.CardForm) { f.Number, f.Code, f.Expiry = "4539578763621486", "", "" }, "number=no_test_card"},
		{"last month", func(f *payment.CardForm) { f.Expiry = "10/26" }, "expiry=expired"},
		{"month 13", func(f *payment.CardForm) { f.Expiry = "13/30" }, "expiry=expiry"},
		{"far ahead", func(f *payment.CardForm) { f.Expiry = "01/99" }, "expiry=expiry"},
		{"four digits of code", func(f *payment.CardForm) { f.Code = "1234" }, "code=code"},
		{"amex has four", func(f *payment.CardForm) { f.Number, f.Code = "378282246310005", "1234" }, ""},
		{"amex with three", func(f *payment.CardForm) { f.Number = "378282246310005" }, "code=code"},
		{"more parts than allowed", func(f *payment.CardForm) { f.Installments = "4" }, "installments=installments"},
		{"no part", func(f *payment.CardForm) { f.Installments = "0" }, "installments=installments"},
		{"a long name", func(f *payment.CardForm) { f.Holder = strings.Repeat("x", 300) }, "holder=holder"},
	} {
		f := good
		c.change(&f)
		pay, faults := f.Check(now, 1000, 3)
		var got []string
		for _, field := range slices.Sorted(maps.Keys(faults)) {
			got = append(got, field+"="+faults[field])
		}
		if text := strings.Join(got, " "); text != c.faults {
			t.Errorf("%s: %q, want %q", c.name, text, c.faults)
		}
		number, _ := payment.BareNumber(f.Number)
		want := payment.CardDetail{Brand: payment.CardBrand(number), Last4: number[max(0, len(number)-4):], Installments: 3}
		if c.faults == "" && (pay.Result != payment.CardApproved || pay.Card != want) {
			t.Errorf("%s: %+v", c.name, pay)
		}
	}
}

func TestSingleCardsAreNotDivided(t *testing.T) {
	t.Parallel()
	f := payment.CardForm{Number: "5200828282828210", Expiry: "11/30", Code: "123", Holder: "M", Installments: "1"}
	now := time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC)
	if pay, _ := f.Check(now, 1000, 3); pay.Result != payment.CardApproved {
		t.Errorf("at once: %+v", pay)
	}
	f.Installments = "2"
	if pay, faults := f.Check(now, 1000, 3); pay.Result != payment.CardNoInstallments || len(faults) > 0 {
		t.Errorf("in two: %+v %v", pay, faults)
	}
}

func TestInstallmentsMax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount, allowed, want int
	}{{1000, 0, 1}, {1000, 6, 6}, {5, 12, 5}, {1, 12, 1}} {
		if got := payment.InstallmentsMax(money.Cents(c.amount), c.allowed); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
