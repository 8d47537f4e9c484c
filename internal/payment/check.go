package payment

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/taxid"
)

// Limits of what several requests carry. Lengths are in characters.
const (
	referenceMax = 128
	nameMax      = 255
	urlMax       = 2048
)

// Errors collects the faulty members of one request.
type Errors struct {
	list []FieldError
	seen map[string]struct{}
}

// Add notes that a field is faulty. A field that is faulty already, or lies in
// one that is, is not named again: one cause is one error.
func (e *Errors) Add(p Path, code, detail string) {
	field := p.String()
	for i := 1; i <= len(field); i++ {
		if i < len(field) && field[i] != '.' && field[i] != '[' {
			continue
		}
		if _, faulty := e.seen[field[:i]]; faulty {
			return
		}
	}
	if e.seen == nil {
		e.seen = make(map[string]struct{})
	}
	e.seen[field] = struct{}{}
	e.list = append(e.list, FieldError{field, code, detail})
}

// List returns the faulty fields in the order of their discovery; nil if there
// are none.
func (e *Errors) List() []FieldError { return e.list }

// Path says where in a request a member stands. It is a value that becomes a
// text only when the member is faulty, so that a good request pays nothing.
type Path struct {
	parent string // customer.address; "" for the request itself
	index  int    // of the entry in parent, if it is an array, from 1
	name   string
}

// At is the path of a member of parent; parent "" is the request itself.
func At(parent, name string) Path { return Path{parent: parent, name: name} }

// AtEntry is the path of a member of the entry i (from 0) of the array parent;
// name "" is the entry itself.
func AtEntry(parent string, i int, name string) Path { return Path{parent, i + 1, name} }

// pathNameMax is how much of a name that a client made up is repeated, in
// characters.
const pathNameMax = 40

// String is the path as errors show it: customer.address.zipCode,
// items[2].title. A name that is no identifier is quoted and cut, and one that
// holds a card number is not repeated at all.
func (p Path) String() string {
	text := p.parent
	if p.index > 0 {
		text += "[" + strconv.Itoa(p.index-1) + "]"
	}
	switch {
	case p.name == "" && p.index > 0:
		return text
	case holdsCardNumber(p.name):
		return text + "[...]"
	case isIdentifier(p.name):
		if text != "" {
			text += "."
		}
		return text + p.name
	default:
		return text + "[" + strconv.QuoteToGraphic(cut(p.name, pathNameMax)) + "]"
	}
}

func isIdentifier(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') && (i == 0 || c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= pathNameMax
}

// cut returns the first n characters of s.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "..."
		}
		n--
	}
	return s
}

func (e *Errors) require(p Path, set bool) bool {
	if !set {
		e.Add(p, CodeRequired, "must be sent")
	}
	return set
}

// text checks a string that has at most max characters. It says whether the
// value is fit for further checks.
func (e *Errors) text(p Path, value string, max int) bool {
	switch {
	case value == "":
		e.Add(p, CodeTooShort, "must not be empty")
	case len(value) > max && utf8.RuneCountInString(value) > max:
		e.Add(p, CodeTooLong, "must have at most "+strconv.Itoa(max)+" characters")
	case hasControl(value):
		e.Add(p, CodeInvalidFormat, "must not hold control characters")
	default:
		return true
	}
	return false
}

// freeText checks a string that people write into; it must not hold the number
// of a card, as those never reach the gateway.
func (e *Errors) freeText(p Path, value string, max int) {
	if e.text(p, value, max) && holdsCardNumber(value) {
		e.Add(p, CodeNotAllowed, "must not hold a card number")
	}
}

func (e *Errors) number(p Path, value, low, high int64) {
	if value < low || value > high {
		e.Add(p, CodeOutOfRange, "must be from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
	}
}

// amount checks the amount of an order, in cents.
func (e *Errors) amount(f Field[int64], high money.Cents) {
	if p := At("", "amount"); e.require(p, f.Set) {
		e.number(p, f.V, 1, int64(high))
	}
}

func (e *Errors) reference(f Field[string]) {
	if p := At("", "referenceId"); e.require(p, f.Set) {
		e.text(p, f.V, referenceMax)
	}
}

// ValidReference says whether s can be a referenceId.
func ValidReference(s string) bool {
	var errs Errors
	return errs.text(At("", "referenceId"), s, referenceMax)
}

// document checks a CPF or CNPJ: its form, and its check digits if the
// processor cares.
func (e *Errors) document(p Path, value string, checkDigits bool) {
	if !e.text(p, value, nameMax) {
		return
	}
	if _, err := taxid.CheckForm(value); err != nil {
		e.Add(p, CodeInvalidFormat,
			"must be a CPF of 11 digits, or a CNPJ of 12 digits or capital letters and 2 digits, without punctuation")
		return
	}
	if !checkDigits {
		return
	}
	if _, err := taxid.Parse(value); err != nil {
		e.Add(p, CodeInvalidFormat, "is no CPF or CNPJ: the check digits are wrong")
	}
}

// url checks an absolute address. It returns its host, without port and in
// small letters, where it is good.
func (e *Errors) url(p Path, value string, allowHTTP bool) (host string, ok bool) {
	if !e.text(p, value, urlMax) {
		return "", false
	}
	u, err := url.Parse(value)
	if err != nil || !isPrintable(value) || u.Hostname() == "" || strings.Contains(u.Host, "%") || !validPort(u) {
		e.Add(p, CodeInvalidFormat, "must be an absolute URL, with a host and without spaces or characters that cannot be seen")
		return "", false
	}
	switch {
	case u.Scheme == "https", u.Scheme == "http" && allowHTTP:
	default:
		e.Add(p, CodeInvalidFormat, "must be an https URL")
		return "", false
	}
	if u.User != nil {
		e.Add(p, CodeNotAllowed, "must not hold a user name or password")
		return "", false
	}
	return strings.ToLower(u.Hostname()), true
}

// isPrintable says whether all of a URL can be seen, so that nobody is misled
// by it. What passes here must pass when it is delivered to.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || r == '\\' || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	})
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

func (e *Errors) webhookURL(f Field[string], rules Rules) {
	if f.Set {
		e.url(At("", "webhookUrl"), f.V, rules.AllowHTTP)
	}
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
