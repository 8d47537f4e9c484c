package sandbox

import (
	"regexp"
	"testing"
)

// Every test card is listed once, could be a number of its brand, and all
// brands and results are among them.
func TestTestCards(t *testing.T) {
	t.Parallel()
	forms := map[string]*regexp.Regexp{
		visa: regexp.MustCompile(`^4\d{15}$`), mastercard: regexp.MustCompile(`^5[1-5]\d{14}$`), elo: regexp.MustCompile(`^636297\d{10}$`),
		amex: regexp.MustCompile(`^3[47]\d{13}$`), hipercard: regexp.MustCompile(`^606282\d{10}$`),
	}
	numbers, brands, results := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range (*Processor)(nil).TestCards() {
		if form := forms[c.Brand]; form == nil || !form.MatchString(c.Number) || !luhn(c.Number) || numbers[c.Number] {
			t.Errorf("%+v has no number of its brand, or is listed twice", c)
		}
		numbers[c.Number], results[c.Result] = true, true
		if c.Result == "approved" && c.SplitResult == "" {
			brands[c.Brand] = true
		}
	}
	if len(brands) != len(forms) || len(results) != 15 {
		t.Errorf("%d brands and %d results: %v", len(brands), len(results), results)
	}
	if numbers["4539578763621486"] {
		t.Error("a number that nobody published is taken")
	}
}

func luhn(number string) bool {
	sum := 0
	for i := range len(number) {
		digit := int(number[i] - '0')
		if (len(number)-i)%2 == 0 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}
