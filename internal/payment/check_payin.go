package payment

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/porteira/porteira/internal/money"
)

// Limits of a pay-in. Lengths are in characters.
const (
	boletoAmountMax    money.Cents = 9_999_999_999 // a bar code has ten digits for it (FEBRABAN)
	emailMax                       = 254           // RFC 5321, section 4.5.3.1.3
	phoneMin, phoneMax             = 10, 13        // digits
	itemsMax                       = 500
	quantityMax                    = 1_000_000
	descriptionMax                 = 140
	metadataMax                    = 20 // pairs
	metadataKeyMax                 = 40
	metadataValueMax               = 500
	installmentsMax                = 12
)

// Lives of a pay-in.
const (
	pixLifeDefault  = 24 * time.Hour
	pixLifeMin      = time.Minute
	pixLifeMax      = 30 * 24 * time.Hour
	cardLife        = 24 * time.Hour
	boletoDueDays   = 3  // from today, where no due date is asked for
	boletoGraceDays = 30 // a bill can be paid so long after it was due
)

// saoPaulo is the time of days and nights in Brazil. The country gave up
// daylight saving time in 2019 (Decreto 9.772), so a fixed offset says it
// without needing the machine's time zone files.
var saoPaulo = time.FixedZone("America/Sao_Paulo", -3*60*60)

// states are the federative units of Brazil (IBGE).
var states = []string{
	"AC", "AL", "AM", "AP", "BA", "CE", "DF", "ES", "GO", "MA", "MG", "MS", "MT", "PA",
	"PB", "PE", "PI", "PR", "RJ", "RN", "RO", "RR", "RS", "SC", "SE", "SP", "TO",
}

// DayOf is the day in São Paulo at t, YYYY-MM-DD.
func DayOf(t time.Time) string { return t.In(saoPaulo).Format(time.DateOnly) }

// InSaoPaulo is t as the clocks of São Paulo show it.
func InSaoPaulo(t time.Time) time.Time { return t.In(saoPaulo) }

// Allows says whether the merchant may use a method.
func (r Rules) Allows(m Method) bool { return r.Methods == nil || slices.Contains(r.Methods, m) }

// Check adds every faulty member of r to errs. Whether the merchant may use
// the method is not its matter: see [Rules.Allows].
func (r *PayinRequest) Check(rules Rules, errs *Errors) {
	method := r.checkMethod(errs)
	limit := money.Max
	if method == Boleto {
		limit = boletoAmountMax
	}
	errs.amount(r.Amount, limit)
	errs.reference(r.ReferenceID)
	errs.webhookURL(r.WebhookURL, rules)
	if errs.require(At("", "customer"), r.Customer.Set) {
		r.Customer.V.check(rules, errs)
	}
	r.checkItems(errs)
	r.checkMethodFields(method, rules, errs)
	if r.Description.Set {
		errs.freeText(At("", "description"), r.Description.V, descriptionMax)
	}
	if r.Metadata.Set {
		checkMetadata(r.Metadata.V, errs)
	}
	if r.ReturnURL.Set {
		p := At("", "returnUrl")
		if host, ok := errs.url(p, r.ReturnURL.V, rules.AllowHTTP); ok && !slices.Contains(rules.ReturnHosts, host) {
			errs.Add(p, CodeNotAllowed, "its host must be registered with the merchant")
		}
	}
}

// checkMethod returns the method, or "" where it is faulty.
func (r *PayinRequest) checkMethod(errs *Errors) Method {
	p := At("", "paymentMethod")
	if !errs.require(p, r.Method.Set) {
		return ""
	}
	if m := Method(r.Method.V); slices.Contains(Methods, m) {
		return m
	}
	errs.Add(p, CodeNotAllowed, "must be PIX, CREDIT_CARD or BOLETO")
	return ""
}

// checkMethodFields checks what only one method has. Where the method itself
// is faulty nobody knows whether they belong.
func (r *PayinRequest) checkMethodFields(method Method, rules Rules, errs *Errors) {
	if r.ExpiresIn.Set && errs.belongs("expiresIn", method, PIX) {
		errs.number(At("", "expiresIn"), r.ExpiresIn.V, int64(pixLifeMin/time.Second), int64(pixLifeMax/time.Second))
	}
	if r.DueDate.Set && errs.belongs("dueDate", method, Boleto) {
		checkDueDate(r.DueDate.V, rules.Today, errs)
	}
	if r.Installments.Set && errs.belongs("installments", method, CreditCard) {
		errs.number(At("", "installments"), r.Installments.V, 1, installmentsMax)
	}
}

func (e *Errors) belongs(name string, method, owner Method) bool {
	if method == "" || method == owner {
		return true
	}
	e.Add(At("", name), CodeNotAllowed, "belongs to "+string(owner))
	return false
}

func checkDueDate(value, today string, errs *Errors) {
	p := At("", "dueDate")
	due, err := time.Parse(time.DateOnly, value)
	if err != nil {
		errs.Add(p, CodeInvalidFormat, "must be a date, YYYY-MM-DD")
		return
	}
	first, err := time.Parse(time.DateOnly, today)
	if err != nil || due.Before(first) || due.After(first.AddDate(1, 0, 0)) {
		errs.Add(p, CodeOutOfRange, "must be from today to 1 year ahead, in São Paulo")
	}
}

func (c *CustomerRequest) check(rules Rules, errs *Errors) {
	const parent = "customer"
	if p := At(parent, "name"); errs.require(p, c.Name.Set) {
		errs.text(p, c.Name.V, nameMax)
	}
	if p := At(parent, "document"); errs.require(p, c.Document.Set) {
		errs.document(p, c.Document.V, rules.ChecksDocuments)
	}
	if c.Email.Set {
		if p := At(parent, "email"); errs.text(p, c.Email.V, emailMax) && !looksLikeEmail(c.Email.V) {
			errs.Add(p, CodeInvalidFormat, "must be an e-mail address")
		}
	}
	if c.Phone.Set {
		p := At(parent, "phone")
		if errs.text(p, c.Phone.V, nameMax) &&
			(len(c.Phone.V) < phoneMin || len(c.Phone.V) > phoneMax || !allDigits(c.Phone.V)) {
			errs.Add(p, CodeInvalidFormat, "must be 10 to 13 digits")
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
			errs.text(At(parent, f.name), f.field.V, nameMax)
		}
	}
	if p := At(parent, "state"); a.State.Set && errs.text(p, a.State.V, nameMax) && !slices.Contains(states, a.State.V) {
		errs.Add(p, CodeInvalidFormat, "must be the two capital letters of a Brazilian state")
	}
	if p := At(parent, "zipCode"); a.ZipCode.Set && errs.text(p, a.ZipCode.V, nameMax) && !isZipCode(a.ZipCode.V) {
		errs.Add(p, CodeInvalidFormat, "must be 8 digits, with or without a hyphen after the fifth")
	}
	if p := At(parent, "country"); a.Country.Set && errs.text(p, a.Country.V, nameMax) && a.Country.V != "BR" {
		errs.Add(p, CodeNotAllowed, "must be BR")
	}
}

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

// looksLikeEmail tells an address from what is certainly none; only a letter
// that arrives proves more.
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

func (r *PayinRequest) checkItems(errs *Errors) {
	const parent = "items"
	if len(r.Items.V) > itemsMax {
		errs.Add(At("", parent), CodeTooLong, "must have at most "+strconv.Itoa(itemsMax)+" entries")
		return
	}
	for i := range r.Items.V {
		item := &r.Items.V[i]
		if p := AtEntry(parent, i, "title"); errs.require(p, item.Title.Set) {
			errs.freeText(p, item.Title.V, nameMax)
		}
		if p := AtEntry(parent, i, "quantity"); errs.require(p, item.Quantity.Set) {
			errs.number(p, item.Quantity.V, 1, quantityMax)
		}
		if p := AtEntry(parent, i, "unitPrice"); errs.require(p, item.UnitPrice.Set) {
			errs.number(p, item.UnitPrice.V, 0, int64(money.Max))
		}
		errs.require(AtEntry(parent, i, "tangible"), item.Tangible.Set)
	}
}

func checkMetadata(pairs map[string]string, errs *Errors) {
	const parent = "metadata"
	if len(pairs) > metadataMax {
		errs.Add(At("", parent), CodeTooLong, "must have at most "+strconv.Itoa(metadataMax)+" pairs")
		return
	}
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		p := At(parent, key)
		var inKey Errors
		if inKey.freeText(p, key, metadataKeyMax); len(inKey.list) > 0 {
			errs.Add(p, inKey.list[0].Code, "its name "+inKey.list[0].Detail)
			continue
		}
		errs.freeText(p, pairs[key], metadataValueMax)
	}
}

// Due is the due date of a bill, YYYY-MM-DD in São Paulo; "" for other methods.
func (r *PayinRequest) Due(now time.Time) string {
	switch {
	case Method(r.Method.V) != Boleto:
		return ""
	case r.DueDate.Set:
		return r.DueDate.V
	default:
		return now.In(saoPaulo).AddDate(0, 0, boletoDueDays).Format(time.DateOnly)
	}
}

// ExpiresAt is when a checked request, taken in at now, stops waiting for its
// payment. For a bill it is the end of the last day, in São Paulo, on which a
// bank may still take it.
func (r *PayinRequest) ExpiresAt(now time.Time) time.Time {
	switch Method(r.Method.V) {
	case Boleto:
		due, err := time.ParseInLocation(time.DateOnly, r.Due(now), saoPaulo)
		if err != nil {
			return now // no checked request comes here
		}
		return due.AddDate(0, 0, boletoGraceDays+1).UTC()
	case CreditCard:
		return now.Add(cardLife)
	default:
		if r.ExpiresIn.Set {
			return now.Add(time.Duration(r.ExpiresIn.V) * time.Second)
		}
		return now.Add(pixLifeDefault)
	}
}
