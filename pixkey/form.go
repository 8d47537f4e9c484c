package pixkey

// The forms below are the regular expressions of the DICT API as code, because
// they run for every payout.

// Lengths in characters.
const (
	phoneMin       = 3 // after +: the DICT expression is \+[1-9][0-9]\d{1,14}
	phoneMax       = 16
	phoneLandline  = 10 // Brazilian, with area code
	phoneMobile    = 11
	domainLabelMax = 63
	uuidLen        = 36
)

// emailLocalOthers are the characters allowed before the @ besides letters and
// digits; % has been excluded since DICT API 1.7.2.
const emailLocalOthers = ".!#$&'*+/=?^_`{|}~-"

// isPhone reports whether s is + and a country code that does not begin with 0,
// or a Brazilian number without them.
func isPhone(s string) bool {
	if len(s) > 0 && s[0] == '+' {
		n := len(s) - 1
		return n >= phoneMin && n <= phoneMax && s[1] != '0' && allDigits(s[1:])
	}
	return (len(s) == phoneLandline || len(s) == phoneMobile) && allDigits(s)
}

// isUUID reports whether s is a UUID with hyphens, of any version: the example in
// the DICT API is not a random one (version 4) either.
func isUUID(s string) bool {
	if len(s) != uuidLen {
		return false
	}
	for i := range len(s) {
		switch c := lowerByte(s[i]); i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !isDigit(c) && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	return true
}

// checkEmail matches s, capital letters allowed, with the DICT expression
//
//	^[a-z0-9.!#$&'*+/=?^_`{|}~-]+@LABEL(\.LABEL)*$
//
// where LABEL has 1 to 63 letters, digits and hyphens, no hyphen at either end.
func checkEmail(s string) error {
	if len(s) > MaxEmail {
		return ErrEmailLength
	}
	at := 0
	for at < len(s) && isEmailLocal(s[at]) {
		at++
	}
	if at == 0 || at == len(s) || s[at] != '@' {
		return ErrEmail
	}
	start := at + 1
	for i := start; i <= len(s); i++ {
		if i < len(s) && s[i] != '.' {
			continue
		}
		if !isDomainLabel(s[start:i]) {
			return ErrEmail
		}
		start = i + 1
	}
	return nil
}

func isEmailLocal(c byte) bool {
	if isAlphanumeric(c) {
		return true
	}
	for i := range len(emailLocalOthers) {
		if c == emailLocalOthers[i] {
			return true
		}
	}
	return false
}

func isDomainLabel(s string) bool {
	if s == "" || len(s) > domainLabelMax || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if s[i] != '-' && !isAlphanumeric(s[i]) {
			return false
		}
	}
	return true
}

// lower turns ASCII letters into lower case. It works on bytes because Unicode
// has letters beyond ASCII whose lower case is an ASCII letter.
func lower(s string) string {
	for i := range len(s) {
		if lowerByte(s[i]) == s[i] {
			continue
		}
		b := []byte(s)
		for ; i < len(b); i++ {
			b[i] = lowerByte(b[i])
		}
		return string(b)
	}
	return s
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

func isAlphanumeric(c byte) bool {
	c = lowerByte(c)
	return isDigit(c) || c >= 'a' && c <= 'z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}
