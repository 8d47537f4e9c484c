package asaas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
)

const jsonType = "application/json"

// client calls Asaas.
type client struct{ http *accounthttp.Client }

// response is the result of one call: an answer, or err.
type response struct {
	status int
	body   []byte            // of a 200
	code   string            // of a documented error; "" if the answer is none
	text   string            // what Asaas says about it, if it can be shown
	wait   time.Duration     // before the next request, if it is known
	err    error             // no answer, or none that can be read
	failed processor.Outcome // with err: NotSent, Later or Unknown
}

// get asks a question.
func (c client) get(ctx context.Context, path string) response {
	return c.do(ctx, http.MethodGet, path, nil, nil)
}

// do sends one request. guard, if not nil, is called right before the first byte. All that
// is not a GET is an effect.
func (c client) do(ctx context.Context, method, path string, in any, guard func() error) response {
	request := accounthttp.Request{Method: method, Path: path, Effect: method != http.MethodGet, Guard: guard}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return response{failed: processor.NotSent, err: fmt.Errorf("asaas: encode request: %w", err)}
		}
		request.Body, request.ContentType = body, jsonType
	}
	result := c.http.Do(ctx, request)
	if result.Answer == nil {
		return response{failed: result.Outcome, wait: result.Wait, err: fmt.Errorf("asaas: call: %w", result.Cause)}
	}
	return readAnswer(result.Answer.Status, result.Answer.Body, result.Wait)
}

// errorBody is the body of every documented error.
type errorBody struct {
	Errors []struct {
		Code        string `json:"code"`
		Description string `json:"description"`
	} `json:"errors"`
}

// readAnswer reads the code of an error.
func readAnswer(status int, body []byte, wait time.Duration) response {
	r := response{status: status, wait: wait}
	if status == http.StatusOK {
		r.body = body
		return r
	}
	var b errorBody
	if json.Unmarshal(body, &b, anyText) == nil && len(b.Errors) > 0 && isToken(b.Errors[0].Code) {
		r.code, r.text = b.Errors[0].Code, b.Errors[0].Description
	}
	return r
}

// anyText reads texts that are not valid UTF-8, too: one that Asaas cut within a character
// must not hide its payment, nor those beside it. The texts that are used are checked.
var anyText = jsontext.AllowInvalidUTF8(true)

// parse reads the body of a 200. It ignores unknown members, which Asaas adds.
func parse[T any](r *response) (value T) {
	if r.err == nil && r.status == http.StatusOK {
		if err := json.Unmarshal(r.body, &value, anyText); err != nil {
			r.err = errAnswerForm
		}
	}
	return value
}

// Codes of errors.
const (
	codeNotFound = "not_found"
	codeNoFunds  = "insufficient_balance"
)

// noFunds are the texts of a refusal for which Asaas has no code of its own.
var noFunds = []string{"saldo insuficiente", "insufficient balance"}

// wantsCode are the words of a refusal because the account wants each transfer confirmed by a person,
// with a code: a setting of the operator, and no fault of the transfer.
var wantsCode = []string{"autorização crítica", "autorizacao critica", "código de confirmação", "codigo de confirmacao"}

// person reports whether an effect is refused until a person changes a setting in the panel.
func (r *response) person() bool {
	return r.err == nil && r.status == http.StatusBadRequest && r.code != "" && containsAny(strings.ToLower(r.text), wantsCode)
}

// outcome classifies a call with an effect. Only a 200, whose content the caller checks, and
// documented errors prove anything: the same status without them may be from any proxy in
// between.
func (r *response) outcome() processor.Outcome {
	switch {
	case r.err != nil:
		return r.failed
	case r.status == http.StatusOK:
		return processor.Done
	case r.status == http.StatusTooManyRequests:
		return processor.Later
	case r.status == http.StatusBadRequest && r.code == codeNoFunds, r.status == http.StatusBadRequest && r.code != "" && containsAny(strings.ToLower(r.text), noFunds):
		return processor.Later
	case r.person():
		return processor.Later
	case r.status == http.StatusBadRequest && r.code != "":
		return processor.Refused
	default:
		return processor.Unknown
	}
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// lookup classifies a question about one id.
func (r *response) lookup() processor.Lookup {
	switch {
	case r.err != nil:
		return processor.LookupUnknown
	case r.status == http.StatusOK:
		return processor.Found
	case r.status == http.StatusNotFound && r.code == codeNotFound:
		return processor.NotFound
	default:
		return processor.LookupUnknown
	}
}

// evidence is the answer that proves a refusal, or why there is none, with Asaas' own reason: the
// code invalid_action alone has many causes.
func (r *response) evidence() string {
	if r.err != nil {
		return r.err.Error()
	}
	text := fmt.Sprintf("Asaas answered %d %s", r.status, r.code)
	if reason := shown(r.text, ""); reason != "" {
		text += ": " + reason
	}
	return text
}

// cause is why the call did not end with a 200, for the operator; nil if it did.
func (r *response) cause() error {
	switch {
	case r.err != nil:
		return r.err
	case r.status == http.StatusOK:
		return nil
	default:
		return errors.New("asaas: " + r.evidence())
	}
}

// failure is the refusal as the merchant sees it.
func (r *response) failure() *payment.Failure {
	return &payment.Failure{Code: r.code, Message: shown(r.text, "Asaas refused it.")}
}

// Longest texts of an answer, in bytes.
const (
	idMax    = 100
	shownMax = 300
)

// shown is a text of Asaas if it can be kept and shown, else another one. A text that may have
// a document, a key or an address in it cannot.
func shown(text, otherwise string) string {
	digits := 0
	for _, r := range text {
		if digits++; r < '0' || r > '9' {
			digits = 0
		}
		if digits > 3 || r == '@' || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return otherwise
		}
	}
	if text == "" || len(text) > shownMax {
		return otherwise
	}
	return text
}

// isToken reports whether s can be an id or a code: visible ASCII.
func isToken(s string) bool { return isVisible(s, idMax) }

func isTokenOrNone(s string) bool { return s == "" || isToken(s) }

// isExternalID reports whether s has the form of our ids. Other programs that use the account
// have other references.
func isExternalID(s string) bool {
	return len(s) == payment.ExternalIDLength && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
