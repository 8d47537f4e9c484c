package checkout

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// cardForm is what a payer typed into the sandbox's card form.
type cardForm struct {
	number       string
	expiry       string // MM/YY
	code         string
	holder       string
	installments string
}

// Reasons why a field is invalid; the key of a reason's text is "invalid." and
// the reason.
const (
	reasonMissing      = "missing"
	reasonNumber       = "number"       // not a card number
	reasonNotTestCard  = "no_test_card" // possibly a real card
	reasonExpiry       = "expiry"
	reasonExpired      = "expired"
	reasonCode         = "code"
	reasonHolder       = "holder"
	reasonInstallments = "installments"
)

// Limits of the form, in digits, bytes and years.
const (
	numberDigits, numberDigitsAmex = 16, 15
	codeDigits, codeDigitsAmex     = 3, 4
	lastDigits                     = 4
	numberBytesMax                 = 40
	holderBytesMax                 = 240
	yearsAheadMax                  = 20
	shortYear                      = 100
	century                        = 2000
)

// amex is the only brand whose numbers and security codes have other lengths.
const amex = "amex"

// check validates the form. invalid holds the reasons by field (number, expiry,
// code, holder, installments). The number is checked first: if it is not a test
// card, no other field is read.
func (f *cardForm) check(cards []processor.TestCard, now time.Time, amount money.Cents, allowed int) (pay processor.TestCardPayment, invalid map[string]string) {
	number, ok := bareNumber(f.number)
	at := slices.IndexFunc(cards, func(c processor.TestCard) bool { return c.Number == number })
	switch {
	case strings.TrimSpace(f.number) == "":
		invalid = map[string]string{"number": reasonMissing}
	case !ok || len(f.number) > numberBytesMax || !isCardNumber(number):
		return pay, map[string]string{"number": reasonNumber}
	case at < 0:
		return pay, map[string]string{"number": reasonNotTestCard}
	default:
		invalid = map[string]string{}
	}
	var card processor.TestCard
	if at >= 0 {
		card = cards[at]
		pay.Card.Brand, pay.Card.Last4 = card.Brand, number[len(number)-lastDigits:]
	}
	note := func(field, reason string) {
		if reason != "" {
			invalid[field] = reason
		}
	}
	note("expiry", checkExpiry(f.expiry, now))
	note("code", checkCode(f.code, card.Brand))
	note("holder", checkHolder(f.holder))
	n, err := strconv.Atoi(f.installments)
	if err != nil || n < 1 || n > installmentsMax(amount, allowed) {
		note("installments", reasonInstallments)
	}
	pay.Card.Installments = n
	if pay.Result = card.Result; n > 1 && card.SplitResult != "" {
		pay.Result = card.SplitResult
	}
	return pay, invalid
}

// bareNumber removes spaces and hyphens from a typed number; ok is false if
// anything but digits is left.
func bareNumber(typed string) (number string, ok bool) {
	number = strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(typed)
	return number, number != "" && allDigits(number)
}

func allDigits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// isCardNumber reports whether digits have the length of a card number and a
// valid check digit (ISO/IEC 7812-1, annex B).
func isCardNumber(digits string) bool {
	length := numberDigits
	if strings.HasPrefix(digits, "34") || strings.HasPrefix(digits, "37") { // American Express
		length = numberDigitsAmex
	}
	if len(digits) != length {
		return false
	}
	sum := 0
	for i := range length {
		digit := int(digits[i] - '0')
		if (length-i)%2 == 0 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

// checkCode returns the reason why a security code is invalid for a brand, or
// "". Without a brand any code is valid.
func checkCode(typed, brand string) string {
	code := strings.TrimSpace(typed)
	length := codeDigits
	if brand == amex {
		length = codeDigitsAmex
	}
	switch {
	case code == "":
		return reasonMissing
	case brand != "" && (len(code) != length || !allDigits(code)):
		return reasonCode
	default:
		return ""
	}
}

func checkHolder(typed string) string {
	switch holder := strings.TrimSpace(typed); {
	case holder == "":
		return reasonMissing
	case len(holder) > holderBytesMax:
		return reasonHolder
	default:
		return ""
	}
}

// checkExpiry returns the reason why MM/YY is invalid, or "". A card is valid
// until the end of its month in São Paulo.
func checkExpiry(typed string, now time.Time) string {
	typed = strings.ReplaceAll(strings.TrimSpace(typed), " ", "")
	if typed == "" {
		return reasonMissing
	}
	left, right, ok := strings.Cut(typed, "/")
	if !ok && len(typed) == 4 {
		left, right, ok = typed[:2], typed[2:], true
	}
	month, errMonth := strconv.Atoi(left)
	year, errYear := strconv.Atoi(right)
	if !ok || errMonth != nil || errYear != nil || month < 1 || month > 12 || len(left) > 2 || (len(right) != 2 && len(right) != 4) {
		return reasonExpiry
	}
	if year < shortYear {
		year += century
	}
	today := payment.InSaoPaulo(now)
	end := time.Date(year, time.Month(month)+1, 1, 0, 0, 0, 0, today.Location())
	if !end.After(today) {
		return reasonExpired
	}
	if year > today.Year()+yearsAheadMax {
		return reasonExpiry
	}
	return ""
}

// installmentsMax is the largest number of instalments of an amount: at most
// what the order allows, and at least one cent each. 0 allows one.
func installmentsMax(amount money.Cents, allowed int) int {
	return int(max(1, min(amount, money.Cents(allowed))))
}
