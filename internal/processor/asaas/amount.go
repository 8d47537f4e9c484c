package asaas

import (
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
)

// amount is money in cents. In JSON it is a decimal number of reais, which is read and
// written exactly.
type amount money.Cents

// errAmount means that a number is not an amount of money.
var errAmount = errors.New("asaas: not a decimal amount of at most 12 digits with whole cents")

// amountDigits is the most digits before the decimal point.
const amountDigits = 12

// parseAmount reads a JSON number without an exponent. Digits beyond the second decimal must
// be 0.
func parseAmount(text string) (amount, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, part, _ := strings.Cut(digits, ".")
	if whole == "" || len(whole) > amountDigits || strings.HasSuffix(digits, ".") || len(part) > amountDigits {
		return 0, errAmount
	}
	part += "00"
	if strings.Trim(part[2:], "0") != "" {
		return 0, errAmount
	}
	var cents int64
	for _, c := range whole + part[:2] {
		if c < '0' || c > '9' {
			return 0, errAmount
		}
		cents = cents*10 + int64(c-'0')
	}
	if negative {
		cents = -cents
	}
	return amount(cents), nil
}

// UnmarshalJSON reads a number.
func (a *amount) UnmarshalJSON(text []byte) (err error) {
	*a, err = parseAmount(string(text))
	return err
}

// MarshalJSON writes a number with two decimals.
func (a amount) MarshalJSON() ([]byte, error) { return []byte(money.Cents(a).Decimal()), nil }

func isAmount(c money.Cents) bool { return c >= 1 && c <= money.Max }

// saoPaulo is the zone of all of Asaas' dates and times. Brazil has had no daylight saving
// time since 2019.
var saoPaulo = time.FixedZone("America/Sao_Paulo", -3*60*60)

func dayOf(t time.Time) string { return t.In(saoPaulo).Format(time.DateOnly) }

// endOf is the last second of a day, in UTC; false if the text does not begin with a date.
func endOf(day string) (time.Time, bool) {
	if len(day) > len(time.DateOnly) {
		day = day[:len(time.DateOnly)]
	}
	t, err := time.ParseInLocation(time.DateOnly, day, saoPaulo)
	return t.AddDate(0, 0, 1).Add(-time.Second).UTC(), err == nil
}
