package wire

import (
	"errors"

	"github.com/go-json-experiment/json"

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
	Actor string
}

// read reads the body of POST /payout.
func (r *PayoutRequest) read(body value) {
	for v := range body.children() {
		switch v.name() {
		case "amount":
			r.Amount = v.integer()
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
	if p := At("", "beneficiaryName"); errs.require(p, r.BeneficiaryName.Set) {
		errs.text(p, r.BeneficiaryName.V, textMax)
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
			errs.Add(typeAt, problem.CodeNotAllowed, "must be CPF, CNPJ, EMAIL, PHONE or EVP")
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
		return "must be 11 digits for type CPF"
	case t == pixkey.CNPJ:
		return "must be 12 digits or capital letters, then 2 digits, for type CNPJ"
	case t == pixkey.Email:
		return "must be an email address of at most 77 characters for type EMAIL"
	case t == pixkey.Phone:
		return "must be +, country code and number, or the 10 or 11 digits of a Brazilian number, for type PHONE"
	default:
		return "must be a UUID for type EVP"
	}
}

type payoutView struct {
	ID             payment.ID           `json:"id"`
	ExternalID     string               `json:"externalId"`
	ProcessorID    string               `json:"processorId,omitempty"`
	ReferenceID    string               `json:"referenceId"`
	BatchID        payment.ID           `json:"batchId,omitzero"`
	Status         payment.PayoutStatus `json:"status"`
	Amount         string               `json:"amount"`
	Currency       string               `json:"currency"`
	PIXKey         string               `json:"pixKey"`
	PIXKeyType     string               `json:"pixKeyType"`
	Approval       payment.Approval     `json:"approval"`
	WebhookURL     string               `json:"webhookUrl,omitempty"`
	EndToEndID     string               `json:"endToEndId,omitempty"`
	Fee            string               `json:"fee,omitempty"`
	ReturnedAmount string               `json:"returnedAmount,omitempty"`
	Failure        *failureView         `json:"failure,omitempty"`
	CompletedAt    Timestamp            `json:"completedAt,omitempty"`
	Version        int64                `json:"version"`
	CreatedAt      Timestamp            `json:"createdAt"`
	UpdatedAt      Timestamp            `json:"updatedAt"`
	Beneficiary    *beneficiaryView     `json:"beneficiary,omitempty"`
}

type beneficiaryView struct {
	Name     string `json:"name"`
	Document string `json:"document"`
}

// Payout is a payout as the API and its events show it. Events do not show the
// beneficiary.
func Payout(p *payment.Payout, withBeneficiary bool) ([]byte, error) {
	v := payoutView{
		ID: p.ID, ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, ReferenceID: p.ReferenceID, BatchID: p.Batch,
		Status: p.Status, Amount: p.Amount.String(), Currency: payment.Currency, PIXKey: p.Beneficiary.PIXKey,
		PIXKeyType: p.PIXKeyType, Approval: p.Approval, WebhookURL: p.WebhookURL,
		EndToEndID: p.EndToEndID, Failure: (*failureView)(p.Failure), CompletedAt: TimestampOf(p.CompletedAt),
		Version: p.Version, CreatedAt: TimestampOf(p.CreatedAt), UpdatedAt: TimestampOf(p.UpdatedAt),
	}
	if p.Fee != 0 {
		v.Fee = p.Fee.String()
	}
	if p.ReturnedAmount != 0 {
		v.ReturnedAmount = p.ReturnedAmount.String()
	}
	if withBeneficiary {
		v.Beneficiary = &beneficiaryView{p.Beneficiary.Name, p.Beneficiary.Document}
	}
	return json.Marshal(&v)
}
