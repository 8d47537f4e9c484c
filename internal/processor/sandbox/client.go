package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// answerLimit is the largest answer that is read, in bytes.
const answerLimit = 1 << 20

// client calls a bank; it never repeats a call.
type client struct {
	base      string
	secret    string
	transport http.RoundTripper
}

// do sends one request. guard, if not nil, is called last, right before the
// transport gets the request.
func (c *client) do(ctx context.Context, method, path string, in any, guard func() error) response {
	var content io.Reader
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return response{err: guardFailed(err)}
		}
		content = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return response{err: guardFailed(err)}
	}
	request.Header.Set("Authorization", "Bearer "+c.secret)
	if in != nil {
		request.Header.Set("Content-Type", bankapi.JSONType)
	}
	if err := beforeSending(ctx); err != nil {
		return response{err: err}
	}
	if guard != nil {
		if err := guard(); err != nil {
			return response{err: guardFailed(err)}
		}
	}
	answer, err := c.transport.RoundTrip(request) //nolint:bodyclose // read closes it
	if err != nil {
		return response{err: fmt.Errorf("sandbox: call bank: %w", err)}
	}
	return read(answer)
}

// Why an answer cannot be read.
var (
	errAnswerCut  = errors.New("sandbox: bank's answer broke off")
	errAnswerSize = errors.New("sandbox: bank's answer is larger than 1 MiB")
	errAnswerType = errors.New("sandbox: bank's answer is not plain application/json")
	errAnswerForm = errors.New("sandbox: bank's answer is not valid JSON")
)

// read reads an answer. It accepts only a complete, small and valid JSON body.
func read(answer *http.Response) response {
	defer func() { _ = answer.Body.Close() }()
	if answer.Header.Get(bankapi.FaultHeader) == string(bankapi.NotSent) {
		return response{err: errRefusedBySandbox}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit+1))
	switch {
	case err != nil:
		return response{err: fmt.Errorf("%w: %w", errAnswerCut, err)}
	case len(body) > answerLimit:
		return response{err: errAnswerSize}
	case !isJSON(answer.Header) || answer.Header.Get("Content-Encoding") != "":
		return response{err: fmt.Errorf("%w (status %d)", errAnswerType, answer.StatusCode)}
	}
	if answer.StatusCode == http.StatusOK {
		return response{status: answer.StatusCode, body: body}
	}
	var problem bankapi.Problem
	if err := json.Unmarshal(body, &problem); err != nil || problem.Code == "" {
		return response{err: fmt.Errorf("%w (status %d)", errAnswerForm, answer.StatusCode)}
	}
	return response{status: answer.StatusCode, code: problem.Code, wait: retryAfter(answer.Header)}
}

// errRefusedBySandbox is a client's view of a refused connection.
var errRefusedBySandbox = fmt.Errorf("sandbox: fault %s: %w", bankapi.NotSent,
	&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})

// isJSON reports whether a body is plain JSON.
func isJSON(h http.Header) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && media == bankapi.JSONType
}

// parse reads the body of an answer. It ignores unknown members, which a newer
// bank may add.
func parse[T any](r *response) (value T) {
	if r.err == nil && r.status == http.StatusOK {
		if err := json.Unmarshal(r.body, &value); err != nil {
			r.err = errAnswerForm
		}
	}
	return value
}

// newClient checks the options.
func newClient(o Options) (client, error) {
	if o.Secret == "" || o.Transport == nil || !bankapi.IsURL(o.URL) {
		return client{}, errors.New("sandbox: the bank needs an HTTP address, a secret and a transport")
	}
	return client{strings.TrimSuffix(o.URL, "/"), o.Secret, o.Transport}, nil
}
