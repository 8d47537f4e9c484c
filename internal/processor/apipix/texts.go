package apipix

import (
	"regexp"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/money"
)

// Texts of a bank are stored only if they pass these checks. Without them a value could
// fail forever (a NUL, which PostgreSQL rejects), or be as long as the bank likes.

// isToken reports whether s has 1 to limit characters of visible ASCII.
func isToken(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isText reports whether s is UTF-8 without control characters.
func isText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if unicode.IsControl(c) {
			return false
		}
	}
	return true
}

// isWord reports whether s has 1 to limit letters and digits of ASCII: the form of txid,
// idEnvio, and the ids of Pix and returns.
func isWord(s string, limit int) bool {
	if s == "" || len(s) > limit {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Lengths of ids in the API Pix.
const (
	txIDMin     = 26 // of a charge; a static BR Code has fewer
	idMax       = 35 // of txid, idEnvio and the id of a return
	endToEndMax = 64 // the standard says 32; some banks have shown others
)

// isTxID reports whether s can be the id of a charge.
func isTxID(s string) bool { return len(s) >= txIDMin && isWord(s, idMax) }

// amountForm is that of amounts: reais with two decimals.
var amountForm = regexp.MustCompile(`^[0-9]{1,10}\.[0-9]{2}$`)

// formatAmount writes cents as the API Pix does.
func formatAmount(c money.Cents) string {
	cents := strconv.FormatInt(int64(c), 10)
	for len(cents) < 3 {
		cents = "0" + cents
	}
	return cents[:len(cents)-2] + "." + cents[len(cents)-2:]
}

// parseAmount reads an amount exactly. Zero is none.
func parseAmount(s string) (money.Cents, bool) {
	if !amountForm.MatchString(s) {
		return 0, false
	}
	cents, err := strconv.ParseInt(s[:len(s)-3]+s[len(s)-2:], 10, 64)
	c := money.Cents(cents)
	return c, err == nil && c >= 1 && c <= money.Max
}

// parseTime reads a time, which must be of this age of the world.
func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, s)
	return t.UTC(), err == nil && t.Year() >= 2000 && t.Year() < 2200
}

// timeForm writes times with milliseconds, as the examples of the standard do.
const timeForm = "2006-01-02T15:04:05.000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeForm) }

// cutText is the first limit characters of a text, without control characters.
func cutText(s string, limit int) string {
	var text []rune
	for _, c := range s {
		if len(text) == limit {
			break
		}
		if !unicode.IsControl(c) && c != utf8.RuneError {
			text = append(text, c)
		}
	}
	return string(text)
}
