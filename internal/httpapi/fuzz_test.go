package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// hostileBodies are kinds of rubbish that clients and attackers send.
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

// FuzzDecodePayin: whatever is sent is accepted or told to be the client's fault.
func FuzzDecodePayin(f *testing.F) {
	for _, body := range append(hostileBodies(minimalPayin), fullPayin) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decodePayin(body, decodingForTests)
		checkDecoded(t, body, err)
		if err != nil {
			return
		}
		if q.Personal.Customer != nil && !json.Valid(q.Personal.Customer) || q.Personal.Items != nil && !json.Valid(q.Personal.Items) {
			t.Errorf("personal data is no JSON: %s %s", q.Personal.Customer, q.Personal.Items)
		}
		if q.Amount.V < 1 || !payment.ValidReference(q.ReferenceID.V) {
			t.Errorf("accepted %+v", q)
		}
	})
}

// FuzzDecodePayout is FuzzDecodePayin for payouts.
func FuzzDecodePayout(f *testing.F) {
	for _, body := range hostileBodies(minimalPayout) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decodePayout(body, decodingForTests)
		checkDecoded(t, body, err)
		if err == nil && (q.Amount.V < 1 || q.NormalKey == "" || !payment.ValidReference(q.ReferenceID.V)) {
			t.Errorf("accepted %+v", q)
		}
	})
}

func checkDecoded(t *testing.T, body []byte, err *problem.Error) {
	t.Helper()
	if err == nil {
		if !json.Valid(body) {
			t.Errorf("accepted what is no JSON")
		}
		return
	}
	if status := err.Kind.Status(); status != 400 && status != 422 {
		t.Errorf("answered with %d: %v", status, err)
	}
	if !json.Valid(err.Document("id")) {
		t.Errorf("the problem document is no JSON: %s", err.Document("id"))
	}
	if err.Kind != problem.MalformedJSON && len(err.Fields) == 0 {
		t.Errorf("%v names no field", err)
	}
}
