package sandbox

import (
	"fmt"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// response is the result of one call of the bank: an answer, or err.
type response struct {
	status int
	code   bankapi.Code      // of an error answer
	body   []byte            // of another one
	wait   time.Duration     // before the next request, if the bank or the budget names it
	err    error             // no answer, or none that can be read
	failed processor.Outcome // with err: NotSent, Later or Unknown
}

// verdict is a row of the table of proofs.
type verdict struct {
	status  int
	code    bankapi.Code
	outcome processor.Outcome
	why     string
}

// verdicts lists the answers that prove something; any other answer is Unknown.
// The bank documents each code; the same status without its code may come from
// any proxy in between, and proves nothing.
var verdicts = []verdict{
	{http.StatusOK, "", processor.Done, "the bank accepted the request, now or before"},
	{http.StatusBadRequest, bankapi.CodeRequestInvalid, processor.Refused, "the bank checks all values before any effect"},
	{http.StatusUnprocessableEntity, bankapi.CodeChargeRefused, processor.Refused, "a refused id is refused forever"},
	{http.StatusUnprocessableEntity, bankapi.CodeAccountInvalid, processor.Refused, "a refused id is refused forever"},
	{http.StatusUnprocessableEntity, bankapi.CodeRefundRefused, processor.Refused, "a refused id is refused forever"},
	{http.StatusUnprocessableEntity, bankapi.CodePaymentUnknown, processor.Refused, "a refused id is refused forever"},
	{http.StatusUnprocessableEntity, bankapi.CodeRefundTooMuch, processor.Refused, "a refused id is refused forever"},
	{http.StatusUnprocessableEntity, bankapi.CodePaymentDisputed, processor.Refused, "a refused id is refused forever"},
	{http.StatusTooManyRequests, bankapi.CodeTooManyRequests, processor.Later, "the bank counts requests before any effect"},
	{http.StatusConflict, bankapi.CodeIDInUse, processor.Known, "an earlier request under the id had its effect"},
	{http.StatusConflict, bankapi.CodeContentDiffers, processor.Unknown, "this request has no effect, but another under its id may have had one"},
}

// outcome classifies a call with an effect.
func (r response) outcome() processor.Outcome {
	if r.err != nil {
		return r.failed
	}
	for _, v := range verdicts {
		if v.status == r.status && v.code == r.code {
			return v.outcome
		}
	}
	return processor.Unknown
}

// notFound are the answers to an id that the bank has never seen.
var notFound = []bankapi.Code{bankapi.CodeChargeUnknown, bankapi.CodeTransferUnknown, bankapi.CodeRefundUnknown, bankapi.CodeDefenseUnknown}

// lookup classifies a look-up.
func (r response) lookup() processor.Lookup {
	if r.err != nil {
		return processor.LookupUnknown
	}
	if r.status == http.StatusOK && r.code == "" {
		return processor.Found
	}
	for _, code := range notFound {
		if r.status == code.Status() && r.code == code {
			return processor.NotFound
		}
	}
	return processor.LookupUnknown
}

// evidence is the bank's answer that proves a refusal, or why it was not asked.
func (r response) evidence() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("bank answered %d %s", r.status, string(r.code))
}

// cause is why the call did not end with a 200, for the operator; nil if it did.
func (r response) cause() error {
	switch {
	case r.err != nil:
		return r.err
	case r.status == http.StatusOK:
		return nil
	default:
		return fmt.Errorf("sandbox: bank answered %d %w", r.status, r.code)
	}
}
