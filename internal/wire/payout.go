package wire

import (
	"errors"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/jsonwrite"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/pixkey"
	"github.com/porteira/porteira/taxid"
)

// PayoutRequest is the body of POST /payout. Its members have the right types;
// Check validates their values.
type PayoutRequest struct {
	Amount              Field[int64] // cents
	PIXKey              Field[string]
	PIXKeyType          Field[string]
	BeneficiaryName     Field[string]
	BeneficiaryDocument Field[string]
	WebhookURL          Field[string]
	ReferenceID         Field[string]

	// NormalKey is the Pix key as it is sent to a processor, set by Check.
	NormalKey      string
	Fingerprint    Fingerprint // as in PayinRequest
	IdempotencyKey string
	// Actor is who requests the payout, as the record of its approval names it:
	// credential:KEY.
	Actor actor.Actor
}

// read reads the body of POST /payout.
func (r *PayoutRequest) read(body value) {
	for v := range body.children() {
		switch v.name() {
		case "amount":
			r.Amount = v.cents()
		case "pixKey":
			r.PIXKey = v.text()
		case "pixKeyType":
			r.PIXKeyType = v.text()
		case "beneficiaryName":
			r.BeneficiaryName = v.text()
		case "beneficiaryDocument":
			r.BeneficiaryDocument = v.text()
		case "webhookUrl":
			r.WebhookURL = v.text()
		case "referenceId":
			r.ReferenceID = v.text()
		default:
			v.failUnknown()
		}
	}
}

// MayRepeat is PayinRequest.MayRepeat for payouts.
func (r *PayoutRequest) MayRepeat(invalid *problem.Error) bool {
	return isWellFormed(invalid) && ValidReference(r.ReferenceID.V)
}

// Check adds every invalid field of r to errs, and sets NormalKey if the key is
// valid. It does not check whether the beneficiary owns the key: the processor
// does.
func (r *PayoutRequest) Check(rules Rules, errs *Errors) {
	errs.amount(r.Amount, money.Max)
	r.checkKey(rules, errs)
	errs.requireShown(At("", "beneficiaryName"), r.BeneficiaryName, textMax)
	errs.document(At("", "beneficiaryDocument"), r.BeneficiaryDocument, rules.ChecksDocuments)
	errs.reference(r.ReferenceID)
	errs.webhookURL(r.WebhookURL, rules)
}

func (r *PayoutRequest) checkKey(rules Rules, errs *Errors) {
	keyAt, typeAt := At("", "pixKey"), At("", "pixKeyType")
	var keyType pixkey.Type
	if errs.requireText(typeAt, r.PIXKeyType) {
		var err error
		if keyType, err = pixkey.ParseType(r.PIXKeyType.V); err != nil {
			errs.Add(typeAt, problem.CodeNotAllowed, "must be CPF, CNPJ, EMAIL, PHONE or EVP, in capitals")
		}
	}
	if !errs.requireText(keyAt, r.PIXKey) || !errs.text(keyAt, r.PIXKey.V, pixkey.MaxEmail) || keyType == "" {
		return
	}
	normal, err := pixkey.Normalize(keyType, r.PIXKey.V)
	if err == nil && rules.ChecksDocuments {
		err = pixkey.Check(keyType, r.PIXKey.V)
	}
	if err != nil {
		errs.Add(keyAt, problem.CodeInvalidFormat, keyDetail(keyType, err))
		return
	}
	r.NormalKey = normal
}

// keyDetail says what a key of its type must be.
func keyDetail(t pixkey.Type, err error) string {
	switch {
	case errors.Is(err, taxid.ErrCheckDigits), errors.Is(err, taxid.ErrRepeated):
		return "is not a valid " + string(t) + ": the check digits are wrong"
	case t == pixkey.CPF:
		return "must be 11 digits without punctuation for type CPF"
	case t == pixkey.CNPJ:
		return "must be 12 digits or capital letters, then 2 digits, without punctuation, for type CNPJ"
	case t == pixkey.Email:
		return "must be an email address of at most 77 characters for type EMAIL"
	case t == pixkey.Phone:
		return "must be +, country code and number, or the 10 or 11 digits of a Brazilian number, without blanks or punctuation, for type PHONE"
	default:
		return "must be a UUID for type EVP"
	}
}

// payoutSize is more than the bytes of most payouts.
const payoutSize = 640

// Payout is a payout as the API and its events show it. Events do not show the
// beneficiary.
func Payout(p *payment.Payout, withBeneficiary bool) []byte {
	return UndecidedPayout(p, payment.Approvals{}, withBeneficiary)
}

// UndecidedPayout is [Payout] with the approvals that it has and needs, if it waits for them or they
// did not come in time.
func UndecidedPayout(p *payment.Payout, approvals payment.Approvals, withBeneficiary bool) []byte {
	o := jsonwrite.New(payoutSize)
	o.Text("id", p.ID.String())
	o.Text("externalId", p.ExternalID)
	o.TextIfAny("processorId", p.ProcessorID)
	o.Text("referenceId", p.ReferenceID)
	if !p.Batch.IsZero() {
		o.Text("batchId", p.Batch.String())
	}
	o.Text("status", string(p.Status))
	o.Text("amount", p.Amount.String())
	o.Text("currency", payment.Currency)
	o.TextIfAny("pixKey", p.Beneficiary.PIXKey) // else it cannot be decrypted
	o.Text("pixKeyType", p.PIXKeyType)
	o.Text("approval", string(p.ShownApproval()))
	if p.Waits() && approvals.Needed > 0 || p.Undecided() && approvals.Expired {
		o.Begin("approvals")
		o.Int("given", approvals.Given)
		o.Int("needed", approvals.Needed)
		o.TrueIf("expired", approvals.Expired)
		o.End()
	}
	o.TextIfAny("webhookUrl", p.WebhookURL)
	o.TextIfAny("endToEndId", p.EndToEndID)
	if p.Fee != 0 {
		o.Text("fee", p.Fee.String())
	}
	if p.ReturnedAmount != 0 {
		o.Text("returnedAmount", p.ReturnedAmount.String())
	}
	writeFailure(o, p.Failure)
	writeTime(o, "completedAt", p.CompletedAt)
	o.Int("version", p.Version)
	writeTime(o, "createdAt", p.CreatedAt)
	writeTime(o, "updatedAt", p.UpdatedAt)
	if withBeneficiary {
		o.Begin("beneficiary")
		o.Text("name", p.Beneficiary.Name)
		o.Text("document", p.Beneficiary.Document)
		o.End()
	}
	return o.Bytes()
}
