package wire

import (
	"unicode"
	"unicode/utf8"
)

// Lengths of the card numbers that are recognised, in digits.
const (
	cardShort = 15
	cardLong  = 16
)

// brand is a range of card numbers by their first digits.
type brand struct {
	length    int // digits in a number
	digits    int // digits that low and high have
	low, high int
}

// brands are the ranges in use in Brazil, from the npm package credit-card-type
// 10.3.0. Elo's many ranges beginning with 4, 50 and 65 are inside those of Visa,
// Aura and Discover.
var brands = []brand{
	{cardLong, 1, 4, 4},               // Visa, Elo
	{cardLong, 2, 50, 50},             // Aura, Elo
	{cardLong, 2, 51, 55},             // Mastercard
	{cardLong, 4, 2221, 2720},         // Mastercard
	{cardLong, 4, 3528, 3589},         // JCB
	{cardLong, 3, 300, 305},           // Diners
	{cardLong, 2, 36, 36},             // Diners
	{cardLong, 2, 38, 39},             // Diners
	{cardLong, 4, 6011, 6011},         // Discover
	{cardLong, 3, 644, 649},           // Discover
	{cardLong, 2, 65, 65},             // Discover, Elo
	{cardLong, 6, 627780, 627780},     // Elo
	{cardLong, 6, 636297, 636297},     // Elo
	{cardLong, 6, 636368, 636368},     // Elo
	{cardLong, 6, 606282, 606282},     // Hipercard
	{cardLong, 6, 637095, 637095},     // Hiper
	{cardLong, 8, 63737423, 63737423}, // Hiper
	{cardLong, 8, 63743358, 63743358}, // Hiper
	{cardLong, 6, 637568, 637568},     // Hiper
	{cardLong, 6, 637599, 637599},     // Hiper
	{cardLong, 6, 637609, 637609},     // Hiper
	{cardLong, 6, 637612, 637612},     // Hiper
	{cardShort, 2, 34, 34},            // American Express
	{cardShort, 2, 37, 37},            // American Express
	{cardShort, 4, 2131, 2131},        // JCB
	{cardShort, 4, 1800, 1800},        // JCB
}

// ContainsCardNumber reports whether a text seems to contain a card number: 15 or
// 16 digits of any script, of a brand's range, that pass the Luhn check, in one piece or
// in groups with any characters except letters between them. Numbers inside a group of a
// longer row of digits, such as a boleto's line, do not count, nor do the digits of a UUID or
// another hexadecimal id.
func ContainsCardNumber(s string) bool {
	if !hasDigits(s, cardShort) {
		return false // as most texts: this is the fast way
	}
	var row digitRow
	for i := 0; i < len(s); {
		if size := hexID(s, i); size > 0 {
			row = digitRow{}
			i += size
			continue
		}
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		digit, isDigit := digitOf(r)
		switch {
		case row.n == 0 && startsUUID(s[i:]):
			size = uuidLength
		case isDigit:
			row.push(digit)
		case row.endsCard():
			return true
		case !unicode.IsLetter(r):
			row.separated = true
		default:
			row = digitRow{}
		}
		i += size
	}
	return row.endsCard()
}

// hasDigits reports whether s may have that many digits. Any byte of a character beyond
// ASCII counts as one.
func hasDigits(s string, n int) bool {
	for i := 0; i < len(s) && n > 0; i++ {
		if s[i] >= '0' && s[i] <= '9' || s[i] >= utf8.RuneSelf {
			n--
		}
	}
	return n <= 0
}

// digitOf is the value of a decimal digit of any script. Unicode has them in rows of ten,
// which begin with zero.
func digitOf(r rune) (digit byte, ok bool) {
	if r < utf8.RuneSelf {
		return byte(r - '0'), r >= '0' && r <= '9'
	}
	for _, row := range unicode.Nd.R16 {
		if r >= rune(row.Lo) && r <= rune(row.Hi) {
			return byte((r - rune(row.Lo)) % 10), true
		}
	}
	for _, row := range unicode.Nd.R32 {
		if r >= rune(row.Lo) && r <= rune(row.Hi) {
			return byte((r - rune(row.Lo)) % 10), true
		}
	}
	return 0, false
}

// uuidLength is the length of a UUID in its usual form, in groups of 8, 4, 4, 4 and 12.
const uuidLength = 36

// startsUUID reports whether s starts with a UUID. One in 20,000 has digits that look like
// a card number, and many references are UUIDs.
func startsUUID(s string) bool {
	if len(s) < uuidLength || len(s) > uuidLength && isHex(s[uuidLength]) {
		return false
	}
	for i := range uuidLength {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen && s[i] != '-' || !hyphen && !isHex(s[i]) {
			return false
		}
	}
	return true
}

// hexID is the length of the hexadecimal id that begins at s[i], as of a document, a UUID
// without hyphens or a digest, else 0. It has a letter, and is a word of its own. One in
// 50,000 has digits that look like a card number, and many references are such ids.
func hexID(s string, i int) int {
	if i > 0 && isWord(s[i-1]) {
		return 0
	}
	end, letters := i, false
	for ; end < len(s) && isHex(s[end]); end++ {
		letters = letters || s[end] > '9'
	}
	switch end - i {
	case 24, 32, 40, 64:
		if letters && (end == len(s) || !isWord(s[end])) {
			return end - i
		}
	}
	return 0
}

// isWord reports whether c is a letter, a digit, or a part of a character beyond ASCII.
func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// digitRow is the last digits of a text, at most as many as a number has.
type digitRow struct {
	digits    [cardLong]byte
	opens     [cardLong]bool // whether the digit is the first of its group
	n         int            // digits in the row
	separated bool           // the last character is no digit
}

func (r *digitRow) push(digit byte) {
	opens := r.n == 0 || r.separated
	r.separated = false
	if r.n == cardLong {
		copy(r.digits[:], r.digits[1:])
		copy(r.opens[:], r.opens[1:])
		r.n--
	}
	r.digits[r.n], r.opens[r.n] = digit, opens
	r.n++
}

// endsCard reports whether the row ends with a card number that begins with a
// group.
func (r *digitRow) endsCard() bool {
	for _, length := range [...]int{cardShort, cardLong} {
		if !r.separated && r.n >= length && r.opens[r.n-length] && isCard(r.digits[r.n-length:r.n]) {
			return true
		}
	}
	return false
}

func isCard(digits []byte) bool {
	for _, b := range brands {
		if len(digits) == b.length && b.has(digits) {
			return luhn(digits)
		}
	}
	return false
}

func (b brand) has(digits []byte) bool {
	prefix := 0
	for _, d := range digits[:b.digits] {
		prefix = prefix*10 + int(d)
	}
	return prefix >= b.low && prefix <= b.high
}

// luhn reports whether digits pass the check of ISO/IEC 7812-1, annex B.
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		weighted := int(d)
		if (len(digits)-i)%2 == 0 {
			if weighted *= 2; weighted > 9 {
				weighted -= 9
			}
		}
		sum += weighted
	}
	return sum%10 == 0
}
