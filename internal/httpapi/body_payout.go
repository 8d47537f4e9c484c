package httpapi

import "github.com/porteira/porteira/internal/payment"

// payout reads the body of POST /payout.
func (r *reader) payout(q *payment.PayoutRequest) {
	r.each(0, func(i int32, name string) {
		p := payment.At("", name)
		switch name {
		case "amount":
			q.Amount = r.integer(i, p)
		case "pixKey":
			q.PIXKey = r.text(i, p)
		case "pixKeyType":
			q.PIXKeyType = r.text(i, p)
		case "beneficiaryName":
			q.BeneficiaryName = r.text(i, p)
		case "beneficiaryDocument":
			q.BeneficiaryDocument = r.text(i, p)
		case "webhookUrl":
			q.WebhookURL = r.text(i, p)
		case "referenceId":
			q.ReferenceID = r.text(i, p)
		default:
			r.unknownField(p)
		}
	})
}
