package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// testDecoder has the rules of the sandbox and a fixed key.
var testDecoder = &Decoder{
	Merchant: payment.ID{1},
	Rules:    Rules{AllowHTTP: true, Today: "2026-03-01"},
	MAC: func(data []byte) [32]byte {
		h := hmac.New(sha256.New, []byte("a key for tests"))
		h.Write(data)
		return [32]byte(h.Sum(nil))
	},
}

const minimalPayin = `{"paymentMethod":"PIX","amount":100,"referenceId":"r1","customer":{"name":"Maria","document":"52998224725"}}`

const fullPayin = `{
  "paymentMethod": "PIX", "amount": 12345, "referenceId": "pedido-1", "webhookUrl": "https://shop.example/hook",
  "customer": {"name": "Maria \u0041\u00e7\u00e3o", "email": "m@example.com", "document": "52998224725", "phone": "11987654321",
    "address": {"street": "Rua A", "number": "10", "complement": null, "neighborhood": "Centro", "city": "São Paulo",
      "state": "SP", "zipCode": "01001-000", "country": "BR"}},
  "items": [ {"title": "Livro", "quantity": 1, "unitPrice": 12345, "tangible": true} ],
  "expiresIn": 600, "description": "x", "metadata": {"a": "b", "c": null}
}`

const minimalPayout = `{"amount":100,"pixKey":"m@example.com","pixKeyType":"EMAIL","beneficiaryName":"Maria",` +
	`"beneficiaryDocument":"52998224725","referenceId":"r1"}`

func TestDecodeFullPayin(t *testing.T) {
	t.Parallel()
	q, err := testDecoder.Payin([]byte(fullPayin))
	if err != nil {
		t.Fatal(err, err.Fields)
	}
	c := q.Customer.V
	if q.Amount.V != 12345 || c.Name.V != "Maria Ação" || c.Address.V.ZipCode.V != "01001-000" || c.Address.V.Complement.Set {
		t.Errorf("request is %+v", q)
	}
	if len(q.Items.V) != 1 || !q.Items.V[0].Tangible.V || q.ExpiresIn.V != 600 || len(q.Metadata.V) != 1 || q.DueDate.Set {
		t.Errorf("request is %+v", q)
	}
	wantItems := `[{"title":"Livro","quantity":1,"unitPrice":12345,"tangible":true}]`
	if string(q.Personal.Items) != wantItems {
		t.Errorf("items are stored as %s", q.Personal.Items)
	}
	if got := string(q.Personal.Customer); !strings.HasPrefix(got, `{"name":"Maria \u0041\u00e7\u00e3o","email":`) {
		t.Errorf("the customer is stored as %s", got)
	}
}

func TestDecodeProblems(t *testing.T) {
	t.Parallel()
	withField := func(field string) string { return strings.Replace(minimalPayin, "{", "{"+field+",", 1) }
	deep := strings.Repeat(`{"a":`, 8) + "1" + strings.Repeat("}", 8)
	for _, tt := range []struct {
		body string
		kind problem.Kind // "" for a valid body
		want string       // invalid fields, separated by commas
	}{
		{minimalPayin, "", ""},
		{" \r\n\t" + minimalPayin + " \n", "", ""},
		{"", problem.MalformedJSON, ""},
		{" ", problem.MalformedJSON, ""},
		{"\xef\xbb\xbf" + minimalPayin, "", ""}, {"\xef\xbb\xbf", problem.MalformedJSON, ""}, {"\xef\xbb\xbf\xef\xbb\xbf" + minimalPayin, problem.MalformedJSON, ""},
		{minimalPayin + "x", problem.MalformedJSON, ""},
		{minimalPayin + minimalPayin, problem.MalformedJSON, ""},
		{minimalPayin + "\x00", problem.MalformedJSON, ""},
		{minimalPayin[:len(minimalPayin)-1], problem.MalformedJSON, ""},
		{"[]", problem.MalformedJSON, ""}, {"null", problem.MalformedJSON, ""}, {"1", problem.MalformedJSON, ""},
		{"{'a':1}", problem.MalformedJSON, ""}, {`{"a":1,}`, problem.MalformedJSON, ""}, {`{"a":01}`, problem.MalformedJSON, ""},
		{`{"a":NaN}`, problem.MalformedJSON, ""}, {`{"a":"` + "\n" + `"}`, problem.MalformedJSON, ""}, {`{"a":+1}`, problem.MalformedJSON, ""},
		{withField(`"description":"` + "\xff" + `"`), problem.MalformedJSON, ""},
		{withField(`"description":"\ud800"`), problem.MalformedJSON, ""},
		{withField(`"description":"\udc00\ud800"`), problem.MalformedJSON, ""},
		{withField(`"description":"\ud83d\ude00"`), "", ""},
		{withField(`"description":null`), "", ""},
		{deep, problem.UnknownField, "a unknown_field, amount required, customer required, paymentMethod required, referenceId required"},
		{`{"a":` + deep + `}`, problem.MalformedJSON, ""},
		{strings.Repeat("[", 60_000), problem.MalformedJSON, ""},
		{withField(`"amount":1`), problem.DuplicateField, "amount not_allowed"},
		{withField(`"\u0061mount":1`), problem.DuplicateField, "amount not_allowed"},
		{`{"customer":{"address":{"city":"a","city":"b"}}}`, problem.DuplicateField, "customer.address.city not_allowed"},
		{`{"items":[{},{"title":"a","quantity":1,"title":"b"}]}`, problem.DuplicateField, "items[1].title not_allowed"},
		{`{"1":[[],[],[{"2":0,"2":1}]]}`, problem.DuplicateField, `["1"][2][0]["2"] not_allowed`},
		{withField(`"Amount":1`), problem.UnknownField, "Amount unknown_field"},
		{withField(`"status":null`), problem.UnknownField, "status unknown_field"},
		{withField(`"merchantId":"x","fee":0,"items":[{"price":1},[1],null]`), problem.UnknownField,
			"fee unknown_field, items[0].price unknown_field, items[0].quantity required, items[0].tangible required, " +
				"items[0].title required, items[0].unitPrice required, items[1] invalid_type, items[2] invalid_type, merchantId unknown_field"},
		{withField(`"items":[[{"x":1}]]`), problem.ValidationFailed, "items[0] invalid_type"},
		{withField(`"items":{}`), problem.ValidationFailed, "items invalid_type"},
		{withField(`"metadata":{"a":1,"b.c":[]}`), problem.ValidationFailed, `metadata.a invalid_type, metadata["b.c"] invalid_type`},
		{withField(`"metadata":[],"description":"","dueDate":"","webhookUrl":"","returnUrl":""`), "", ""},
		{withField(`"metadata":{"a":""}`), "", ""},
		{withField(`"metadata":[1]`), problem.ValidationFailed, `metadata invalid_type`},
		{strings.Replace(minimalPayin, `"Maria"`, `"Maria","email":"","phone":"","address":[]`, 1), "", ""},
		{strings.Replace(minimalPayin, `"Maria"`, `"Maria","address":{"street":"","state":"","zipCode":"","country":""}`, 1), "", ""},
		{strings.Replace(minimalPayin, `"Maria"`, `""`, 1), problem.ValidationFailed, "customer.name required"},
		{`{"customer":[],"amount":""}`, problem.ValidationFailed, "amount invalid_type, customer required, paymentMethod required, referenceId required"},
		{withField(`"expiresIn":"600"`), problem.ValidationFailed, "expiresIn invalid_type"},
		{`{"customer":"x","amount":null}`, problem.ValidationFailed,
			"amount required, customer invalid_type, paymentMethod required, referenceId required"},
		{withField(`"items":[{"title":1,"quantity":true,"unitPrice":"1","tangible":0}]`), problem.ValidationFailed,
			"items[0].quantity invalid_type, items[0].tangible invalid_type, items[0].title invalid_type, items[0].unitPrice invalid_type"},
	} {
		_, err := testDecoder.Payin([]byte(tt.body))
		if (err == nil) != (tt.kind == "") || err != nil && err.Kind != tt.kind {
			t.Errorf("%.60q: problem is %v, want %s", tt.body, err, tt.kind)
			continue
		}
		if got := invalidOf(err); got != tt.want {
			t.Errorf("%.60q: invalid fields are %s, want %s", tt.body, got, tt.want)
		}
	}
}

func invalidOf(err *problem.Error) string {
	if err == nil {
		return ""
	}
	var list []string
	for _, f := range err.Fields {
		list = append(list, f.Field+" "+f.Code)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Amounts are never rounded: only JSON integers are accepted.
func TestDecodeIntegers(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"1": "", "99999999999": "",
		"0": "out_of_range", "-1": "out_of_range", "100000000000": "out_of_range",
		"9223372036854775807": "out_of_range", "9223372036854775808": "out_of_range", "-9223372036854775809": "out_of_range",
		"1" + strings.Repeat("0", 400): "out_of_range",
		"1.0":                          "invalid_type", "1e2": "invalid_type", "1E2": "invalid_type", "1e400": "invalid_type", "-0": "invalid_type",
		"0.30000000000000004": "invalid_type", `"100"`: "invalid_type", `"10,50"`: "invalid_type", "true": "invalid_type",
		"[100]": "invalid_type", "{}": "invalid_type", "null": "required",
	} {
		body := strings.Replace(minimalPayout, `"amount":100`, `"amount":`+number, 1)
		_, err := testDecoder.Payout([]byte(body))
		if want != "" {
			want = "amount " + want
		}
		if got := invalidOf(err); got != want {
			t.Errorf("%s: %q, want %q", number, got, want)
		}
	}
}

func TestDecodePayout(t *testing.T) {
	t.Parallel()
	q, err := testDecoder.Payout([]byte(minimalPayout))
	if err != nil || q.Amount.V != 100 || q.NormalKey != "m@example.com" || q.WebhookURL.Set {
		t.Errorf("request is %+v with %v", q, err)
	}
	_, err = testDecoder.Payout([]byte(`{"x":1,"pixKey":2}`))
	want := "amount required, beneficiaryDocument required, beneficiaryName required, " +
		"pixKey invalid_type, pixKeyType required, referenceId required, x unknown_field"
	if got := invalidOf(err); err.Kind != problem.UnknownField || got != want {
		t.Errorf("invalid fields are %s", got)
	}
}

// What is wrong with a value is said to somebody who believes that it is right.
func TestDetails(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ from, to, want string }{
		{`100`, `"12990"`, "must be a number, not a string: an integer of cents: 1290 is R$ 12,90"},
		{`100`, `12.90`, "must be an integer of cents: 1290 is R$ 12,90"},
		{`100`, `1e2`, "must be an integer of cents: 1290 is R$ 12,90"},
		{`"52998224725"`, `52998224725`, "must be a string: put it in quotes"},
		{`"Maria"`, `"Maria","email":"m@a.br "`, "must be an email address, without blanks around it"},
		{`"Maria"`, `" "`, "is required: must have a visible character"},
		{`100`, `100,"items":[{"title":"a","quantity":"1","unitPrice":1,"tangible":true}]`, "must be a number, not a string: an integer without fraction or exponent"},
		{`100`, `100,"items":[{"title":"a","quantity":1,"unitPrice":1,"tangible":"true"}]`, "must be true or false, without quotes"},
	} {
		_, err := testDecoder.Payin([]byte(strings.Replace(minimalPayin, row.from, row.to, 1)))
		if err == nil || len(err.Fields) != 1 || err.Fields[0].Detail != row.want {
			t.Errorf("%s: %v, want %s", row.to, err.Fields, row.want)
		}
	}
}

// A disabled method has its own code.
func TestDecodeMethodNotEnabled(t *testing.T) {
	t.Parallel()
	d := *testDecoder
	d.Rules.Methods = []payment.Method{payment.Boleto}
	if _, err := d.Payin([]byte(minimalPayin)); err == nil || err.Kind != problem.MethodNotEnabled {
		t.Errorf("problem is %v", err)
	}
}

// Problems never repeat values, nor a field name that contains a card number.
func TestDecodeNeverRepeats(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"amount":"canary"}`, `{"referenceId":["canary"]}`, `{"customer":{"document":"canary"}}`, `{"canary`, `{"a":canary}`,
		`{"4111111111111111":1}`, `{"metadata":{"4111 1111 1111 1111":"4111111111111111"}}`,
	} {
		_, err := testDecoder.Payin([]byte(body))
		document := string(err.Document("id"))
		if strings.Contains(document, "canary") || strings.Contains(document, "1111") {
			t.Errorf("the problem of %s is %s", body, document)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(body string, d *Decoder) Fingerprint {
		q, err := d.Payin([]byte(body))
		if err != nil {
			t.Fatal(body, err, err.Fields)
		}
		return q.Fingerprint
	}
	base := `{"paymentMethod":"PIX","amount":100,"referenceId":"r1","customer":{"name":"Ana","document":"52998224725"},"metadata":{"a":"1","b":"2"}}`
	first := of(base, testDecoder)
	for _, tt := range []struct{ body, differing string }{
		{base, ""},
		{`{ "customer":{"document":"52998224725", "name":"\u0041na"}, "metadata":{"b":"2","c":null,"a":"1"},
		   "referenceId":"r1","amount":100,"paymentMethod":"PIX","items":null}`, ""},
		{strings.Replace(base, "100", "101", 1), "amount"},
		{strings.Replace(base, `"a":"1","b":"2"`, `"a":"2","b":"1"`, 1), "metadata"},
		{strings.Replace(base, "Ana", "ana", 1), "customer"},
		{strings.Replace(base, `{"p`, `{"expiresIn":86400,"p`, 1), "expiresIn"}, // the default, written out
		{strings.Replace(base, `{"p`, `{"items":[],"description":"x","p`, 1), "description items"},
	} {
		if got := strings.Join(first.Differing(of(tt.body, testDecoder)), " "); got != tt.differing {
			t.Errorf("%s differs in %q, want %q", tt.body, got, tt.differing)
		}
	}
	other := *testDecoder
	other.Merchant = payment.ID{2}
	if n := len(first.Differing(of(base, &other))); n != 5 {
		t.Errorf("values can be compared across merchants: %d members differ", n)
	}
}

// An invalid request has a fingerprint too, because it may repeat an older one.
func TestInvalidRequestHasFingerprint(t *testing.T) {
	t.Parallel()
	q, err := testDecoder.Payin([]byte(strings.Replace(minimalPayin, "100", "0", 1)))
	good, _ := testDecoder.Payin([]byte(minimalPayin))
	if err == nil || err.Kind != problem.ValidationFailed || !slices.Equal(good.Fingerprint.Differing(q.Fingerprint), []string{"amount"}) {
		t.Errorf("problem is %v", err)
	}
	for kind, want := range map[problem.Kind]bool{
		problem.ValidationFailed: true, problem.MethodNotEnabled: true, problem.UnknownField: false, problem.MalformedJSON: false,
	} {
		if q.MayRepeat(problem.New(kind, "")) != want {
			t.Errorf("with %s, MayRepeat is %v", kind, !want)
		}
	}
	if (&PayinRequest{}).MayRepeat(err) || (&PayoutRequest{ReferenceID: Some("\x00")}).MayRepeat(err) {
		t.Error("a request without a valid reference may be a repetition")
	}
}

// The texts of a request stay valid when its tree is reused.
func TestDecodedTextsAreStable(t *testing.T) {
	t.Parallel()
	body := []byte(fullPayin)
	q, err := testDecoder.Payin(body)
	if err != nil {
		t.Fatal(err)
	}
	clear(body)
	for range 100 {
		_, _ = testDecoder.Payin([]byte(strings.ReplaceAll(fullPayin, "e", "x")))
	}
	if q.ReferenceID.V != "pedido-1" || q.Customer.V.Address.V.City.V != "São Paulo" || !json.Valid(q.Personal.Customer) {
		t.Errorf("request became %+v", q)
	}
}

func BenchmarkDecodePayin(b *testing.B) {
	body := []byte(fullPayin)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := testDecoder.Payin(body); err != nil {
			b.Fatal(err)
		}
	}
}
