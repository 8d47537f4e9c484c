package wire

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/porteira/porteira/boleto"
)

var (
	// brands are the ranges of card numbers by their length: in Brazil (Visa, Mastercard, Elo, Aura,
	// Hipercard, Hiper, Diners, American Express, Discover, JCB) and abroad (Maestro, UnionPay), from
	// the npm package credit-card-type 10.3.0.
	brands = map[int]*regexp.Regexp{
		15: regexp.MustCompile(`^(3[47]|2131|1800)`),
		16: regexp.MustCompile(`^(4|5[0-8]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|30[0-5]|3095|3[689]|352[89]|35[3-8]|6011|606282|6[237]|64[4-9]|65|81[0-7])`),
	}
	// cardShapes are the groups in which people write a card number.
	cardShapes = regexp.MustCompile(`^(\d{15,16}|\d{8} \d{8}|\d{4} \d{4} \d{4} \d{3,4}|\d{4} \d{6} \d{5})$`)
	// hexIDs are UUIDs, and ids of 12, 16, 20 or 32 bytes: one in 20,000 has the digits of a card.
	hexIDs = regexp.MustCompile(`(?i)\b([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{24}|[\da-f]{32}|[\da-f]{40}|[\da-f]{64})\b`)
	// digitRows are groups of digits with anything but letters between them.
	digitRows = regexp.MustCompile(`\d+([^\d\pL]+\d+)*`)
	// fiscalKeys begin with state, year and month, as of an NF-e, or with city and kind, as of an NFS-e.
	fiscalKeys = regexp.MustCompile(`^([1-5]\d{3}(0[1-9]|1[0-2])\d{38}|[1-5]\d{6}[12]{2}\d{41})$`)
	// printedKeys are fiscal keys in groups of four; the CNPJ in them may have letters.
	printedKeys = regexp.MustCompile(`\b[\dA-Z]{4}([ .-][\dA-Z]{4}){10}\b`)
)

// otherNumbers check numbers of other kinds by their length: fiscal keys, lines of boletos, lines of
// bills of taxes and utilities.
var otherNumbers = map[int]func(number string) bool{44: isFiscalKey, 47: isLine, 48: isBill, 50: isFiscalKey}

// CardDetail is what a text with a card number is refused with.
const CardDetail = "must not contain a card number, nor digits that look like one: 15 or 16 in the range of a brand"

// ContainsCardNumber reports whether a text seems to contain a card number: 15 or 16 digits of any
// script, of a brand's range, that pass the Luhn check, in one piece or in groups with any
// characters except letters between them. Beside other groups of digits its own must be those of
// a card, as 4 4 4 4. A number of another kind that is valid by its own check digits and a
// hexadecimal id do not count.
func ContainsCardNumber(s string) bool {
	if !has15Digits(s) {
		return false
	}
	s = hexIDs.ReplaceAllString(strings.Map(plain, norm.NFKC.String(s)), "x")
	s = printedKeys.ReplaceAllStringFunc(s, func(key string) string {
		if modulo11(strings.NewReplacer(" ", "", ".", "", "-", "").Replace(key)) {
			return "x"
		}
		return key
	})
	return slices.ContainsFunc(digitRows.FindAllString(s, -1), func(row string) bool {
		return containsCard(strings.FieldsFunc(row, func(r rune) bool { return r < '0' || r > '9' }))
	})
}

// has15Digits is the fast way: nearly all texts have no 15 digits without a letter between them. A
// character beyond ASCII counts as a digit.
func has15Digits(s string) bool {
	n := 0
	return strings.ContainsFunc(s, func(r rune) bool {
		switch {
		case r >= '0' && r <= '9' || r >= utf8.RuneSelf:
			n++
		case r|0x20 >= 'a' && r|0x20 <= 'z':
			n = 0
		}
		return n == 15
	})
}

// plain makes a digit of any script one of ASCII, drops an invisible character, and makes an
// underscore, which is part of a word for regexp, a space.
func plain(r rune) rune {
	switch zero := r; {
	case r == '_':
		return ' '
	case r >= utf8.RuneSelf && unicode.In(r, invisible...):
		return -1
	case r >= utf8.RuneSelf && unicode.IsDigit(r):
		for unicode.IsDigit(zero - 1) { // Unicode has digits in rows of ten that begin with zero
			zero--
		}
		return '0' + (r-zero)%10
	}
	return r
}

// containsCard searches what other numbers leave of a row of groups.
func containsCard(row []string) bool {
	from, to := find(row, otherNumbers, func(check func(string) bool, groups []string) bool { return check(strings.Join(groups, "")) })
	if to > 0 {
		return containsCard(row[:from]) || containsCard(row[to:])
	}
	_, to = find(row, brands, func(brand *regexp.Regexp, groups []string) bool {
		number := strings.Join(groups, "")
		return brand.MatchString(number) && luhn(number) && (len(groups) == len(row) || cardShapes.MatchString(strings.Join(groups, " ")))
	})
	return to > 0
}

// find returns the first groups that are a number of a kind; kinds are by length, up to 50 digits.
func find[K any](row []string, kinds map[int]K, is func(kind K, groups []string) bool) (from, to int) {
	for from := range row {
		for to, n := from, 0; to < len(row) && n < 50; {
			n += len(row[to])
			to++
			if kind, ok := kinds[n]; ok && is(kind, row[from:to]) {
				return from, to
			}
		}
	}
	return 0, 0
}

func isFiscalKey(number string) bool { return fiscalKeys.MatchString(number) && modulo11(number) }

func isLine(number string) bool {
	_, _, err := boleto.ParseLine(number)
	return err == nil
}

// isBill reports whether each twelve digits of a line end in a check digit, all of one modulus.
func isBill(number string) bool {
	all := func(valid func(string) bool) bool {
		return valid(number[:12]) && valid(number[12:24]) && valid(number[24:36]) && valid(number[36:])
	}
	return number[0] == '8' && (all(luhn) || all(modulo11))
}

// luhn reports whether digits pass the check of ISO/IEC 7812-1, annex B.
func luhn(number string) bool {
	sum := 0
	for i, c := range number {
		product := int(c-'0') * (1 + (len(number)-1-i)%2)
		sum += product/10 + product%10
	}
	return sum%10 == 0
}

// modulo11 reports whether the last digit checks the others, with the weights 2 to 9 from the
// right. The value of a letter is its distance from '0'.
func modulo11(number string) bool {
	sum, last := 0, len(number)-1
	for i, c := range number[:last] {
		sum += int(c-'0') * (2 + (last-1-i)%8)
	}
	return int(number[last]-'0') == (11-sum%11)%11%10
}
