package api_test

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/porteira/porteira/api"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

var update = flag.Bool("update", false, "write openapi.json anew")

func TestJSONIsTheContract(t *testing.T) {
	t.Parallel()
	compact, err := load(t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := append(compact, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(api.JSON(), want) {
		t.Error("openapi.json is stale: go test ./api -update")
	}
}

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestContractIsValid(t *testing.T) {
	t.Parallel()
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

// Every operation with credentials can be limited.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	for path, item := range load(t).Paths.Map() {
		for method, operation := range item.Operations() {
			isPublic := operation.Security != nil && len(*operation.Security) == 1 && len((*operation.Security)[0]) == 0
			limited := operation.Responses.Status(429) != nil
			if !isPublic && !limited {
				t.Errorf("%s %s lacks the response 429", method, path)
			}
		}
	}
}

// The enumerations of the contract are those of the code.
func TestEnumerations(t *testing.T) {
	t.Parallel()
	doc := load(t)
	for name, want := range map[string][]string{
		"PayinStatus":   texts(payment.PayinStatuses),
		"PayoutStatus":  texts(payment.PayoutStatuses),
		"PaymentMethod": texts(payment.Methods),
		"ProblemCode":   texts(problem.Kinds()),
	} {
		var got []string
		for _, v := range doc.Components.Schemas[name].Value.Enum {
			got = append(got, v.(string))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// Every operation, parameter and field says what it is; every operation has a
// name, and every answer that is a problem has a problem document.
func TestContractExplainsItself(t *testing.T) {
	t.Parallel()
	doc := load(t)
	ids := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s: needs a name of its own, a summary and one tag", where)
			}
			ids[op.OperationID] = true
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: parameter %s is not described", where, p.Value.Name)
				}
			}
			checkAnswers(t, where, op)
		}
	}
	for name, schema := range doc.Components.Schemas {
		checkSchema(t, name, schema)
	}
}

func checkAnswers(t *testing.T, where string, op *openapi3.Operation) {
	t.Helper()
	for status, answer := range op.Responses.Map() {
		if answer.Value.Headers["X-Request-Id"] == nil {
			t.Errorf("%s: %s has no X-Request-Id", where, status)
		}
		if strings.HasPrefix(status, "2") {
			continue
		}
		media := answer.Value.Content["application/problem+json"]
		if media == nil || media.Schema.Ref != "#/components/schemas/Problem" {
			t.Errorf("%s: %s is no problem document", where, status)
		}
	}
}

func checkSchema(t *testing.T, where string, ref *openapi3.SchemaRef) {
	t.Helper()
	if ref == nil || ref.Ref != "" {
		return
	}
	s := ref.Value
	if s.Description == "" {
		t.Errorf("%s is not described", where)
	}
	if s.Type.Is("object") && s.AdditionalProperties.Has == nil && s.AdditionalProperties.Schema == nil {
		t.Errorf("%s does not say whether it may hold more", where)
	}
	if scalar := s.Type.Is("string") || s.Type.Is("integer") || s.Type.Is("boolean"); scalar && s.Example == nil && !strings.HasSuffix(where, "nextCursor") {
		t.Errorf("%s has no example", where)
	}
	for name, property := range s.Properties {
		checkSchema(t, where+"."+name, property)
	}
}
