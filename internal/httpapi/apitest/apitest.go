// Package apitest validates every request and answer in tests of the merchant API against
// the contract in api/openapi.yaml.
//
// Wrap the handler under test or the client's transport. The test fails if an answer is not
// in the contract, or if a request is accepted that the contract refuses.
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/porteira/porteira/api"
)

// uuid is the format of ids; the contract does not specify the version.
const uuid = `^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`

// requestID is the format of the header X-Request-Id.
var requestID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// contract is the parsed document, the same for all tests of a process.
type contract struct {
	doc    *openapi3.T
	router routers.Router
}

var load = sync.OnceValues(func() (*contract, error) {
	openapi3.DefineStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(uuid))
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.PlainBodyDecoder) // separators differ
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		return nil, err
	}
	doc.Servers = nil // tests use other addresses
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	return &contract{doc, router}, nil
})

// Document is the parsed contract.
func Document(t testing.TB) *openapi3.T {
	t.Helper()
	c, err := load()
	if err != nil {
		t.Fatal("apitest: the contract: ", err)
	}
	return c.doc
}

// Handler returns a handler that calls next and validates requests and answers. It is safe
// for concurrent use until t ends.
func Handler(t testing.TB, next http.Handler) http.Handler {
	t.Helper()
	Document(t)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := tap(r)
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r)
		Check(t, r, sent.Bytes(), rec.Code, rec.Header(), rec.Body.Bytes())
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	})
}

// Transport returns a RoundTripper that calls next and validates requests and answers.
func Transport(t testing.TB, next http.RoundTripper) http.RoundTripper {
	t.Helper()
	Document(t)
	return transport{t, next}
}

type transport struct {
	t    testing.TB
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (tr transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// Read first, because next may still be sending when the answer arrives.
	var sent []byte
	if r.Body != nil && r.Body != http.NoBody {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, fmt.Errorf("apitest: read request: %w", err)
		}
		_ = r.Body.Close()
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	answer, err := tr.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("apitest: read answer: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	Check(tr.t, r, sent, answer.StatusCode, answer.Header, body)
	return answer, nil
}

// tap collects the part of a request's body that is read.
func tap(r *http.Request) *bytes.Buffer {
	sent := &bytes.Buffer{}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, sent), r.Body}
	}
	return sent
}

// Check fails t if an accepted request or its answer violates the contract.
func Check(t testing.TB, r *http.Request, sent []byte, status int, header http.Header, body []byte) {
	t.Helper()
	c, err := load()
	if err != nil {
		t.Error("apitest: the contract: ", err)
		return
	}
	if err := c.check(r, sent, status, header, body); err != nil {
		t.Errorf("apitest: %s %s answered with %d: %v\n%s", r.Method, r.URL, status, err, body)
	}
}

func (c *contract) check(r *http.Request, sent []byte, status int, header http.Header, body []byte) error {
	if !requestID.MatchString(header.Get("X-Request-Id")) || header.Get("Cache-Control") != "no-store" {
		return fmt.Errorf("lacks X-Request-Id or Cache-Control: %v", header)
	}
	again := r.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(sent))
	again.ContentLength = int64(len(sent))
	if again.Method == http.MethodHead {
		again.Method = http.MethodGet
	}
	route, params, err := c.router.FindRoute(again)
	if err != nil || status == http.StatusNotFound && mayBeAbsent(r.URL.Path) {
		return c.checkOutside(status, header, body)
	}
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true,
		IncludeResponseStatus: true, SkipSettingDefaults: true, ExcludeResponseBody: r.Method == http.MethodHead,
	}
	input := &openapi3filter.RequestValidationInput{Request: again, PathParams: params, Route: route, Options: options}
	if taken := status >= 200 && status < 300; taken {
		if err := openapi3filter.ValidateRequest(again.Context(), input); err != nil {
			return fmt.Errorf("the contract refuses the request: %w", err)
		}
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: header, Options: options,
	}
	response.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(again.Context(), response); err != nil {
		return err
	}
	if answer := route.Operation.Responses.Status(status); len(answer.Value.Content) == 0 && len(body) > 0 {
		return errors.New("the contract has no body here")
	}
	return nil
}

// mayBeAbsent reports whether some gateways lack a path, or their router treats it as
// another one.
func mayBeAbsent(path string) bool {
	return strings.HasPrefix(path, "/sandbox/") || strings.HasPrefix(path, "/inbound/") || strings.HasSuffix(path, "/")
}

// checkOutside checks the answer to a path or method that is not in the contract.
func (c *contract) checkOutside(status int, header http.Header, body []byte) error {
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		return errors.New("the contract has no such operation")
	}
	if (status == http.StatusMethodNotAllowed) == (header.Get("Allow") == "") {
		return errors.New("the header Allow must be sent with 405 only")
	}
	if len(body) == 0 { // HEAD
		return nil
	}
	answer := c.doc.Components.Responses["NotFound"].Value.Content["application/problem+json"]
	var document any
	if err := json.Unmarshal(body, &document); err != nil {
		return err
	}
	return answer.Schema.Value.VisitJSON(document, openapi3.MultiErrors())
}
