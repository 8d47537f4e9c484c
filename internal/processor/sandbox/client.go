package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
)

// answerLimit is the largest answer that is read, in bytes.
const answerLimit = 1 << 20

// client calls a bank, and calls it once: it repeats nothing.
type client struct {
	base      string
	secret    string
	transport http.RoundTripper
}

// do sends one request. guard, if there is one, is asked last, right before
// the request is handed to the transport.
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
		request.Header.Set("Content-Type", jsonType)
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

// read takes an answer in. What is not whole, small and valid JSON of a known
// type is no answer.
func read(answer *http.Response) response {
	defer func() { _ = answer.Body.Close() }()
	if answer.Header.Get(faultHeader) == string(NotSent) {
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
	var problem problemBody
	if err := json.Unmarshal(body, &problem); err != nil || problem.Code == "" {
		return response{err: fmt.Errorf("%w (status %d)", errAnswerForm, answer.StatusCode)}
	}
	return response{status: answer.StatusCode, code: problem.Code}
}

// errRefusedBySandbox is what a refused connection looks like to a client.
var errRefusedBySandbox = fmt.Errorf("sandbox: fault %s: %w", NotSent,
	&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})

// parse reads a body that has an answer's form; names that it does not know
// are left alone, as a newer bank may add some.
func parse[T any](r *response) (value T) {
	if r.err == nil && r.status == http.StatusOK {
		if err := json.Unmarshal(r.body, &value); err != nil {
			r.err = errAnswerForm
		}
	}
	return value
}

// inProcess calls the bank's handler without a socket, in the caller's
// goroutine.
type inProcess struct{ bank *Bank }

// RoundTrip implements [http.RoundTripper].
func (t inProcess) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	r = r.WithContext(r.Context()) // a copy: the router writes into its request
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer func() { _ = r.Body.Close() }()
	w := &recorder{header: make(http.Header)}
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
			answer, err = nil, errors.Join(errAborted, r.Context().Err())
		} else if cause != nil {
			panic(cause)
		}
	}()
	t.bank.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err // whoever called has given up before the answer came
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// errAborted is a connection that broke.
var errAborted = errors.New("sandbox: the bank hung up")

// recorder keeps what a handler writes.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements [http.ResponseWriter].
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// inProcessURL is the address of a bank that has none.
const inProcessURL = "http://bank.invalid"

// newClient makes the client of a bank in this process, or of one at base.
func newClient(opts Options) (client, error) {
	if opts.Bank != nil {
		return client{inProcessURL, opts.Bank.opts.Secret, inProcess{opts.Bank}}, nil
	}
	if opts.Secret == "" || opts.Transport == nil {
		return client{}, errors.New("sandbox: a remote bank needs a secret and a transport")
	}
	if err := checkURL(opts.URL); err != nil {
		return client{}, err
	}
	return client{strings.TrimSuffix(opts.URL, "/"), opts.Secret, opts.Transport}, nil
}
