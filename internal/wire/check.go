package wire

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/weburl"
	"github.com/porteira/porteira/taxid"
)

// Limits shared by several requests, in characters.
const (
	referenceMax = 128
	textMax      = 255
	urlMax       = 2048
)

// Rules are the inputs of validation besides the request.
type Rules struct {
	// ChecksDocuments: the processor requires valid check digits.
	ChecksDocuments bool
	// AllowHTTP allows http in webhookUrl and returnUrl.
	AllowHTTP bool
	// WebhookPorts are those that webhookUrl and an endpoint's url may name; nil allows any.
	WebhookPorts []uint16
	// Methods are enabled for the merchant; nil enables all.
	Methods []payment.Method
	// ReturnHosts are the hosts that returnUrl may have.
	ReturnHosts []string
	// WebhookHosts, if not nil, are the only hosts that webhookUrl may have.
	WebhookHosts []string
	// Today is the day in São Paulo, YYYY-MM-DD.
	Today string
}

// requireText is require for a text, which must have a visible character.
func (e *Errors) requireText(p Path, f Field[string]) bool {
	if f.Set && !isVisible(f.V) {
		e.Add(p, problem.CodeRequired, "is required: must have a visible character")
		return false
	}
	return e.require(p, f.Set)
}

func (e *Errors) require(p Path, set bool) bool {
	if !set {
		e.Add(p, problem.CodeRequired, "is required")
	}
	return set
}

// text checks a string of at most max characters. It must not contain a card number,
// which must never reach the gateway. text reports whether further checks of the value
// make sense.
func (e *Errors) text(p Path, value string, max int) bool {
	if !e.plainText(p, value, max) {
		return false
	}
	if ContainsCardNumber(value) {
		e.Add(p, problem.CodeNotAllowed, CardDetail)
		return false
	}
	return true
}

// shown checks a text that people read to know a person, an item, an address or a file. It must
// have a visible character, and none that makes it read in another order than it is sent.
func (e *Errors) shown(p Path, value string, max int) {
	switch {
	case !e.text(p, value, max):
	case !isVisible(value):
		e.Add(p, problem.CodeTooShort, "must have a visible character")
	case strings.ContainsFunc(value, isOverride):
		e.Add(p, problem.CodeInvalidFormat, "must not contain characters that change the direction of text, U+202A to U+202E and U+2066 to U+2069")
	}
}

// requireShown is shown for a required text.
func (e *Errors) requireShown(p Path, f Field[string], max int) {
	if e.requireText(p, f) {
		e.shown(p, f.V, max)
	}
}

// plainText is text without the check for card numbers.
func (e *Errors) plainText(p Path, value string, max int) bool {
	switch {
	case value == "":
		e.Add(p, problem.CodeTooShort, "must not be empty")
	case len(value) > max && utf8.RuneCountInString(value) > max:
		e.Add(p, problem.CodeTooLong, "must have at most "+strconv.Itoa(max)+" characters")
	case hasControl(value):
		e.Add(p, problem.CodeInvalidFormat, "must not contain control characters")
	default:
		return true
	}
	return false
}

func (e *Errors) number(p Path, value, low, high int64) {
	if value < low || value > high {
		e.Add(p, problem.CodeOutOfRange, "must be between "+strconv.FormatInt(low, 10)+" and "+strconv.FormatInt(high, 10))
	}
}

// oneOf checks a string that must be in a list.
func (e *Errors) oneOf(p Path, f Field[string], allowed []string) {
	if e.requireText(p, f) && !slices.Contains(allowed, f.V) {
		e.Add(p, problem.CodeNotAllowed, "must be one of "+strings.Join(allowed, ", "))
	}
}

// amount checks the amount of an order, in cents.
func (e *Errors) amount(f Field[int64], high money.Cents) {
	if p := At("", "amount"); e.require(p, f.Set) {
		e.number(p, f.V, 1, int64(high))
	}
}

func (e *Errors) reference(f Field[string]) {
	if p := At("", "referenceId"); e.requireText(p, f) {
		e.text(p, f.V, referenceMax)
	}
}

// ValidReference reports whether s can be a referenceId of a stored order. One that looks
// like a card number is refused in new orders only.
func ValidReference(s string) bool {
	var errs Errors
	return errs.plainText(At("", "referenceId"), s, referenceMax)
}

// document checks the format of a required CPF or CNPJ, and its check digits if the
// processor requires that.
func (e *Errors) document(p Path, f Field[string], checkDigits bool) {
	value := f.V
	if !e.requireText(p, f) || !e.text(p, value, textMax) {
		return
	}
	if _, err := taxid.CheckForm(value); err != nil {
		e.Add(p, problem.CodeInvalidFormat,
			"must be a CPF (11 digits) or a CNPJ (12 digits or capital letters, then 2 digits), without punctuation")
		return
	}
	if !checkDigits {
		return
	}
	if _, err := taxid.Parse(value); err != nil {
		e.Add(p, problem.CodeInvalidFormat, "is not a valid CPF or CNPJ: the check digits are wrong")
	}
}

// url checks an absolute URL, and returns a valid one as it is sent.
func (e *Errors) url(p Path, value string, allowHTTP bool) (u *url.URL, ok bool) {
	if !e.text(p, value, urlMax) {
		return nil, false
	}
	if ContainsCardNumber(percentDecoded(value)) {
		e.Add(p, problem.CodeNotAllowed, CardDetail)
		return nil, false
	}
	u, err := weburl.Parse(value)
	switch {
	case errors.Is(err, weburl.ErrHost):
		e.Add(p, problem.CodeInvalidFormat, "must have a host that can be looked up: an IP address, or a name of letters, digits and hyphens")
		return nil, false
	case err != nil:
		e.Add(p, problem.CodeInvalidFormat, "must be an absolute URL with a host, without spaces or invisible characters")
		return nil, false
	}
	switch {
	case u.Scheme == "https", u.Scheme == "http" && allowHTTP:
	case allowHTTP:
		e.Add(p, problem.CodeInvalidFormat, "must be an https or http URL")
		return nil, false
	default:
		e.Add(p, problem.CodeInvalidFormat, "must be an https URL")
		return nil, false
	}
	if u.User != nil {
		e.Add(p, problem.CodeNotAllowed, "must not contain a user name or password")
		return nil, false
	}
	return u, true
}

// percentDecoded is a URL with the characters that its escapes stand for. It leaves an invalid
// escape as it is: net/url would decode nothing then.
func percentDecoded(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if b, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				c = byte(b)
				i += 2
			}
		}
		decoded = append(decoded, c)
	}
	return string(decoded)
}

// receiver checks the URL of a receiver of events, and returns its host in lower case. A URL that
// the sender would refuse must not be accepted: its owner would never get an event.
func (e *Errors) receiver(p Path, value string, rules Rules) (host string, ok bool) {
	u, ok := e.url(p, value, rules.AllowHTTP)
	if !ok {
		return "", false
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); rules.WebhookPorts != nil && err == nil && !slices.Contains(rules.WebhookPorts, uint16(port)) {
		e.Add(p, problem.CodeNotAllowed, "must have no port, or one of these: "+strings.Trim(fmt.Sprint(rules.WebhookPorts), "[]"))
		return "", false
	}
	return u.Hostname(), true
}

func (e *Errors) webhookURL(f Field[string], rules Rules) {
	if !f.Set {
		return
	}
	p := At("", "webhookUrl")
	if host, ok := e.receiver(p, f.V, rules); ok && rules.WebhookHosts != nil && !slices.Contains(rules.WebhookHosts, host) {
		e.Add(p, problem.CodeNotAllowed, "must be on a host that the merchant has registered, as the order has no credentials")
	}
}

// invisible are the characters that no reader sees: format characters, and those that Unicode calls
// default ignorable, such as the fillers of Hangul.
var invisible = []*unicode.RangeTable{unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector}

// isOverride reports whether a character changes the direction of the text behind it.
func isOverride(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// isVisible reports whether a text has a letter, digit, mark of punctuation or symbol that readers
// see. A Braille pattern without dots is a symbol too.
func isVisible(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		if r < utf8.RuneSelf {
			return r > ' ' && r != 0x7f
		}
		return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !unicode.In(r, invisible...) && r != '\u2800'
	})
}

func hasControl(s string) bool {
	for _, r := range s {
		if unicode.IsControl(r) {
			return true
		}
	}
	return false
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
