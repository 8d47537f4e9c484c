package asaas

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// newRefund is the request of a refund. Its description is our id: Asaas has no other place
// for it.
type newRefund struct {
	Value       amount `json:"value"`
	Description string `json:"description"`
}

// refundStates are what the statuses of a refund prove; any other one proves nothing.
var refundStates = map[string]processor.TransferState{
	"PENDING": processor.TransferProcessing, "DONE": processor.TransferPaid, "CANCELLED": processor.TransferFailed,
	refundUnconfirmed: processor.TransferProcessing, refundUnauthorized: processor.TransferProcessing,
}

// Statuses of a refund that waits for a person: in Asaas' panel, or where withdrawals are validated.
const (
	refundUnconfirmed  = "AWAITING_CRITICAL_ACTION_AUTHORIZATION"
	refundUnauthorized = "AWAITING_CUSTOMER_EXTERNAL_AUTHORIZATION"
)

// refundIDs are the ids of the refunds of a charge: ours, which are their descriptions, and
// for those that others made one that follows from what does not change.
func refundIDs(v *wirePayment) []string {
	ids, equal := make([]string, len(v.Refunds)), map[string]int{}
	for i := range v.Refunds {
		r := &v.Refunds[i]
		if isExternalID(r.Description) {
			ids[i] = r.Description
			continue
		}
		text := fmt.Sprint(v.ID, "\x00", r.DateCreated, "\x00", int64(r.Value))
		sum := sha256.Sum256(fmt.Append(nil, text, "\x00", equal[text]))
		equal[text]++
		ids[i] = fmt.Sprintf("refund-%x", sum[:16])
	}
	return ids
}

// refundReport is the report of the refunds under an id. Of several, which nobody should have
// made, the amounts are added: that is not the amount that was requested, so it is not taken
// for its proof.
func refundReport(v *wirePayment, id string) processor.TransferReport {
	report := processor.TransferReport{Lookup: processor.NotFound}
	for i, of := range refundIDs(v) {
		if of != id {
			continue
		}
		r := &v.Refunds[i]
		state, ok := refundStates[r.Status]
		if !ok {
			return processor.TransferReport{Cause: fmt.Errorf("asaas: refund has the status %.40q, which proves nothing", r.Status)}
		}
		if !isAmount(moneyOf(r.Value)) {
			return processor.TransferReport{Cause: errAnswerForm}
		}
		if report.Lookup == processor.Found && (state == processor.TransferFailed) {
			continue
		}
		if report.Lookup == processor.Found && report.State == processor.TransferFailed {
			report = processor.TransferReport{}
		}
		report.Lookup, report.State, report.Amount = processor.Found, state, report.Amount+moneyOf(r.Value)
		report.Person = r.Status == refundUnconfirmed || r.Status == refundUnauthorized
		report.Evidence = fmt.Sprintf("Asaas reports the refund of %s as %s", v.ID, r.Status)
		if state == processor.TransferFailed {
			report.Failure = &payment.Failure{Code: "refund_cancelled", Message: "Asaas did not pay the refund."}
		}
	}
	return report
}

// Refund implements [processor.Refunder]. A payment that Asaas does not have cannot be given
// back.
func (p *Processor) Refund(ctx context.Context, r processor.RefundRequest, guard func() error) processor.TransferAnswer {
	result := p.client.do(ctx, http.MethodPost, "/payments/"+url.PathEscape(r.PaymentID)+"/refund", newRefund{amount(r.Amount), r.ExternalID}, guard)
	v := parse[wirePayment](&result)
	answer := processor.TransferAnswer{Outcome: result.outcome(), Wait: result.wait, Person: result.person(), Cause: result.cause()}
	if result.lookup() == processor.NotFound {
		answer.Outcome = processor.Refused
	}
	switch answer.Outcome {
	case processor.Done:
		if v.ID != r.PaymentID {
			return processor.TransferAnswer{Cause: errOtherID}
		}
		if answer.Report = refundReport(&v, r.ExternalID); answer.Report.Lookup != processor.Found || answer.Report.Amount != r.Amount {
			return processor.TransferAnswer{Cause: errAnswerForm}
		}
	case processor.Refused:
		answer.Failure, answer.Evidence = result.failure(), result.evidence()
	case processor.Later:
		answer.Evidence = result.evidence()
	}
	return answer
}

// QueryRefund implements [processor.Refunder].
func (p *Processor) QueryRefund(ctx context.Context, paymentID, externalID string) processor.TransferReport {
	r := p.client.get(ctx, "/payments/"+url.PathEscape(paymentID))
	v := parse[wirePayment](&r)
	if lookup := r.lookup(); lookup != processor.Found {
		return processor.TransferReport{Lookup: lookup, Cause: r.cause()}
	}
	if v.ID != paymentID {
		return processor.TransferReport{Cause: errOtherID}
	}
	return refundReport(&v, externalID)
}
