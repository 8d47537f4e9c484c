package apipix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
)

// answerLimit bounds an answer, in bytes: a page of a list has up to pageSize entries.
const answerLimit = 4 << 20

// client calls a bank.
type client struct {
	http  *accounthttp.Client
	clock env.Clock
}

// response is the result of one call: an answer, or err.
type response struct {
	status   int
	code     string            // of an error answer: the last part of its type, or the name that Efí gives it
	property string            // the first property that it complains about
	message  string            // the bank's text about it, for a person at the command line only
	body     []byte            // of another answer
	at       time.Time         // when it came, by the bank's clock
	skew     time.Duration     // of the bank's clock before ours
	wait     time.Duration     // before the next request, if the bank or the budget names it
	err      error             // no answer, or none that can be read
	failed   processor.Outcome // with err: NotSent, Later or Unknown
	refused  bool              // the bank refuses the credentials
}

// Why an answer proves nothing.
var (
	errForm   = errors.New("apipix: the answer does not have the form that the API Pix documents")
	errOther  = errors.New("apipix: the answer is about another id or amount")
	errStatus = errors.New("apipix: the answer has an unknown status")
)

// do sends one request. guard, if not nil, is called right before the first byte. All that is
// not a GET is an effect.
func (c client) do(ctx context.Context, method, path string, in any, guard func() error) response {
	request := accounthttp.Request{Method: method, Path: path, Effect: method != http.MethodGet, Guard: guard}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil { // its text may quote the value
			return response{failed: processor.NotSent, err: errors.New("apipix: the request cannot be written")}
		}
		request.Body, request.ContentType = body, "application/json"
	}
	result := c.http.Do(ctx, request)
	r := response{at: c.clock.Now(), wait: result.Wait, refused: result.Refused()}
	if result.Answer == nil {
		r.failed, r.err = result.Outcome, fmt.Errorf("apipix: call the bank: %w", result.Cause)
		return r
	}
	r.status = result.Answer.Status
	if sent, err := http.ParseTime(result.Answer.Header.Get("Date")); err == nil {
		r.skew = skewOf(r.at, sent)
		r.at = r.at.Add(r.skew)
	}
	if r.ok() {
		r.body = result.Answer.Body
		return r
	}
	r.readProblem(result.Answer.Body)
	return r
}

// skewMin is the difference of clocks from which the bank's counts: a smaller one may be the
// age of the answer.
const skewMin = 5 * time.Second

// skewOf is how far the bank's clock is before ours, if they clearly differ.
func skewOf(ours, bank time.Time) time.Duration {
	if gap := bank.Sub(ours); gap <= -skewMin || gap >= skewMin {
		return gap
	}
	return 0
}

func (r *response) ok() bool {
	return r.err == nil && (r.status == http.StatusOK || r.status == http.StatusCreated)
}

// problemPrefix begins the type of every error of the standard.
const problemPrefix = "https://pix.bcb.gov.br/api/"

const (
	codeMax     = 64
	propertyMax = 64
)

// readProblem reads the code of an error answer.
func (r *response) readProblem(body []byte) {
	var p problemBody
	if len(body) == 0 || json.Unmarshal(body, &p, anyText) != nil || p.Status != 0 && p.Status != r.status {
		return
	}
	kind, standard := strings.CutPrefix(p.Type, problemPrefix)
	switch {
	case standard:
		r.code = kind[strings.LastIndexByte(kind, '/')+1:]
	case p.Type == "":
		r.code = cmp.Or(p.Name, p.OAuth)
	}
	r.message = shownText(cmp.Or(p.Message, p.Detail))
	if !isToken(r.code, codeMax) {
		r.code = ""
	}
	if len(p.Violations) > 0 && isToken(p.Violations[0].Property, propertyMax) {
		r.property = p.Violations[0].Property
	}
}

// anyText reads texts that are not valid UTF-8, too: a payer's message that a bank cut within
// a character must not hide the payment, nor those beside it. The texts that are used are checked.
var anyText = jsontext.AllowInvalidUTF8(true)

// parse reads the body of an answer.
func parse[T any](r *response) (value T) {
	if r.ok() {
		if err := json.Unmarshal(r.body, &value, anyText); err != nil { // its text may quote the body
			r.err = errForm
		}
	}
	return value
}

// unmarshal reads a value whose text an error must not quote.
func unmarshal(raw []byte, into any) error {
	if json.Unmarshal(raw, into, anyText) != nil {
		return errForm
	}
	return nil
}

// jsonDecode reads one value of a larger one.
func jsonDecode(d *jsontext.Decoder, into any) error { return json.UnmarshalDecode(d, into) }

// cause is why the call did not end with an answer of success, for the operator; nil if it
// did.
func (r *response) cause() error {
	switch {
	case r.err != nil:
		return r.err
	case r.ok():
		return nil
	default:
		return errors.New("apipix: " + r.evidence())
	}
}

// evidence is the answer that proves a refusal, without personal data.
func (r *response) evidence() string {
	text := fmt.Sprintf("the bank answered %d", r.status)
	if r.code != "" {
		text += " " + r.code
	}
	if r.property != "" {
		text += " (" + r.property + ")"
	}
	return text
}
