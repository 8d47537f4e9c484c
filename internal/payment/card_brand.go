package payment

import "strings"

// Brands of cards that payers in Brazil know by name.
const (
	BrandVisa       = "visa"
	BrandMastercard = "mastercard"
	BrandElo        = "elo"
	BrandAmex       = "amex"
	BrandHipercard  = "hipercard"
)

// prefix is a range of card numbers by their first digits.
type prefix struct {
	brand     string
	digits    int // that low and high have
	low, high int
}

// prefixes are in the order in which they are tried: Elo's and Hipercard's lie
// within those of others. After the npm package credit-card-type 10.3.0.
var prefixes = []prefix{
	{BrandElo, 6, 401178, 401179}, {BrandElo, 6, 438935, 438935}, {BrandElo, 6, 457631, 457632}, {BrandElo, 6, 431274, 431274},
	{BrandElo, 6, 451416, 451416}, {BrandElo, 6, 457393, 457393}, {BrandElo, 6, 504175, 504175}, {BrandElo, 6, 506699, 506778},
	{BrandElo, 6, 509000, 509999}, {BrandElo, 6, 627780, 627780}, {BrandElo, 6, 636297, 636297}, {BrandElo, 6, 636368, 636368},
	{BrandElo, 6, 650031, 650033}, {BrandElo, 6, 650035, 650051}, {BrandElo, 6, 650405, 650439}, {BrandElo, 6, 650485, 650538},
	{BrandElo, 6, 650541, 650598}, {BrandElo, 6, 650700, 650718}, {BrandElo, 6, 650720, 650727}, {BrandElo, 6, 650901, 650978},
	{BrandElo, 6, 651652, 651679}, {BrandElo, 6, 655000, 655019}, {BrandElo, 6, 655021, 655058},
	{BrandHipercard, 6, 606282, 606282},
	{BrandAmex, 2, 34, 34}, {BrandAmex, 2, 37, 37},
	{BrandMastercard, 2, 51, 55}, {BrandMastercard, 4, 2221, 2720},
	{BrandVisa, 1, 4, 4},
}

// CardBrand recognises the brand of a card by the beginning of its number; ""
// while it is too short to be sure, or of no brand that is taken.
func CardBrand(number string) string {
	for _, p := range prefixes {
		shown := min(len(number), p.digits)
		start := 0
		for _, c := range number[:shown] {
			start = start*10 + int(c-'0')
		}
		low, high := p.low, p.high
		for range p.digits - shown {
			low, high = low/10, high/10
		}
		if start < low || start > high || shown == 0 {
			continue
		}
		if shown < p.digits {
			return "" // it may still become this one
		}
		return p.brand
	}
	return ""
}

// Lengths of card numbers and of the code on a card, in digits.
const (
	numberLength, numberLengthAmex = 16, 15
	codeLength, codeLengthAmex     = 3, 4
)

// CardNumberLength is how many digits a number of the brand has.
func CardNumberLength(brand string) int {
	if brand == BrandAmex {
		return numberLengthAmex
	}
	return numberLength
}

// CardCodeLength is how many digits the code on a card of the brand has.
func CardCodeLength(brand string) int {
	if brand == BrandAmex {
		return codeLengthAmex
	}
	return codeLength
}

// BareNumber takes the blanks and hyphens of a typed number away; ok is false
// where something is left that is no digit.
func BareNumber(typed string) (number string, ok bool) {
	number = strings.NewReplacer(" ", "", "-", "", "\u00a0", "").Replace(typed)
	return number, number != "" && allDigits(number)
}

// ValidNumber says whether a number of digits has the length of its brand and
// passes the check of ISO/IEC 7812-1, annex B.
func ValidNumber(number string) bool {
	if len(number) != CardNumberLength(CardBrand(number)) {
		return false
	}
	var digits [numberLength]byte
	for i := range len(number) {
		digits[i] = number[i] - '0'
	}
	return luhn(digits[:len(number)])
}
