package sandboxbank

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// InProcessURL is the address of a bank that is reached by its Transport.
const InProcessURL = "http://bank.invalid"

// Transport reaches the bank without a socket: it calls the handler in the
// caller's goroutine. Requests name [InProcessURL].
func (b *Bank) Transport() http.RoundTripper { return inProcess{b} }

type inProcess struct{ bank *Bank }

// errAborted is a connection that broke.
var errAborted = errors.New("sandboxbank: the bank hung up")

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
		return nil, err // the caller gave up before the answer came
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

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
