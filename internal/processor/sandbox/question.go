package sandbox

import (
	"errors"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// keyMax is the longest Pix key, in bytes.
const keyMax = 77

// Why a question is refused, for the operator.
var (
	errNoQuestions  = errors.New("the account's contract does not ask for consent")
	errQuestionBody = errors.New("body is not a question")
)

// Question implements [processor.Authorizer]. Every error is an [ErrNotice].
func (p *Processor) Question(n processor.RawNotice) (processor.Question, error) {
	if !p.asks {
		return processor.Question{}, errors.Join(ErrNotice, errNoQuestions)
	}
	if err := p.verify(n.Header, n.Body, n.At); err != nil {
		return processor.Question{}, errors.Join(ErrNotice, err)
	}
	return readQuestion(n.Body)
}

// readQuestion reads a body. It ignores unknown members, which a newer bank may add.
func readQuestion(body []byte) (processor.Question, error) {
	var b bankapi.Question
	if json.Unmarshal(body, &b) != nil {
		return processor.Question{}, errors.Join(ErrNotice, errQuestionBody)
	}
	t := b.Transfer
	if !isToken(t.ID) || !bankapi.IsExternalID(t.ExternalID) || !isAmount(t.Amount) ||
		t.PIXKey == "" || len(t.PIXKey) > keyMax || !bankapi.IsText(t.PIXKey) {
		return processor.Question{}, errors.Join(ErrNotice, errQuestionBody)
	}
	return processor.Question{Transfer: t.ID, ExternalID: t.ExternalID, Amount: t.Amount, Key: t.PIXKey}, nil
}

// Reply implements [processor.Authorizer].
func (p *Processor) Reply(approve bool, why string) (status int, contentType string, body []byte) {
	answer := bankapi.Consent{Status: bankapi.ConsentApproved}
	if !approve {
		answer = bankapi.Consent{Status: bankapi.ConsentRefused, Reason: why}
	}
	body, err := json.Marshal(answer)
	if err != nil { // the reason is not UTF-8
		return http.StatusInternalServerError, bankapi.JSONType, nil
	}
	return http.StatusOK, bankapi.JSONType, body
}
