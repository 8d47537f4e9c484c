package httpapi

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/taxid"
)

// endToEndIDForm is the format of ids of Pix to look for.
var endToEndIDForm = regexp.MustCompile(`^[0-9A-Za-z]{1,64}$`)

// emailMax is the longest e-mail address to look for, in bytes.
const emailMax = 255

// find parses the parameters by which pay-ins, payouts and refunds are found alike.
func (a *API) find(q *query, f *store.Filter) {
	f.Identified = q.form("externalId", externalIDForm, "must be 32 letters and digits")
	f.EndToEndID = q.form("endToEndId", endToEndIDForm, "must be letters and digits")
	f.MinAmount, f.MaxAmount = q.amount("minAmount"), q.amount("maxAmount")
	if f.MinAmount > 0 && f.MaxAmount > 0 && f.MaxAmount < f.MinAmount {
		q.fail("maxAmount", problem.CodeOutOfRange, "must not be less than minAmount")
	}
}

// findDocument parses a CPF or CNPJ, with or without punctuation.
func (a *API) findDocument(c *call, q *query, name string, field store.SearchField, f *store.Filter) {
	text, ok := q.get(name)
	if !ok {
		return
	}
	document := payment.NormalDocument(text)
	if _, err := taxid.CheckForm(document); err != nil {
		q.fail(name, problem.CodeInvalidFormat, "must be a CPF (11 digits) or a CNPJ (12 digits or letters, then 2 digits)")
		return
	}
	a.addTerms(c, f, field, document)
}

func (a *API) findEmail(c *call, q *query, f *store.Filter) {
	text, ok := q.get("customerEmail")
	switch {
	case !ok:
	case strings.ContainsRune(text, ' '):
		q.fail("customerEmail", problem.CodeInvalidFormat, "must be an e-mail address, and has a blank: encode a + in it as %2B")
	case len(text) > emailMax || !strings.Contains(text, "@"):
		q.fail("customerEmail", problem.CodeInvalidFormat, "must be an e-mail address")
	default:
		a.addTerms(c, f, store.SearchCustomerEmail, payment.NormalEmail(text))
	}
}

func (a *API) findKey(c *call, q *query, f *store.Filter) {
	text, ok := q.get("pixKey")
	if !ok {
		return
	}
	if number, ok := strings.CutPrefix(text, " "); ok {
		text = "+" + number // a phone number, whose + was not encoded
	}
	keys := payment.NormalPIXKeys(text)
	if len(keys) == 0 {
		q.fail("pixKey", problem.CodeInvalidFormat, "must be a Pix key of one of the types CPF, CNPJ, EMAIL, PHONE and EVP; encode a + in it as %2B")
		return
	}
	a.addTerms(c, f, store.SearchPIXKey, keys...)
}

// addTerms selects orders that have one of some values of a field.
func (a *API) addTerms(c *call, f *store.Filter, field store.SearchField, values ...string) {
	var terms []store.SearchTerm
	for _, value := range values {
		terms = append(terms, a.reader.SearchTerm(c.merchant.ID, field, value))
	}
	f.Terms = append(f.Terms, terms)
}

// form parses a text of a form.
func (q *query) form(name string, form *regexp.Regexp, detail string) string {
	text, ok := q.get(name)
	if ok && !form.MatchString(text) {
		q.fail(name, problem.CodeInvalidFormat, detail)
	}
	return text
}

// amount parses an amount in cents; 0 if it was not sent.
func (q *query) amount(name string) money.Cents {
	text, ok := q.get(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		q.fail(name, problem.CodeInvalidFormat, "must be an integer of cents: 1290 is R$ 12,90")
	case n < 1 || n > int64(money.Max):
		q.fail(name, problem.CodeOutOfRange, "must be between 1 and "+strconv.FormatInt(int64(money.Max), 10))
	}
	return money.Cents(max(n, 0))
}
