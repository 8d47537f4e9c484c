package httpapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// modelRequest is a request to create an order, and the errors that it has.
type modelRequest struct {
	reference string
	fields    map[string]any // amounts are int64
	invalid   bool           // 422, apart from the amount
	malformed string         // the code of a 400
}

// amountsRequested are cents: inside the limits, at them and beyond.
var amountsRequested = []any{int64(1), int64(50), int64(5_000), int64(10_000), int64(12_345), int64(9_999_999_999), int64(modelMoney), int64(0), int64(-5), int64(modelMoney + 1), "100", nil}

// payinRequest is a pay-in: choice selects method and amount, twist a change of
// the other fields.
func payinRequest(reference string, choice, twist int) modelRequest {
	r := modelRequest{reference: reference, fields: map[string]any{
		"paymentMethod": []string{"PIX", "PIX", "CREDIT_CARD", "BOLETO"}[choice/len(amountsRequested)%4], "amount": amountsRequested[choice%len(amountsRequested)],
		"referenceId": reference, "customer": map[string]any{"name": "Maria", "document": "52998224724"},
	}}
	isPIX := r.fields["paymentMethod"] == "PIX"
	switch twist {
	case 1:
		r.fields["metadata"] = map[string]any{"a": "b", "ç": "é"}
	case 2:
		r.fields["customer"] = map[string]any{"document": "52998224724", "name": "João", "email": nil}
	case 3:
		r.fields["items"] = []any{map[string]any{"title": "Livro", "quantity": 1, "unitPrice": 0, "tangible": true}}
	case 4:
		r.fields["expiresIn"], r.invalid = int64(60), !isPIX
	case 5:
		r.fields["description"] = nil
	case 6:
		r.fields["description"], r.invalid = "4111 1111 1111 1111", true
	case 7:
		r.fields["fee"], r.malformed = 0, "unknown_field"
	case 8:
		delete(r.fields, "customer")
		r.invalid = true
	case 9:
		r.fields["dueDate"], r.invalid = "2026-02-30", true
	}
	return r
}

// payoutRequest is payinRequest for payouts.
func payoutRequest(reference string, choice, twist int) modelRequest {
	r := modelRequest{reference: reference, fields: map[string]any{
		"amount": amountsRequested[choice%len(amountsRequested)], "pixKey": "m@example.com", "pixKeyType": "EMAIL",
		"beneficiaryName": "Maria", "beneficiaryDocument": "52998224724", "referenceId": reference,
	}}
	switch twist {
	case 1:
		r.fields["pixKey"] = "M@example.com" // the same key, and another request
	case 2:
		r.fields["pixKey"], r.fields["pixKeyType"] = "11987654321", "PHONE"
	case 3:
		r.fields["webhookUrl"] = nil
	case 4:
		r.fields["pixKeyType"], r.invalid = "CPF", true
	case 5:
		delete(r.fields, "beneficiaryDocument")
		r.invalid = true
	case 6:
		r.fields["status"], r.malformed = "COMPLETED", "unknown_field"
	}
	return r
}

// text writes the request; way selects the order of its members and the white
// space.
func (r modelRequest) text(way int) string {
	names := slices.Sorted(maps.Keys(r.fields))
	turn := way % len(names)
	names = append(names[turn:], names[:turn]...)
	members := make([]string, len(names))
	for i, name := range names {
		value, err := json.Marshal(r.fields[name])
		if err != nil {
			panic(err)
		}
		members[i] = `"` + name + `":` + string(value)
	}
	separator := ","
	if way%2 == 1 {
		separator = " ,\n\t"
	}
	return "{" + strings.Join(members, separator) + "}"
}
