package payment

import (
	"errors"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/pixkey"
	"github.com/porteira/porteira/taxid"
)

// Check adds every faulty member of r to errs, and sets NormalKey where the
// key is good. Whether the beneficiary must own the key is the processor's
// rule.
func (r *PayoutRequest) Check(rules Rules, errs *Errors) {
	errs.amount(r.Amount, money.Max)
	r.checkKey(rules, errs)
	if p := At("", "beneficiaryName"); errs.require(p, r.BeneficiaryName.Set) {
		errs.text(p, r.BeneficiaryName.V, nameMax)
	}
	if p := At("", "beneficiaryDocument"); errs.require(p, r.BeneficiaryDocument.Set) {
		errs.document(p, r.BeneficiaryDocument.V, rules.ChecksDocuments)
	}
	errs.reference(r.ReferenceID)
	errs.webhookURL(r.WebhookURL, rules)
}

func (r *PayoutRequest) checkKey(rules Rules, errs *Errors) {
	keyAt, typeAt := At("", "pixKey"), At("", "pixKeyType")
	var keyType pixkey.Type
	if errs.require(typeAt, r.PIXKeyType.Set) {
		var err error
		if keyType, err = pixkey.ParseType(r.PIXKeyType.V); err != nil {
			errs.Add(typeAt, CodeNotAllowed, "must be CPF, CNPJ, EMAIL, PHONE or EVP")
		}
	}
	if !errs.require(keyAt, r.PIXKey.Set) || !errs.text(keyAt, r.PIXKey.V, pixkey.MaxEmail) || keyType == "" {
		return
	}
	normal, err := pixkey.Normalize(keyType, r.PIXKey.V)
	if err == nil && rules.ChecksDocuments {
		err = pixkey.Check(keyType, r.PIXKey.V)
	}
	if err != nil {
		errs.Add(keyAt, CodeInvalidFormat, keyDetail(keyType, err))
		return
	}
	r.NormalKey = normal
}

// keyDetail says what a key of its type must be.
func keyDetail(t pixkey.Type, err error) string {
	switch {
	case errors.Is(err, taxid.ErrCheckDigits), errors.Is(err, taxid.ErrRepeated):
		return "is no " + string(t) + ": the check digits are wrong"
	case t == pixkey.CPF:
		return "must be 11 digits, for the type CPF"
	case t == pixkey.CNPJ:
		return "must be 12 digits or capital letters and 2 digits, for the type CNPJ"
	case t == pixkey.Email:
		return "must be an e-mail address of at most 77 characters, for the type EMAIL"
	case t == pixkey.Phone:
		return "must be + with country code and number, or 10 or 11 digits of a Brazilian number, for the type PHONE"
	default:
		return "must be a UUID, for the type EVP"
	}
}
