package problem_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

// The contract's table of errors, status by status.
func TestStatusOfEachKind(t *testing.T) {
	t.Parallel()
	contract := map[int]string{
		400: "malformed_json malformed_csv unknown_field duplicate_field",
		401: "unauthorized",
		403: "forbidden_scope forbidden_ip",
		404: "not_found",
		405: "method_not_allowed",
		409: "reference_conflict invalid_state",
		413: "body_too_large",
		415: "unsupported_media_type",
		422: "validation_failed insufficient_balance limit_exceeded refund_not_possible method_not_enabled",
		429: "rate_limited",
		500: "internal_error",
		502: "processor_refused",
		503: "overloaded unavailable",
		504: "processor_timeout",
	}
	total := 0
	for status, codes := range contract {
		for code := range strings.FieldsSeq(codes) {
			total++
			if got := problem.Kind(code).Status(); got != status {
				t.Errorf("status of %s is %d, want %d", code, got, status)
			}
		}
	}
	if len(problem.Kinds()) != total {
		t.Errorf("%d kinds, want %d", len(problem.Kinds()), total)
	}
	if got := problem.Kind("unlisted").Status(); got != http.StatusInternalServerError {
		t.Errorf("status of an unlisted kind is %d", got)
	}
}

// docs/errors.md explains exactly these kinds, each under the heading of its
// status; "type" links to the heading.
func TestDocumentationAgrees(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]int{}
	status := 0
	for _, heading := range regexp.MustCompile(`(?m)^(##|###) (\w+)$`).FindAllStringSubmatch(string(text), -1) {
		if heading[1] == "##" {
			status, _ = strconv.Atoi(heading[2])
			continue
		}
		documented[heading[2]] = status
	}
	for _, kind := range problem.Kinds() {
		if documented[string(kind)] != kind.Status() {
			t.Errorf("%s is documented under %d, want %d", kind, documented[string(kind)], kind.Status())
		}
		delete(documented, string(kind))
	}
	for code := range documented {
		t.Errorf("%s is documented but does not exist", code)
	}
	for _, code := range []string{
		problem.CodeRequired, problem.CodeInvalidType, problem.CodeInvalidFormat, problem.CodeOutOfRange,
		problem.CodeTooShort, problem.CodeTooLong, problem.CodeNotAllowed, problem.CodeUnknownField,
	} {
		if !bytes.Contains(text, []byte("| `"+code+"` |")) {
			t.Errorf("field code %s is not documented", code)
		}
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	e := problem.New(problem.ValidationFailed, "1 invalid field.").
		WithFields(problem.FieldError{Field: "amount", Code: problem.CodeRequired, Detail: "is required"}).
		With(errors.New("the cause stays inside"))
	w := httptest.NewRecorder()
	problem.Write(w, e, "abc")
	want := `{"type":"/docs/errors#validation_failed","title":"Validation failed","status":422,` +
		`"detail":"1 invalid field.","code":"validation_failed","requestId":"abc",` +
		`"errors":[{"field":"amount","code":"required","detail":"is required"}]}`
	if got := w.Body.String(); got != want {
		t.Errorf("document is\n%s\nwant\n%s", got, want)
	}
	if w.Code != 422 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, type %q", w.Code, w.Header().Get("Content-Type"))
	}
	if w.Header().Get("Retry-After") != "" {
		t.Error("a permanent error has a Retry-After")
	}
}

func TestDocumentIsAlwaysJSON(t *testing.T) {
	t.Parallel()
	e := problem.New(problem.UnknownField, "x").WithFields(problem.FieldError{Field: "\xff"})
	if doc := e.Document("abc"); !json.Valid(doc) || !bytes.Contains(doc, []byte(`"code":"unknown_field"`)) {
		t.Errorf("document is %s", doc)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  *problem.Error
		want string
	}{
		{problem.New(problem.Overloaded, ""), "1"},
		{problem.New(problem.Unavailable, ""), "1"},
		{problem.New(problem.RateLimited, "").WithRetryAfter(1001 * time.Millisecond), "2"},
		{problem.New(problem.ProcessorTimeout, "").WithRetryAfter(time.Millisecond), "1"},
		{problem.New(problem.NotFound, ""), ""},
	} {
		w := httptest.NewRecorder()
		problem.Write(w, tt.err, "")
		if got := w.Header().Get("Retry-After"); got != tt.want {
			t.Errorf("%v: Retry-After is %q, want %q", tt.err, got, tt.want)
		}
	}
}

// The headers of a quota replace those of a rate that let the request pass.
func TestQuota(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		quota         problem.Quota
		limit, policy string
	}{
		{problem.Quota{Name: "tests", Most: 3}, `"tests";r=0;t=15`, `"tests";q=3;qu="concurrent-requests"`},
		{problem.Quota{Name: "budget", Most: 7, Window: 1500 * time.Millisecond}, `"budget";r=0;t=15`, `"budget";q=7;w=2`},
		{problem.Quota{}, `"credential";r=394;t=1`, `"credential";q=400;w=2`},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("RateLimit", `"credential";r=394;t=1`)
		w.Header().Set("RateLimit-Policy", `"credential";q=400;w=2`)
		problem.Write(w, problem.New(problem.RateLimited, "").WithQuota(tt.quota, 15*time.Second), "")
		h := w.Header()
		if h.Get("Retry-After") != "15" || h.Get("RateLimit") != tt.limit || h.Get("RateLimit-Policy") != tt.policy {
			t.Errorf("%+v: headers are %v", tt.quota, h)
		}
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	if problem.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	for _, tt := range []struct {
		err  error
		want problem.Kind
	}{
		{problem.New(problem.InvalidState, "x"), problem.InvalidState},
		{fmt.Errorf("flow: cancel: %w", problem.New(problem.InvalidState, "x")), problem.InvalidState},
		{fmt.Errorf("store: begin: %w", context.DeadlineExceeded), problem.Unavailable},
		{fmt.Errorf("store: begin: %w", context.Canceled), problem.Unavailable},
		{errors.New("disk on fire at /dev/sda"), problem.InternalError},
	} {
		got := problem.From(tt.err)
		if got.Kind != tt.want || !problem.Is(got, tt.want) || problem.Is(got, "other") {
			t.Errorf("From(%v) is %v, want %s", tt.err, got, tt.want)
		}
		if bytes.Contains(got.Document(""), []byte("disk on fire")) {
			t.Error("the cause is shown to the client")
		}
		if !errors.Is(got, got.Cause) && got.Cause != nil {
			t.Error("the cause is not kept for the log")
		}
	}
}

// A shared error is a template: changes to a copy do not reach it.
func TestCopies(t *testing.T) {
	t.Parallel()
	kept := problem.New(problem.ValidationFailed, "x").WithFields(problem.FieldError{Field: "a"})
	kept.Fields = slices.Grow(kept.Fields, 4)
	one := kept.WithFields(problem.FieldError{Field: "b"})
	two := kept.WithFields(problem.FieldError{Field: "c"})
	if one.Fields[1].Field != "b" || two.Fields[1].Field != "c" || len(kept.Fields) != 1 {
		t.Errorf("copies share fields: %v %v %v", kept, one, two)
	}
	if text := kept.With(errors.New("why")).Error(); text != "validation_failed: x: why" {
		t.Errorf("text is %q", text)
	}
}
