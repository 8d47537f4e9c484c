package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// response is the result of one call of the bank: an answer, or err.
type response struct {
	status int
	code   bankapi.Code  // of an error answer
	body   []byte        // of another one
	err    error         // no answer, or none that can be read
	wait   time.Duration // that the bank named in an error answer
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
	{http.StatusUnauthorized, bankapi.CodeUnauthorized, processor.Unknown, "the credentials need manual review; an earlier request may have had its effect"},
}

// notSentErrors are the connection errors that prove that no byte of the request
// left. Any other error is Unknown.
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
	{"our own guard refused", func(err error) bool { return errors.Is(err, errGuard) }},
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isDialError(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
}

// outcome classifies a call with an effect.
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

// notFound are the answers to an id that the bank has never seen.
var notFound = []bankapi.Code{bankapi.CodeChargeUnknown, bankapi.CodeTransferUnknown, bankapi.CodeRefundUnknown}

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

// evidence is the bank's answer that proves a refusal.
func (r response) evidence() string {
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

// retryMax bounds the wait that a bank names.
const retryMax = 24 * time.Hour

// retryAfter is the wait in an answer's Retry-After, in seconds or until a time, as the
// answer's Date counts it; 0 if it has none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, retryMax)
	}
	until, err := http.ParseTime(text)
	sent, dateErr := http.ParseTime(h.Get("Date"))
	if err != nil || dateErr != nil {
		return 0
	}
	return min(max(until.Sub(sent), 0), retryMax)
}

// errGuard says that the caller's guard failed right before sending.
var errGuard = errors.New("sandbox: guard")

// guardFailed wraps the guard's error. A canceled context in it must not look
// like one that ended during the call.
func guardFailed(err error) error { return fmt.Errorf("%w: %w", errGuard, err) }

// beforeSending returns an error if ctx ended before anything left.
func beforeSending(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return guardFailed(err)
	}
	return nil
}
