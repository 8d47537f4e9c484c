package accounthttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	"github.com/porteira/porteira/internal/processor"
)

// agent names the gateway to the processor.
const agent = "porteira"

// errRequest hides the text of the error, which has the path.
var errRequest = errors.New("accounthttp: the method or path of the request is invalid")

// send sends a request that has its budget.
func (c *Client) send(ctx context.Context, a access, r Request) Result {
	request, err := newRequest(ctx, r.Method, c.base+r.Path, r.Body)
	if err != nil {
		return notSent(err)
	}
	maps.Copy(request.Header, a.identity.header)
	if r.Body != nil {
		request.Header.Set("Content-Type", r.ContentType)
	}
	if a.token != nil {
		request.Header.Set("Authorization", "Bearer "+a.token.value)
	}
	if err := ctx.Err(); err != nil {
		return notSent(fmt.Errorf("accounthttp: before sending: %w", err))
	}
	if r.Guard != nil {
		if err := r.Guard(); err != nil {
			return notSent(fmt.Errorf("accounthttp: guard: %w", err))
		}
	}
	result := exchange(a.identity.transport, request, c.limit)
	result.Wait = c.budget.observe(result.status, result.header)
	if result.status != 0 && result.status < http.StatusInternalServerError {
		c.refused.Store(isRefusal(result.status))
	}
	if a.token != nil && result.status != 0 {
		a.identity.tokens.observe(a.token, result.status)
	}
	return result
}

// newRequest returns a request that a transport cannot repeat.
func newRequest(ctx context.Context, method, address string, body []byte) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, errRequest
	}
	request.GetBody = nil // else a transport may send the body again by itself
	request.Header.Set("User-Agent", agent)
	request.Header.Set("Accept", "application/json, application/problem+json")
	return request, nil
}

// exchange sends a request and reads its answer.
func exchange(transport http.RoundTripper, request *http.Request, limit int64) Result {
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	answer, err := transport.RoundTrip(request.WithContext(traced)) //nolint:bodyclose // read closes it
	if err == nil {
		return read(answer, limit)
	}
	result := Result{Cause: fmt.Errorf("accounthttp: no answer: %w", plain(err))}
	unsent := isUnsent(err)
	if _, ok := transport.(*http.Transport); ok { // the only one that surely calls the trace
		unsent = !connected.Load()
	}
	if unsent {
		result.Outcome = processor.NotSent
	}
	return result
}

// unsent are the errors that prove that there was no connection to write to.
var unsent = []struct {
	why string
	is  func(error) bool
}{
	{"the name does not resolve", isError[*net.DNSError]},
	{"the connection was not made", isDialError},
	{"the server's certificate is not trusted", isError[*tls.CertificateVerificationError]},
	{"the server's certificate is of an unknown authority", isError[x509.UnknownAuthorityError]},
	{"the server's certificate is for another host", isError[x509.HostnameError]},
	{"the server's certificate is invalid", isError[x509.CertificateInvalidError]},
}

func isUnsent(err error) bool {
	for _, known := range unsent {
		if known.is(err) {
			return true
		}
	}
	return false
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isDialError(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
}

// plain is err if its text cannot have bytes of the request or answer, else its type: the
// text of a malformed answer quotes it.
func plain(err error) error {
	for _, known := range []error{
		find[*net.DNSError](err), find[*net.OpError](err), find[*tls.CertificateVerificationError](err), find[x509.UnknownAuthorityError](err),
		find[x509.HostnameError](err), find[x509.CertificateInvalidError](err), find[tls.RecordHeaderError](err), find[tls.AlertError](err),
	} {
		if known != nil {
			return known
		}
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return fmt.Errorf("the connection broke (%T)", err)
}

func find[E error](err error) error {
	if found, ok := errors.AsType[E](err); ok {
		return found
	}
	return nil
}

// Why an answer cannot be read.
var (
	errTruncated = errors.New("accounthttp: the answer broke off")
	errSize      = errors.New("accounthttp: the answer is too large")
	errType      = errors.New("accounthttp: the answer is not plain JSON")
)

// read reads an answer to its end. A partial one, a large one, or one that is not JSON
// proves nothing: it may be from any proxy in between.
func read(answer *http.Response, limit int64) Result {
	defer func() { _ = answer.Body.Close() }()
	result := Result{status: answer.StatusCode, header: answer.Header}
	body, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	switch {
	case err != nil:
		result.Cause = fmt.Errorf("%w (status %d): %w", errTruncated, answer.StatusCode, plain(err))
	case int64(len(body)) > limit:
		result.Cause = fmt.Errorf("%w (status %d, limit %d bytes)", errSize, answer.StatusCode, limit)
	case len(body) > 0 && !isJSON(answer.Header), answer.Header.Get("Content-Encoding") != "":
		result.Cause = fmt.Errorf("%w (status %d)", errType, answer.StatusCode)
	default:
		result.Answer = &Answer{Status: answer.StatusCode, Header: answer.Header, Body: body}
	}
	return result
}

// isJSON reports whether a body is plain JSON by its type.
func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json"))
}
