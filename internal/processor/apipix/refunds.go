package apipix

import (
	"context"
	"errors"
	"net/http"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
)

// errID is why a request is not sent.
var errID = errors.New("apipix: the method or the id is not one of the API Pix")

// Refund implements [processor.Refunder]: PUT /pix/{e2eid}/devolucao/{id}.
func (p *Processor) Refund(ctx context.Context, r processor.RefundRequest, guard func() error) processor.TransferAnswer {
	if !isWord(r.ExternalID, idMax) || !isWord(r.PaymentID, endToEndMax) {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errID}
	}
	result := p.client.do(ctx, http.MethodPut, p.returnPath(r.PaymentID, r.ExternalID), newReturn{formatAmount(r.Amount)}, guard)
	body := parse[pixReturn](&result)
	return answerOf(&result, effectReturn, func() processor.TransferReport { return body.report(r.ExternalID) }, r.Amount)
}

func (p *Processor) returnPath(paymentID, id string) string {
	return p.prefix + "/pix/" + escape(paymentID) + "/devolucao/" + escape(id)
}

// QueryRefund implements [processor.Refunder].
func (p *Processor) QueryRefund(ctx context.Context, paymentID, externalID string) processor.TransferReport {
	if !isWord(externalID, idMax) || !isWord(paymentID, endToEndMax) {
		return processor.TransferReport{Cause: errID}
	}
	result := p.get(ctx, p.returnPath(paymentID, externalID))
	body := parse[pixReturn](&result)
	lookup := result.lookup(subjectReturn)
	if lookup != processor.Found {
		return processor.TransferReport{Lookup: lookup, Cause: result.cause()}
	}
	return body.report(externalID)
}

// answerOf is the answer to a request whose report must be of the amount that was sent.
func answerOf(result *response, of effect, report func() processor.TransferReport, sent money.Cents) processor.TransferAnswer {
	outcome, failure := result.outcome(of)
	answer := processor.TransferAnswer{Outcome: outcome, Wait: result.wait, Failure: failure, Cause: result.cause()}
	if outcome != processor.Done {
		if result.err == nil {
			answer.Evidence = result.evidence()
		}
		return answer
	}
	answer.Report = report()
	switch {
	case answer.Report.Lookup != processor.Found:
		return processor.TransferAnswer{Cause: answer.Report.Cause}
	case answer.Report.Amount != sent:
		return processor.TransferAnswer{Cause: errOther}
	}
	return answer
}

// report is what a return proves. An unknown status proves nothing.
func (r *pixReturn) report(externalID string) processor.TransferReport {
	amount, ok := parseAmount(r.Value)
	state, known := returnState(r.Status)
	switch {
	case r.ID != externalID:
		return processor.TransferReport{Cause: errOther}
	case !known:
		return processor.TransferReport{Cause: errStatus}
	case !ok || r.ReturnID != "" && !isWord(r.ReturnID, endToEndMax):
		return processor.TransferReport{Cause: errForm}
	}
	report := processor.TransferReport{
		Lookup: processor.Found, State: state, EndToEndID: r.ReturnID, Amount: amount,
		Evidence: "the bank reports " + r.Status,
	}
	if r.ReturnID != "" {
		report.Evidence += " as " + r.ReturnID
	}
	if state == processor.TransferFailed {
		reason, _ := r.Reason.(string)
		report.Failure = failureOf("not_returned").Because(shownText(reason))
	}
	return report
}

// returnState is the state of a return; known is false if its status is not.
func returnState(status string) (state processor.TransferState, known bool) {
	switch status {
	case statusProcessing:
		return processor.TransferProcessing, true
	case statusReturned:
		return processor.TransferPaid, true
	case statusFailed:
		return processor.TransferFailed, true
	default:
		return "", false
	}
}

// isDispute reports whether a return is of the MED: the payer's bank demanded it. All others
// were requested by the receiver.
func (r pixReturn) isDispute() bool {
	return r.Nature == natureFraud || r.Nature == natureFlaw || r.Nature == natureRecurring
}

// dispute is the dispute behind a return of the MED.
func (r *pixReturn) dispute(paymentID string) (d processor.Dispute, ok bool) {
	amount, ok := parseAmount(r.Value)
	if !ok || !isToken(r.ID, endToEndMax) {
		return d, false
	}
	d = processor.Dispute{ID: r.name(paymentID), PaymentID: paymentID, Amount: amount, ReturnID: r.name(paymentID)}
	switch r.Status {
	case statusProcessing:
		d.State = processor.DisputeOpen
	case statusReturned:
		d.State = processor.DisputeLost
	case statusFailed:
		d.State = processor.DisputeWon
	default:
		return d, false
	}
	return d, true
}
