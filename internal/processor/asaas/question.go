package asaas

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/processor"
)

// Asaas' "withdrawal validation": it asks about each transfer before it executes it.

// Why a question is refused, for the operator.
var (
	errNoQuestions  = errors.New("the account does not have withdrawal-validation=on")
	errQuestionBody = errors.New("body is not a question about a transfer")
)

// keyMax is the longest Pix key, in bytes.
const pixKeyMax = 77

// questionBody is the body of a question.
type questionBody struct {
	Type     string       `json:"type"`
	Transfer wireTransfer `json:"transfer"` // empty if it is about a refund
}

// reply is the body of the answer.
type reply struct {
	Status string `json:"status"`
	Reason string `json:"refuseReason,omitempty"`
}

// Question implements [processor.Authorizer]. Every error is an [ErrNotice].
func (p *Processor) Question(n processor.RawNotice) (processor.Question, error) {
	if !p.validation {
		return processor.Question{}, errors.Join(ErrNotice, errNoQuestions)
	}
	if !p.authentic(n.Header) {
		return processor.Question{}, errors.Join(ErrNotice, errNoticeToken)
	}
	q, err := readQuestion(n.Body)
	if err == nil && q.ExternalID == "" { // the answer to our request named the transfer too
		q.ExternalID = p.requested.get(q.Transfer)
	}
	return q, err
}

// noRefunds is the refusal of a question about a refund: the option for refunds has to be off.
const noRefunds = "this gateway does not validate refunds: leave the option for refunds off in the withdrawal validation"

func readQuestion(body []byte) (processor.Question, error) {
	var b questionBody
	if json.Unmarshal(body, &b, anyText) != nil || b.Type != "TRANSFER" && b.Type != "PIX_REFUND" {
		return processor.Question{}, errors.Join(ErrNotice, errQuestionBody)
	}
	if b.Type != "TRANSFER" {
		return processor.Question{Refusal: noRefunds}, nil
	}
	t := &b.Transfer
	key, other := keysOf(t.BankAccount.Key)
	if !isToken(t.ID) || !isAmount(moneyOf(t.Value)) || len(t.BankAccount.Key) > pixKeyMax || len(t.ExternalReference) > idMax {
		return processor.Question{}, errors.Join(ErrNotice, errQuestionBody)
	}
	return processor.Question{Transfer: t.ID, ExternalID: t.ExternalReference, Amount: moneyOf(t.Value), Key: key, OtherKey: other}, nil
}

// Reply implements [processor.Authorizer].
func (p *Processor) Reply(approve bool, why string) (status int, contentType string, body []byte) {
	answer := reply{Status: "APPROVED"}
	if !approve {
		answer = reply{Status: "REFUSED", Reason: why}
	}
	body, err := json.Marshal(answer)
	if err != nil { // the reason is not UTF-8
		return http.StatusInternalServerError, jsonType, nil
	}
	return http.StatusOK, jsonType, body
}
