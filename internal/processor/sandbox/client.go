package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/accounthttp"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// client calls a bank.
type client struct{ http *accounthttp.Client }

// newClient checks the options.
func newClient(o Options) (client, error) {
	if o.Secret == "" || o.Transport == nil || !bankapi.IsURL(o.URL) {
		return client{}, errors.New("sandbox: the bank needs an HTTP address, a secret and a transport")
	}
	if o.Clock == nil {
		o.Clock = env.NewSystemClock()
	}
	c, err := accounthttp.New(accounthttp.Options{
		BaseURL: o.URL, Transport: o.Transport, Clock: o.Clock, Rate: o.Rate,
		Identity: accounthttp.Identity{Header: http.Header{"Authorization": {"Bearer " + o.Secret}}},
	})
	return client{c}, err
}

// do sends one request. guard, if not nil, is called right before the first byte. All that
// is not a GET is an effect.
func (c client) do(ctx context.Context, method, path string, in any, guard func() error) response {
	request := accounthttp.Request{Method: method, Path: path, Effect: method != http.MethodGet, Guard: guard}
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return response{failed: processor.NotSent, err: fmt.Errorf("sandbox: encode request: %w", err)}
		}
		request.Body, request.ContentType = body, bankapi.JSONType
	}
	result := c.http.Do(ctx, request)
	if result.Answer == nil {
		return response{failed: result.Outcome, wait: result.Wait, err: fmt.Errorf("sandbox: call bank: %w", result.Cause)}
	}
	return read(result)
}

// errAnswerForm means that an answer is not what the bank documents.
var errAnswerForm = errors.New("sandbox: bank's answer is not valid JSON")

// read reads the code of an error answer.
func read(result accounthttp.Result) response {
	answer := result.Answer
	if answer.Header.Get(bankapi.FaultHeader) == string(bankapi.NotSent) {
		return response{failed: processor.NotSent, err: errRefusedBySandbox}
	}
	if answer.Status == http.StatusOK {
		return response{status: answer.Status, body: answer.Body}
	}
	var problem bankapi.Problem
	if err := json.Unmarshal(answer.Body, &problem); err != nil || problem.Code == "" {
		return response{err: fmt.Errorf("%w (status %d)", errAnswerForm, answer.Status)}
	}
	return response{status: answer.Status, code: problem.Code, wait: result.Wait}
}

// errRefusedBySandbox is a client's view of a refused connection.
var errRefusedBySandbox = fmt.Errorf("sandbox: fault %s: %w", bankapi.NotSent,
	&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})

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
