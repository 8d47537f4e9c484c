package wire

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/problem"
)

// largeBodies are bodies of 60 kB with as many invalid values as fit.
func largeBodies() map[string]string {
	repeated := func(before, one, after string) string {
		n := (60_000 - len(before) - len(after)) / len(one)
		return before + strings.TrimSuffix(strings.Repeat(one, n), ",") + after
	}
	numbered := func(before, after string) string {
		var names strings.Builder
		for i := 0; names.Len() < 50_000; i++ {
			names.WriteString(`"` + strings.Repeat("\u00e3", 3) + strings.Repeat("x", i%30) + string(rune('a'+i/30%26)) + string(rune('a'+i/780)) + `":0,`)
		}
		return before + strings.TrimSuffix(names.String(), ",") + after
	}
	return map[string]string{
		"items without members": repeated(`{"items":[`, "{},", "]}"),
		"items that are null":   repeated(`{"items":[`, "null,", "]}"),
		"metadata of numbers":   numbered(`{"metadata":{`, "}}"),
		"unknown members":       numbered(`{`, "}"),
		"values":                repeated(`{"items":[`, "0,", "]}"),
	}
}

// A body of 64 KiB with 30,000 invalid values got 30,000 errors, an answer of 2.2 MB.
func TestInvalidFieldsAreBounded(t *testing.T) {
	t.Parallel()
	for name, body := range largeBodies() {
		_, err := testDecoder.Payin([]byte(body))
		if err == nil {
			t.Fatalf("%s: accepted", name)
		}
		document := err.Document("request")
		if len(err.Fields) > 100 || len(document) > len(body) {
			t.Errorf("%s: %d errors in %d bytes for a body of %d", name, len(err.Fields), len(document), len(body))
		}
		if err.Kind == problem.MalformedJSON {
			if err.Detail != "The JSON has more than 8192 values at byte "+err.Detail[strings.LastIndex(err.Detail, " ")+1:] {
				t.Errorf("%s: detail is %q", name, err.Detail)
			}
			continue
		}
		if len(err.Fields) != 100 || !err.Truncated || !strings.Contains(string(document), `"errorsTruncated":true`) ||
			err.Detail != "More than 100 invalid fields. Only the first 100 are listed." {
			t.Errorf("%s: %d errors, truncated %v, %q", name, len(err.Fields), err.Truncated, err.Detail)
		}
	}
}

// The problem of a request with exactly as many invalid fields as are listed is complete.
func TestCompleteListIsNotTruncated(t *testing.T) {
	t.Parallel()
	var errs Errors
	for i := range errorsMax {
		errs.Add(atEntry("items", i, "title"), problem.CodeRequired, "is required")
	}
	errs.Add(atEntry("items", 0, "title"), problem.CodeRequired, "again")
	if err := errs.problem(problem.ValidationFailed); err.Truncated || len(err.Fields) != 100 || err.Detail != "100 invalid fields." {
		t.Errorf("truncated %v, %d fields, %q", err.Truncated, len(err.Fields), err.Detail)
	}
}

// An unknown field beyond the listed ones still makes the request a 400.
func TestUnknownFieldAfterManyErrors(t *testing.T) {
	t.Parallel()
	body := `{"items":[` + strings.TrimSuffix(strings.Repeat("0,", 200), ",") + `],"unknown":1}`
	if _, err := testDecoder.Payin([]byte(body)); err == nil || err.Kind != problem.UnknownField {
		t.Errorf("the problem is %v", err)
	}
}

func TestValuesOfBodyAreBounded(t *testing.T) {
	t.Parallel()
	bodyOf := func(values int) []byte { // the object, the array, and its entries
		return []byte(`{"x":[` + strings.TrimSuffix(strings.Repeat("0,", values-2), ",") + `]}`)
	}
	var q PayinRequest
	if err := decode(bodyOf(nodesMax), q.read); err == nil || err.Kind != problem.UnknownField {
		t.Errorf("%d values: %v", nodesMax, err)
	}
	if err := decode(bodyOf(nodesMax+1), q.read); err == nil || err.Kind != problem.MalformedJSON {
		t.Errorf("%d values: %v", nodesMax+1, err)
	}
}

// Lists are decoded up to one entry more than is allowed, which shows the error.
func TestDecodingStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	item := `{"title":"a","quantity":1,"unitPrice":1,"tangible":true},`
	var pairs strings.Builder
	for i := range 2000 {
		pairs.WriteString(`"k` + strings.Repeat("x", i%30) + string(rune('a'+i/30%26)) + string(rune('a'+i/780)) + `":"v",`)
	}
	for _, tt := range []struct{ body, want string }{
		{`{"items":[` + strings.TrimSuffix(strings.Repeat(item, 700), ",") + `]}`, "items"},
		{`{"metadata":{` + strings.TrimSuffix(pairs.String(), ",") + `}}`, "metadata"},
	} {
		var q PayinRequest
		err := decode([]byte(tt.body), func(v value) {
			q.read(v)
			q.Check(sandboxRules, &v.r.errs)
		})
		if len(q.Items.V) > itemsMax+1 || len(q.Metadata.V) > metadataMax+1 {
			t.Errorf("%s: %d items and %d pairs were decoded", tt.want, len(q.Items.V), len(q.Metadata.V))
		}
		found := false
		for _, f := range err.Fields {
			found = found || f.Field == tt.want && f.Code == problem.CodeTooLong
		}
		if !found {
			t.Errorf("%s: the errors are %v", tt.want, err.Fields)
		}
	}
}

// A card number is refused in every text of a request, and not repeated.
func TestCardNumbersAreRefusedInEveryText(t *testing.T) {
	t.Parallel()
	const card = "4111.1111.1111.1111"
	for _, tt := range []struct{ field, body string }{
		{"referenceId", strings.Replace(fullPayin, "pedido-1", "pedido "+card, 1)},
		{"webhookUrl", strings.Replace(fullPayin, "/hook", "/"+card, 1)},
		{"customer.name", strings.Replace(fullPayin, `"Maria`, `"Maria `+card, 1)},
		{"customer.email", strings.Replace(fullPayin, "m@example", "m"+card+"@example", 1)},
		{"customer.address.street", strings.Replace(fullPayin, "Rua A", card, 1)},
		{"customer.address.number", strings.Replace(fullPayin, `"10"`, `"`+card+`"`, 1)},
		{"customer.address.complement", strings.Replace(fullPayin, `"complement": null`, `"complement": "`+card+`"`, 1)},
		{"customer.address.neighborhood", strings.Replace(fullPayin, "Centro", card, 1)},
		{"customer.address.city", strings.Replace(fullPayin, "São Paulo", card, 1)},
		{"items[0].title", strings.Replace(fullPayin, "Livro", card, 1)},
		{"description", strings.Replace(fullPayin, `"x"`, `"`+card+`"`, 1)},
		{"metadata.a", strings.Replace(fullPayin, `"b"`, `"`+card+`"`, 1)},
		{"returnUrl", strings.Replace(fullPayin, `"expiresIn"`, `"returnUrl":"https://shop.example/`+card+`","expiresIn"`, 1)},
	} {
		_, err := testDecoder.Payin([]byte(tt.body))
		wantCardRefused(t, tt.field, err, card)
	}
	for field, change := range map[string][2]string{
		"referenceId":     {`"r1"`, `"` + card + `"`},
		"beneficiaryName": {`"Maria"`, `"` + card + `"`},
		"pixKey":          {"m@example.com", card + "@example.com"},
	} {
		_, err := testDecoder.Payout([]byte(strings.Replace(minimalPayout, change[0], change[1], 1)))
		wantCardRefused(t, field, err, card)
	}
}

func wantCardRefused(t *testing.T, field string, err *problem.Error, card string) {
	t.Helper()
	if err == nil || len(err.Fields) != 1 || err.Fields[0].Field != field || err.Fields[0].Code != problem.CodeNotAllowed {
		t.Errorf("%s: the problem is %+v", field, err)
		return
	}
	if strings.Contains(string(err.Document("request")), card) {
		t.Errorf("%s: the number is repeated", field)
	}
}
