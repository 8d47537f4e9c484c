package wire

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// brands are the ranges of card numbers by their length: in Brazil (Visa, Mastercard, Elo, Aura,
// Hipercard, Hiper, Diners, American Express, Discover, JCB) and abroad (Maestro, UnionPay), from
// the npm package credit-card-type 10.3.0.
var brands = map[int]*regexp.Regexp{
	15: regexp.MustCompile(`^(3[47]|2131|1800)`),
	16: regexp.MustCompile(`^(4|5[0-8]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|30[0-5]|3095|3[689]|352[89]|35[3-8]|6011|606282|6[237]|64[4-9]|65|81[0-7])`),
}

var (
	// hexIDs are UUIDs, and ids of 12, 16, 20 or 32 bytes: one in 20,000 has the digits of a card.
	hexIDs = regexp.MustCompile(`(?i)\b([\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{24}|[\da-f]{32}|[\da-f]{40}|[\da-f]{64})\b`)
	// digitRows are groups of digits with anything but letters between them.
	digitRows   = regexp.MustCompile(`\d+([^\d\pL]+\d+)*`)
	digitGroups = regexp.MustCompile(`\d+`)
	// cardShapes are the groups in which people write a card number.
	cardShapes = regexp.MustCompile(`^(\d{15,16}|\d{8} \d{8}|\d{4} \d{4} \d{4} \d{3,4}|\d{4} \d{6} \d{5})$`)
)

// CardDetail is what a text with a card number is refused with.
const CardDetail = "must not contain a card number, nor digits that look like one: 15 or 16 in the range of a brand"

// ContainsCardNumber reports whether a text seems to contain a card number: 15 or 16 digits of any
// script, of a brand's range, that pass the Luhn check, in one piece or in groups with any
// characters except letters between them. Beside other groups of digits its own must be those of
// a card, as 4 4 4 4. A longer number that is valid by its own check digits, as of an invoice or a
// bill, and a hexadecimal id do not count.
func ContainsCardNumber(s string) bool {
	if !mayContainCard(s) {
		return false
	}
	s = withoutPrintedKeys(hexIDs.ReplaceAllString(strings.Map(plain, norm.NFKC.String(s)), "x"))
	for _, row := range digitRows.FindAllString(s, -1) {
		groups := digitGroups.FindAllString(row, -1)
		at := make([]int, len(groups)+1)
		for i, g := range groups {
			at[i+1] = at[i] + len(g)
		}
		if groupsContainCard(strings.Join(groups, ""), at) {
			return true
		}
	}
	return false
}

// mayContainCard is the fast way: nearly all texts have no 15 digits without a letter between
// them. A byte of a character beyond ASCII counts as a digit.
func mayContainCard(s string) bool {
	n := 0
	for i := 0; i < len(s) && n < 15; i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9' || c >= utf8.RuneSelf:
			n++
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			n = 0
		}
	}
	return n >= 15
}

// plain makes a digit of any script one of ASCII, drops an invisible character, and makes an
// underscore, which is part of a word for regexp, a space.
func plain(r rune) rune {
	switch {
	case r == '_':
		return ' '
	case r < utf8.RuneSelf:
		return r
	case unicode.In(r, invisible...):
		return -1
	case !unicode.IsDigit(r):
		return r
	}
	zero := r // Unicode has digits in rows of ten that begin with zero
	for unicode.IsDigit(zero - 1) {
		zero--
	}
	return '0' + (r-zero)%10
}

// groupsContainCard searches a row of groups: group i is digits[at[i]:at[i+1]].
func groupsContainCard(digits string, at []int) bool {
	for i := range at {
		for j := i + 1; j < len(at) && at[j]-at[i] <= longMax; j++ {
			if isLongNumber(digits[at[i]:at[j]]) {
				return groupsContainCard(digits, at[:i+1]) || groupsContainCard(digits, at[j:])
			}
		}
	}
	for i := range at {
		for j := i + 1; j < len(at) && at[j]-at[i] <= 16; j++ {
			number, all := digits[at[i]:at[j]], i == 0 && j == len(at)-1
			if b := brands[len(number)]; b != nil && b.MatchString(number) && luhn(number) && (all || cardShapes.MatchString(grouped(digits, at[i:j+1]))) {
				return true
			}
		}
	}
	return false
}

func grouped(digits string, at []int) string {
	groups := make([]string, len(at)-1)
	for i := range groups {
		groups[i] = digits[at[i]:at[i+1]]
	}
	return strings.Join(groups, " ")
}

// luhn reports whether digits pass the check of ISO/IEC 7812-1, annex B.
func luhn(number string) bool {
	sum := 0
	for i := range len(number) {
		digit := int(number[i] - '0')
		if (len(number)-i)%2 == 0 {
			digit = digit*2%10 + digit/5
		}
		sum += digit
	}
	return sum%10 == 0
}
