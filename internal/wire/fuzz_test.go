package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/porteira/porteira/internal/httpapi/apitest"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/pixkey"
)

// hostileBodies are kinds of garbage that clients and attackers send.
func hostileBodies(good string) []string {
	amount := func(v string) string { return strings.Replace(good, `"amount":100`, `"amount":`+v, 1) }
	reference := func(v string) string { return strings.Replace(good, `"r1"`, v, 1) }
	return []string{
		good, "", "{}", "[]", "null", "0", `""`, "\xef\xbb\xbf" + good, good + good, good + "\x00", good[:len(good)/2],
		strings.Repeat("[", 10_000), strings.Repeat(`{"a":`, 10_000), `{"a":` + strings.Repeat("9", 5_000) + "}",
		amount("0.30000000000000004"), amount("1e400"), amount("-0"), amount(`"10,50"`), amount("9223372036854775808"),
		amount("1,\"amount\":2"), amount("1,\"Amount\":2"), amount("null"), amount("[1]"), amount("{}"), amount("01"), amount("NaN"),
		reference(`"\u0000"`), reference(`"\ud800"`), reference(`"\udfff\ud800"`), reference("\"\xff\""), reference("\"\x00\""),
		reference(`"😀"`), reference("\"\u202e\u202dabc\""), reference(`"../%00"`), reference(`""`),
		reference(`"` + strings.Repeat("a", 255) + `"`), reference(`"` + strings.Repeat("a", 256) + `"`),
		strings.Replace(good, "{", `{"status":"PAID","merchantId":"x","fee":0,`, 1),
		strings.Replace(good, "{", `{"items":[{},null,1,[{}]],"metadata":{"4111111111111111":"4111111111111111"},`, 1),
		strings.Replace(good, "{", `{"__proto__":{"a":1},"":"","`+strings.Repeat("n", 300)+`":1,`, 1),
	}
}

// FuzzDecodePayin checks that a body is accepted, in agreement with the contract,
// or refused as a client error that names the field.
func FuzzDecodePayin(f *testing.F) {
	for _, body := range append(hostileBodies(minimalPayin), fullPayin,
		strings.Replace(minimalPayin, "PIX", "BOLETO", 1), strings.Replace(minimalPayin, `"PIX"`, `"CREDIT_CARD","installments":12`, 1),
		strings.Replace(minimalPayin, `"PIX"`, `"BOLETO","dueDate":"2027-03-01"`, 1), strings.Replace(minimalPayin, "{", `{"webhookUrl":"https://a%41.example:/",`, 1)) {
		f.Add([]byte(body))
	}
	schema := apitest.Document(f).Paths.Find("/payin").Post.RequestBody.Value.Content["application/json"].Schema.Value
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := testDecoder.Payin(body)
		checkDecoded(t, body, schema, err)
		if err != nil {
			return
		}
		body = bytes.TrimPrefix(body, byteOrderMark)
		checkURL(t, q.WebhookURL)
		checkURL(t, q.ReturnURL)
		if q.Amount.V < 1 || !ValidReference(q.ReferenceID.V) {
			t.Errorf("accepted %+v", q)
		}
		var sent struct{ Customer, Items json.RawMessage }
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		same(t, sent.Customer, q.Personal.Customer)
		same(t, sent.Items, q.Personal.Items)
		checkFingerprint(t, body, q.Fingerprint, func(body []byte) (Fingerprint, *problem.Error) {
			q, err := testDecoder.Payin(body)
			return q.Fingerprint, err
		})
	})
}

// FuzzDecodePayout is FuzzDecodePayin for payouts.
func FuzzDecodePayout(f *testing.F) {
	for _, body := range hostileBodies(minimalPayout) {
		f.Add([]byte(body))
	}
	for _, key := range []string{"CPF 52998224724", "CNPJ 12ABC34501DE00", "PHONE 11987654321", "PHONE +5511987654321", "EVP 123E4567-e12b-12d1-a456-426655440000"} {
		keyType, value, _ := strings.Cut(key, " ")
		f.Add([]byte(strings.NewReplacer("EMAIL", keyType, "m@example.com", value).Replace(minimalPayout)))
	}
	schema := apitest.Document(f).Paths.Find("/payout").Post.RequestBody.Value.Content["application/json"].Schema.Value
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := testDecoder.Payout(body)
		checkDecoded(t, body, schema, err)
		if err != nil {
			return
		}
		body = bytes.TrimPrefix(body, byteOrderMark)
		checkURL(t, q.WebhookURL)
		normal, bad := pixkey.Normalize(pixkey.Type(q.PIXKeyType.V), q.PIXKey.V)
		if q.Amount.V < 1 || bad != nil || q.NormalKey != normal || !ValidReference(q.ReferenceID.V) {
			t.Errorf("accepted %+v, %v", q, bad)
		}
		checkFingerprint(t, body, q.Fingerprint, func(body []byte) (Fingerprint, *problem.Error) {
			q, err := testDecoder.Payout(body)
			return q.Fingerprint, err
		})
	})
}

// checkDecoded compares the result for a body with the standard library's and
// the contract's.
func checkDecoded(t *testing.T, body []byte, schema *openapi3.Schema, err *problem.Error) {
	t.Helper()
	if bytes.Count(body, []byte(","))+bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) >= nodesMax {
		return // perhaps too many values
	}
	body = bytes.TrimPrefix(body, byteOrderMark)
	formed := wellFormed(body)
	if err == nil {
		var value any
		if decodeErr := json.Unmarshal(body, &value); !formed || decodeErr != nil {
			t.Fatalf("accepted a body that is not a JSON object, is nested too deep, or has a duplicate field: %v", decodeErr)
		}
		if refusal := schema.VisitJSON(value, openapi3.MultiErrors()); refusal != nil {
			t.Fatalf("accepted, but the contract refuses it: %v", refusal)
		}
		return
	}
	if status := err.Kind.Status(); status != 400 && status != 422 {
		t.Errorf("answered with %d: %v", status, err)
	}
	if !json.Valid(err.Document("id")) {
		t.Errorf("the problem document is not JSON: %s", err.Document("id"))
	}
	// The standard library accepts half a surrogate pair.
	escapes := bytes.Contains(body, []byte(`\u`))
	if broken := err.Kind == problem.MalformedJSON || err.Kind == problem.DuplicateField; formed == broken && !escapes {
		t.Errorf("%v of a body that is well-formed: %v", err, formed)
	}
	if err.Kind != problem.MalformedJSON && len(err.Fields) == 0 {
		t.Errorf("%v names no field", err)
	}
}

// wellFormed reports whether a body is one JSON object in UTF-8, nested at most 8
// deep, without duplicate names.
func wellFormed(body []byte) bool {
	if !json.Valid(body) || !utf8.Valid(body) || !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return false
	}
	var names []map[string]bool // of the open objects; nil for arrays
	decoder, key := json.NewDecoder(bytes.NewReader(body)), false
	for {
		token, err := decoder.Token()
		if err != nil {
			return true // the end
		}
		inObject := len(names) > 0 && names[len(names)-1] != nil
		switch token {
		case json.Delim('{'):
			names, key = append(names, map[string]bool{}), true
		case json.Delim('['):
			names, key = append(names, nil), false
		case json.Delim('}'), json.Delim(']'):
			names = names[:len(names)-1]
			key = len(names) > 0 && names[len(names)-1] != nil
		default:
			if name, ok := token.(string); ok && inObject && key {
				if names[len(names)-1][name] {
					return false
				}
				names[len(names)-1][name], key = true, false
				continue
			}
			key = inObject
		}
		if len(names) > 8 {
			return false
		}
	}
}

// checkURL checks that an accepted URL can be delivered to.
func checkURL(t *testing.T, f Field[string]) {
	t.Helper()
	if f.Set && webhook.CheckURL(f.V, true) != nil {
		t.Errorf("%q is accepted, but cannot be delivered to: %v", f.V, webhook.CheckURL(f.V, true))
	}
}

// same checks that two JSON texts are equal but for white space.
func same(t *testing.T, sent, kept []byte) {
	t.Helper()
	if len(kept) == 0 && (len(sent) == 0 || string(sent) == "null") {
		return
	}
	var a, b bytes.Buffer
	if err := errors.Join(json.Compact(&a, sent), json.Compact(&b, kept)); err != nil || !bytes.Equal(a.Bytes(), kept) {
		t.Fatalf("sent %s, stored %s, %v", sent, kept, err)
	}
}

// checkFingerprint checks that the same request in another spelling has the same
// fingerprint, and that one with another amount differs in that.
func checkFingerprint(t *testing.T, body []byte, fp Fingerprint, decode func([]byte) (Fingerprint, *problem.Error)) {
	t.Helper()
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // keeps numbers as they are written
	if err := decoder.Decode(&members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if value == nil {
			delete(members, name)
		}
	}
	again := func() Fingerprint {
		text, err := json.MarshalIndent(members, " ", "\t") // sorted, and with other escapes
		if err != nil {
			t.Fatal(err)
		}
		fp, invalid := decode(text)
		if invalid != nil {
			t.Fatalf("in another spelling it is refused: %v\n%s", invalid, text)
		}
		return fp
	}
	if differing := again().Differing(fp); len(differing) > 0 {
		t.Fatalf("in another spelling it differs in %q", differing)
	}
	members["amount"] = 7
	differing := again().Differing(fp)
	if changed := !bytes.Contains(body, []byte("7")); changed && !slices.Equal(differing, []string{"amount"}) || len(differing) > 1 {
		t.Fatalf("with another amount it differs in %q", differing)
	}
}
