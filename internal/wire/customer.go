package wire

import (
	"slices"
	"strings"
	"unicode"

	"github.com/porteira/porteira/internal/problem"
)

const (
	emailMax           = 254    // characters (RFC 5321, section 4.5.3.1.3)
	phoneMin, phoneMax = 10, 13 // digits
)

// states are the federative units of Brazil (IBGE).
var states = []string{
	"AC", "AL", "AM", "AP", "BA", "CE", "DF", "ES", "GO", "MA", "MG", "MS", "MT", "PA",
	"PB", "PE", "PI", "PR", "RJ", "RN", "RO", "RR", "RS", "SC", "SE", "SP", "TO",
}

// CustomerRequest is the payer, in a request.
type CustomerRequest struct {
	Name     Field[string]
	Email    Field[string]
	Document Field[string]
	Phone    Field[string]
	Address  Field[AddressRequest]
}

// AddressRequest is the payer's address, in a request.
type AddressRequest struct {
	Street       Field[string]
	Number       Field[string]
	Complement   Field[string]
	Neighborhood Field[string]
	City         Field[string]
	State        Field[string]
	ZipCode      Field[string]
	Country      Field[string]
}

func readCustomer(customer value) (c CustomerRequest) {
	for v := range customer.children() {
		switch v.name() {
		case "name":
			c.Name = v.text()
		case "email":
			c.Email = v.text()
		case "document":
			c.Document = v.text()
		case "phone":
			c.Phone = v.text()
		case "address":
			if v.isObject() {
				c.Address = Some(readAddress(v))
			}
		default:
			v.failUnknown()
		}
	}
	return c
}

func readAddress(address value) (a AddressRequest) {
	for v := range address.children() {
		switch v.name() {
		case "street":
			a.Street = v.text()
		case "number":
			a.Number = v.text()
		case "complement":
			a.Complement = v.text()
		case "neighborhood":
			a.Neighborhood = v.text()
		case "city":
			a.City = v.text()
		case "state":
			a.State = v.text()
		case "zipCode":
			a.ZipCode = v.text()
		case "country":
			a.Country = v.text()
		default:
			v.failUnknown()
		}
	}
	return a
}

func (c *CustomerRequest) check(rules Rules, errs *Errors) {
	const parent = "customer"
	errs.requireShown(At(parent, "name"), c.Name, textMax)
	errs.document(At(parent, "document"), c.Document, rules.ChecksDocuments)
	if c.Email.Set {
		if p := At(parent, "email"); errs.text(p, c.Email.V, emailMax) && !looksLikeEmail(c.Email.V) {
			errs.Add(p, problem.CodeInvalidFormat, "must be an email address, without blanks around it")
		}
	}
	if c.Phone.Set {
		p := At(parent, "phone")
		digits := strings.TrimPrefix(c.Phone.V, "+")
		if errs.text(p, c.Phone.V, textMax) && (len(digits) < phoneMin || len(digits) > phoneMax || !allDigits(digits)) {
			errs.Add(p, problem.CodeInvalidFormat, "must be 10 to 13 digits without blanks or punctuation; a + before them is allowed")
		}
	}
	if c.Address.Set {
		c.Address.V.check(errs)
	}
}

func (a *AddressRequest) check(errs *Errors) {
	const parent = "customer.address"
	for _, f := range [...]struct {
		name  string
		field *Field[string]
	}{
		{"street", &a.Street}, {"number", &a.Number}, {"complement", &a.Complement},
		{"neighborhood", &a.Neighborhood}, {"city", &a.City},
	} {
		if f.field.Set {
			errs.shown(At(parent, f.name), f.field.V, textMax)
		}
	}
	if p := At(parent, "state"); a.State.Set && errs.text(p, a.State.V, textMax) && !isState(a.State.V) {
		errs.Add(p, problem.CodeInvalidFormat, "must be the two-letter code of a Brazilian state")
	}
	if p := At(parent, "zipCode"); a.ZipCode.Set && errs.text(p, a.ZipCode.V, textMax) && !isZipCode(a.ZipCode.V) {
		errs.Add(p, problem.CodeInvalidFormat, "must be 8 digits, with or without a hyphen after the fifth")
	}
	if p := At(parent, "country"); a.Country.Set && errs.text(p, a.Country.V, textMax) && !(len(a.Country.V) == 2 && strings.EqualFold(a.Country.V, "BR")) {
		errs.Add(p, problem.CodeNotAllowed, "must be BR")
	}
}

func isState(s string) bool { return len(s) == 2 && slices.Contains(states, strings.ToUpper(s)) }

func isZipCode(s string) bool {
	switch len(s) {
	case 8:
		return allDigits(s)
	case 9:
		return allDigits(s[:5]) && s[5] == '-' && allDigits(s[6:])
	default:
		return false
	}
}

// looksLikeEmail rejects strings that are certainly not an email address. Only a
// delivered message would prove more.
func looksLikeEmail(s string) bool {
	at := strings.LastIndexByte(s, '@')
	if at < 1 || strings.ContainsFunc(s, unicode.IsSpace) || strings.ContainsAny(s, `<>()[],;:\"`) {
		return false
	}
	local, domain := s[:at], s[at+1:]
	if strings.Contains(local, "@") || !strings.Contains(domain, ".") {
		return false
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}
