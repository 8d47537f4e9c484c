package sim

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
)

// errDial is a connection that was refused.
var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// errReset is a connection that broke after the request was sent.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// newRecorder records an answer. Its code is 0 until the handler writes.
func newRecorder() *httptest.ResponseRecorder {
	return &httptest.ResponseRecorder{Body: &bytes.Buffer{}}
}

// recorded is the answer that was recorded.
func recorded(r *http.Request, w *httptest.ResponseRecorder) *http.Response {
	return response(r, w.Code, w.Header(), w.Body.Bytes())
}

func response(r *http.Request, status int, header http.Header, body []byte) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }

// readAll reads and closes the body of a request.
func readAll(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// textAfter is the JSON string that follows a prefix in a body, or "".
func textAfter(body []byte, prefix string) string {
	_, rest, _ := bytes.Cut(body, []byte(prefix))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(text)
}
