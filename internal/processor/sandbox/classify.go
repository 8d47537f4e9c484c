package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/porteira/porteira/internal/processor"
)

// response is how one call of the bank ended: with an answer, or with err.
type response struct {
	status int
	code   failureCode // of an answer that is an error
	body   []byte      // of an answer that is not
	err    error       // no answer, or none that can be read
}

// verdict is a row of the table that says what an answer proves.
type verdict struct {
	status  int
	code    failureCode
	outcome processor.Outcome
	why     string
}

// verdicts lists the answers that prove something. The bank documents each
// code; the same status without its code may come from any proxy in between,
// and proves nothing. What is not listed is Unknown.
var verdicts = []verdict{
	{http.StatusOK, "", processor.Done, "the bank took the request, now or before"},
	{http.StatusBadRequest, codeRequestInvalid, processor.Refused, "no value is acted upon before all were checked"},
	{http.StatusUnprocessableEntity, codeChargeRefused, processor.Refused, "a refused id is refused for ever"},
	{http.StatusUnprocessableEntity, codeAccountInvalid, processor.Refused, "a refused id is refused for ever"},
	{http.StatusUnprocessableEntity, codeRefundRefused, processor.Refused, "a refused id is refused for ever"},
	{http.StatusUnprocessableEntity, codePaymentUnknown, processor.Refused, "a refused id is refused for ever"},
	{http.StatusUnprocessableEntity, codeRefundTooMuch, processor.Refused, "a refused id is refused for ever"},
	{http.StatusUnprocessableEntity, codePaymentDisputed, processor.Refused, "a refused id is refused for ever"},
	{http.StatusConflict, codeContentDiffers, processor.Unknown, "this request has no effect, but another under its id may have had one"},
	{http.StatusUnauthorized, codeUnauthorized, processor.Unknown, "the credentials need a person; an earlier request may have had its effect"},
}

// notSentErrors are the failures of a connection that prove that no byte of
// the request left. Every other failure is Unknown.
var notSentErrors = []struct {
	why string
	is  func(error) bool
}{
	{"the name does not resolve", isError[*net.DNSError]},
	{"the connection was not made", isDialError},
	{"the server's certificate is not trusted", isError[*tls.CertificateVerificationError]},
	{"the server's certificate is of an unknown authority", isError[x509.UnknownAuthorityError]},
	{"the server's certificate is for another host", isError[x509.HostnameError]},
	{"the server's certificate is invalid", isError[x509.CertificateInvalidError]},
	{"our own guard said no", func(err error) bool { return errors.Is(err, errGuard) }},
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isDialError(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
}

// outcome classifies a call that asks for an effect.
func (r response) outcome() processor.Outcome {
	if r.err != nil {
		for _, known := range notSentErrors {
			if known.is(r.err) {
				return processor.NotSent
			}
		}
		return processor.Unknown
	}
	for _, v := range verdicts {
		if v.status == r.status && v.code == r.code {
			return v.outcome
		}
	}
	return processor.Unknown
}

// notFound are the answers that say that the bank does not know an id.
var notFound = []failureCode{codeChargeUnknown, codeTransferUnknown, codeRefundUnknown}

// lookup classifies a question.
func (r response) lookup() processor.Lookup {
	if r.err != nil {
		return processor.LookupUnknown
	}
	if r.status == http.StatusOK && r.code == "" {
		return processor.Found
	}
	for _, code := range notFound {
		if r.status == code.status() && r.code == code {
			return processor.NotFound
		}
	}
	return processor.LookupUnknown
}

// evidence are the bank's words that prove a refusal.
func (r response) evidence() string {
	return fmt.Sprintf("bank answered %d %s", r.status, string(r.code))
}

// cause says why an outcome is not known, for the operator.
func (r response) cause() error {
	switch {
	case r.err != nil:
		return r.err
	case r.status == http.StatusOK:
		return nil
	default:
		return fmt.Errorf("sandbox: bank answered %d %s", r.status, string(r.code))
	}
}

// errGuard says that the caller's guard refused right before sending.
var errGuard = errors.New("sandbox: guard")

// guardFailed wraps what the guard said. A cancelled context may hide in it,
// and must not read as one that ended while the bank was at work.
func guardFailed(err error) error { return fmt.Errorf("%w: %w", errGuard, err) }

// beforeSending says whether ctx ended before anything left.
func beforeSending(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return guardFailed(err)
	}
	return nil
}
