package asaas

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/processor"
)

// tokenHeader has the token of the account in notices and questions. There is no signature:
// what a notice says is looked up before any money moves.
const tokenHeader = "Asaas-Access-Token"

// ErrNotice means that a notice or a question is not from Asaas.
var ErrNotice = errors.New("asaas: notice refused")

// Why a notice is refused, for the operator.
var (
	errNoticeToken = errors.New("token missing, double or wrong")
	errNoticeBody  = errors.New("body is not a notice")
)

// events are those that the gateway registers for. Every other one is accepted and ignored.
var events = []string{
	"PAYMENT_CONFIRMED", "PAYMENT_RECEIVED", "PAYMENT_DELETED", "PAYMENT_REFUNDED", "PAYMENT_PARTIALLY_REFUNDED", "PAYMENT_REFUND_DENIED",
	"PAYMENT_AWAITING_RISK_ANALYSIS", "PAYMENT_APPROVED_BY_RISK_ANALYSIS", "PAYMENT_REPROVED_BY_RISK_ANALYSIS",
	"PAYMENT_CHARGEBACK_REQUESTED", "PAYMENT_CHARGEBACK_DISPUTE", "PAYMENT_AWAITING_CHARGEBACK_REVERSAL",
	"TRANSFER_DONE", "TRANSFER_FAILED", "TRANSFER_CANCELLED", "TRANSFER_BLOCKED",
}

// noticeBody is the body of a notice.
type noticeBody struct {
	ID       string         `json:"id"`
	Event    string         `json:"event"`
	Payment  jsontext.Value `json:"payment"`
	Transfer jsontext.Value `json:"transfer"`
}

// authentic reports whether a request has the account's token, exactly once.
func (p *Processor) authentic(h http.Header) bool {
	values := h.Values(tokenHeader)
	if len(values) != 1 {
		return false
	}
	got, ok := sha256.Sum256([]byte(values[0])), 0
	for _, token := range p.tokens {
		want := sha256.Sum256([]byte(token)) // of one length, so that the time reveals nothing
		ok |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	return ok == 1
}

// VerifyNotice implements [processor.Notifier]. Every error is an [ErrNotice].
func (p *Processor) VerifyNotice(h http.Header, body []byte, _ time.Time) (noticeID string, err error) {
	if !p.authentic(h) {
		return "", errors.Join(ErrNotice, errNoticeToken)
	}
	n, err := readNotice(body)
	return n.ID, err
}

func readNotice(body []byte) (n noticeBody, err error) {
	if json.Unmarshal(body, &n, anyText) != nil || !isToken(n.ID) || !isToken(n.Event) {
		return noticeBody{}, errors.Join(ErrNotice, errNoticeBody)
	}
	return n, nil
}

// ParseNotice implements [processor.Notifier].
func (p *Processor) ParseNotice(body []byte) ([]processor.Hint, error) {
	n, err := readNotice(body)
	if err != nil || !slices.Contains(events, n.Event) {
		return nil, err
	}
	if len(n.Transfer) > 0 {
		return transferHints(n.Transfer)
	}
	return paymentHints(n.Payment)
}

// transferHints is the hint of a transfer, if it may be ours.
func transferHints(body []byte) ([]processor.Hint, error) {
	var v wireTransfer
	if json.Unmarshal(body, &v, anyText) != nil || !isToken(v.ID) {
		return nil, errors.Join(ErrNotice, errNoticeBody)
	}
	if !isExternalID(v.ExternalReference) {
		return nil, nil
	}
	return []processor.Hint{{
		Subject: processor.SubjectTransfer, ExternalID: v.ExternalReference, ProcessorID: v.ID, Transfer: transferStates[v.Status],
	}}, nil
}

// paymentHints are the hints of a charge and its refunds, if it may be ours.
func paymentHints(body []byte) ([]processor.Hint, error) {
	var v wirePayment
	if json.Unmarshal(body, &v, anyText) != nil || !isToken(v.ID) {
		return nil, errors.Join(ErrNotice, errNoticeBody)
	}
	if !isExternalID(v.ExternalReference) {
		return nil, nil
	}
	charge := processor.Hint{Subject: processor.SubjectCharge, ExternalID: v.ExternalReference, ProcessorID: v.ID}
	if v.paid() && isAmount(moneyOf(v.Value)) {
		charge.Payment = &processor.Payment{ID: v.ID, ExternalID: v.ExternalReference, Amount: moneyOf(v.Value)}
	}
	var hints []processor.Hint
	for i, id := range refundIDs(&v) {
		ours, state := isExternalID(id), refundStates[v.Refunds[i].Status]
		if ours && state == processor.TransferProcessing || !ours && v.mayBeTaken(&v.Refunds[i]) { // ours is looked up until it ends
			continue
		}
		hints = append(hints, processor.Hint{Subject: processor.SubjectRefund, ExternalID: id, PaymentID: v.ID})
	}
	if v.undecided() { // the dispute has what the refunds leave
		return append(hints, charge), nil
	}
	return append([]processor.Hint{charge}, hints...), nil
}
