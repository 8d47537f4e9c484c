package wire

import (
	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// refundReasonMax is the longest reason of a refund, in characters.
const refundReasonMax = 140

// RefundRequest is the body of POST /payin/{id}/refunds. Its members have the right types;
// Check validates their values.
type RefundRequest struct {
	Amount      Field[int64] // cents; all that is left if it was not sent
	ReferenceID Field[string]
	Reason      Field[string]

	Fingerprint Fingerprint // as in PayinRequest; the pay-in is not part of it
}

func (r *RefundRequest) read(body value) {
	for v := range body.children() {
		switch v.name() {
		case "amount":
			r.Amount = v.cents()
		case "referenceId":
			r.ReferenceID = v.text()
		case "reason":
			r.Reason = v.text()
		default:
			v.failUnknown()
		}
	}
}

// MayRepeat is PayinRequest.MayRepeat for refunds.
func (r *RefundRequest) MayRepeat(invalid *problem.Error) bool {
	return isWellFormed(invalid) && ValidReference(r.ReferenceID.V)
}

// Check adds every invalid field of r to errs.
func (r *RefundRequest) Check(_ Rules, errs *Errors) {
	if r.Amount.Set {
		errs.number(At("", "amount"), r.Amount.V, 1, int64(money.Max))
	}
	errs.reference(r.ReferenceID)
	if r.Reason.Set {
		errs.text(At("", "reason"), r.Reason.V, refundReasonMax)
	}
}

type refundView struct {
	ID             payment.ID           `json:"id"`
	PayinID        payment.ID           `json:"payinId"`
	ReferenceID    string               `json:"referenceId,omitempty"`
	ExternalID     string               `json:"externalId"`
	Amount         money.Cents          `json:"amount"`
	RefundedAmount money.Cents          `json:"refundedAmount,omitzero"`
	Currency       string               `json:"currency"`
	Status         payment.RefundStatus `json:"status"`
	Origin         payment.RefundOrigin `json:"origin,omitempty"`
	Reason         string               `json:"reason,omitempty"`
	EndToEndID     string               `json:"endToEndId,omitempty"`
	Failure        *failureView         `json:"failure,omitempty"`
	Version        int64                `json:"version"`
	CreatedAt      Timestamp            `json:"createdAt"`
	UpdatedAt      Timestamp            `json:"updatedAt"`
	CompletedAt    Timestamp            `json:"completedAt,omitempty"`
}

// Refund is a refund as the API and its events show it. refundedAmount, which has reached
// the payer, is shown only if it is a part of the amount, and the origin only if it is not the API.
func Refund(r *payment.Refund) ([]byte, error) {
	v := refundView{
		ID: r.ID, PayinID: r.Payin, ReferenceID: r.ReferenceID, ExternalID: r.ExternalID, Amount: r.Amount, Currency: payment.Currency,
		Status: r.Status, Reason: r.Reason, EndToEndID: r.EndToEndID, Failure: (*failureView)(r.Failure),
		Version: r.Version, CreatedAt: TimestampOf(r.CreatedAt), UpdatedAt: TimestampOf(r.UpdatedAt), CompletedAt: TimestampOf(r.CompletedAt),
	}
	if r.RefundedAmount != r.Amount {
		v.RefundedAmount = r.RefundedAmount
	}
	if r.Origin != payment.RefundByMerchant {
		v.Origin = r.Origin
	}
	return json.Marshal(&v)
}
