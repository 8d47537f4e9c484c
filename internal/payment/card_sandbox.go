package payment

import (
	"strconv"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
)

// CardResult is what a test card does in the sandbox: one of the constants, or
// the code of the failure that it ends in.
type CardResult string

// The results that are no failures at once.
const (
	CardApproved         CardResult = "approved"
	CardChallenge        CardResult = "challenge"         // asks the payer first (3-D Secure), then approves
	CardAnalysisApproved CardResult = "analysis_approved" // is looked at, then approves
	CardAnalysisRefused  CardResult = "analysis_refused"  // is looked at, then refuses for good
)

// Codes of failures of a card, as merchants see them. ABECS, Normativo 21, has
// the codes of issuers that stand behind them.
const (
	CardInsufficientFunds = "insufficient_funds"
	CardExpired           = "card_expired"
	CardInvalid           = "invalid_card"
	CardInvalidCode       = "invalid_cvv"
	CardDoNotHonor        = "do_not_honor"
	CardSuspectedFraud    = "suspected_fraud"
	CardLostOrStolen      = "lost_or_stolen"
	CardBlocked           = "card_blocked"
	CardLimitExceeded     = "limit_exceeded"
	CardNoInstallments    = "installments_not_allowed"
	CardIssuerUnavailable = "issuer_unavailable"
	CardProcessingError   = "processing_error"
	CardNotAuthenticated  = "authentication_failed"
	CardAnalysisNegative  = "analysis_refused"
)

// Limits of the card's form.
const (
	cardDigitsShown        = 4
	cardYearsAhead         = 20
	cardHolderLengthMax    = 60
	cardTypedLengthMax     = 40
	cardYearShort          = 100
	cardYearsOfThisCentury = 2000
)

// TestCard is a card number that a processor has published for tests. It
// belongs to nobody and can pay nothing.
type TestCard struct {
	Number string
	Result CardResult
	// Single cards cannot be paid in instalments.
	Single bool
}

// Brand is the card's brand.
func (c TestCard) Brand() string { return CardBrand(c.Number) }

// TestCards are the only numbers that the sandbox's page takes. The numbers are
// those of the documentations of Stripe, Braintree, Asaas, Pagar.me and Mercado
// Pago; what each does here is ours.
var TestCards = []TestCard{
	{Number: "4111111111111111", Result: CardApproved},
	{Number: "5555555555554444", Result: CardApproved},
	{Number: "6362970000457013", Result: CardApproved},
	{Number: "378282246310005", Result: CardApproved},
	{Number: "6062825624254001", Result: CardApproved},
	{Number: "5200828282828210", Result: CardApproved, Single: true},
	{Number: "4000000000003220", Result: CardChallenge},
	{Number: "4000000000000036", Result: CardAnalysisApproved},
	{Number: "4000000000000044", Result: CardAnalysisRefused},
	{Number: "4000000000009995", Result: CardInsufficientFunds},
	{Number: "4000000000006975", Result: CardLimitExceeded},
	{Number: "4000000000000069", Result: CardExpired},
	{Number: "4000000000000127", Result: CardInvalidCode},
	{Number: "4000000000000002", Result: CardDoNotHonor},
	{Number: "4100000000000019", Result: CardSuspectedFraud},
	{Number: "4000000000009987", Result: CardLostOrStolen},
	{Number: "378734493671000", Result: CardBlocked},
	{Number: "4000111111111115", Result: CardInvalid},
	{Number: "5105105105105100", Result: CardIssuerUnavailable},
	{Number: "4000000000000119", Result: CardProcessingError},
}

// FindTestCard finds a test card by its number.
func FindTestCard(number string) (TestCard, bool) {
	for _, c := range TestCards {
		if c.Number == number {
			return c, true
		}
	}
	return TestCard{}, false
}

// CardForm is what a payer typed on the sandbox's page.
type CardForm struct {
	Number       string
	Expiry       string // MM/YY
	Code         string
	Holder       string
	Installments string
}

// CardPayment is an attempt to pay with a test card. It holds no number.
type CardPayment struct {
	Result CardResult
	Card   CardDetail
}

// Reasons why a field of the card's form is faulty.
const (
	FormMissing     = "missing"
	FormNumber      = "number"       // no card number
	FormNoTestCard  = "no_test_card" // perhaps a real one
	FormExpiry      = "expiry"
	FormExpired     = "expired"
	FormCode        = "code"
	FormHolder      = "holder"
	FormInstallment = "installments"
)

// Check reads the form. faults names the faulty fields (number, expiry, code,
// holder, installments) with their reasons. The number comes first: of one that
// is no test card nothing more is read.
func (f *CardForm) Check(now time.Time, amount money.Cents, installmentsMax int) (pay CardPayment, faults map[string]string) {
	number, ok := BareNumber(f.Number)
	switch {
	case strings.TrimSpace(f.Number) == "":
		faults = map[string]string{"number": FormMissing}
	case !ok || len(f.Number) > cardTypedLengthMax || !ValidNumber(number):
		return pay, map[string]string{"number": FormNumber}
	}
	card, known := FindTestCard(number)
	if faults == nil && !known {
		return pay, map[string]string{"number": FormNoTestCard}
	}
	if faults == nil {
		faults = map[string]string{}
		pay.Result = card.Result
		pay.Card = CardDetail{Brand: card.Brand(), Last4: number[len(number)-cardDigitsShown:]}
	}
	if why := checkExpiry(f.Expiry, now); why != "" {
		faults["expiry"] = why
	}
	code := strings.TrimSpace(f.Code)
	if code == "" {
		faults["code"] = FormMissing
	} else if known && (len(code) != CardCodeLength(card.Brand()) || !allDigits(code)) {
		faults["code"] = FormCode
	}
	if holder := strings.TrimSpace(f.Holder); holder == "" {
		faults["holder"] = FormMissing
	} else if len(holder) > 4*cardHolderLengthMax {
		faults["holder"] = FormHolder
	}
	n, err := strconv.Atoi(f.Installments)
	if err != nil || n < 1 || n > InstallmentsMax(amount, installmentsMax) {
		faults["installments"] = FormInstallment
	}
	pay.Card.Installments = n
	if card.Single && n > 1 {
		pay.Result = CardNoInstallments
	}
	return pay, faults
}

// checkExpiry says what is wrong with MM/YY, or nothing. A card is good until
// its month is over, in São Paulo.
func checkExpiry(typed string, now time.Time) string {
	typed = strings.ReplaceAll(strings.TrimSpace(typed), " ", "")
	if typed == "" {
		return FormMissing
	}
	left, right, ok := strings.Cut(typed, "/")
	if !ok && len(typed) == 4 {
		left, right, ok = typed[:2], typed[2:], true
	}
	month, errMonth := strconv.Atoi(left)
	year, errYear := strconv.Atoi(right)
	if !ok || errMonth != nil || errYear != nil || month < 1 || month > 12 || len(left) > 2 || (len(right) != 2 && len(right) != 4) {
		return FormExpiry
	}
	if year < cardYearShort {
		year += cardYearsOfThisCentury
	}
	today := InSaoPaulo(now)
	end := time.Date(year, time.Month(month)+1, 1, 0, 0, 0, 0, today.Location())
	if !end.After(today) {
		return FormExpired
	}
	if year > today.Year()+cardYearsAhead {
		return FormExpiry
	}
	return ""
}

// InstallmentsMax is into how many parts the payer may divide an amount: as
// many as the order allows, and no part without a cent. 0 allows one.
func InstallmentsMax(amount money.Cents, allowed int) int {
	return max(1, min(allowed, int(min(amount, installmentsMax))))
}
