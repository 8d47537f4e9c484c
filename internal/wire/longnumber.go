package wire

import (
	"regexp"
	"strings"

	"github.com/porteira/porteira/boleto"
)

// longMax is the length of the longest number of another kind, in digits.
const longMax = 50

// accessKeys begin with state, year and month, as of an NF-e, or with city and kind, as of an
// NFS-e.
var accessKeys = regexp.MustCompile(`^([1-5]\d{3}(0[1-9]|1[0-2])\d{38}|[1-5]\d{6}[12]{2}\d{41})$`)

// printedKeys are keys of fiscal documents in groups of four. Since July 2026 the CNPJ in them may
// have letters.
var printedKeys = regexp.MustCompile(`\b[\dA-Z]{4}([ .-][\dA-Z]{4}){10}\b`)

// withoutPrintedKeys has a letter instead of each valid key in groups.
func withoutPrintedKeys(s string) string {
	return printedKeys.ReplaceAllStringFunc(s, func(key string) string {
		if modulo11(strings.NewReplacer(" ", "", ".", "", "-", "").Replace(key)) {
			return "x"
		}
		return key
	})
}

// isLongNumber reports whether a number of another kind is valid by its check digits: the key of
// a fiscal document (44 or 50 digits), or the line of a boleto (47) or of a bill of taxes or
// utilities (48).
func isLongNumber(number string) bool {
	switch len(number) {
	case 44, 50:
		return accessKeys.MatchString(number) && modulo11(number)
	case 47:
		_, _, err := boleto.ParseLine(number)
		return err == nil
	case 48:
		return number[0] == '8' && (everyTwelve(number, luhn) || everyTwelve(number, modulo11))
	}
	return false
}

func everyTwelve(number string, valid func(string) bool) bool {
	return len(number) == 0 || valid(number[:12]) && everyTwelve(number[12:], valid)
}

// modulo11 reports whether the last digit checks the others, with the weights 2 to 9 from the
// right. The value of a letter is its distance from '0'.
func modulo11(number string) bool {
	sum, last := 0, len(number)-1
	for i := range last {
		sum += int(number[i]-'0') * (2 + (last-1-i)%8)
	}
	check := 11 - sum%11
	if check > 9 {
		check = 0
	}
	return int(number[last]-'0') == check
}
