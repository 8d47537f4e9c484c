package wire

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func goodPayout() *PayoutRequest {
	return &PayoutRequest{
		Amount: Some[int64](5000), PIXKey: Some("Maria@Example.com"), PIXKeyType: Some("EMAIL"),
		BeneficiaryName: Some("Maria da Silva"), BeneficiaryDocument: Some("52998224725"),
		WebhookURL: Some("https://shop.example/hook"), ReferenceID: Some("saque-1"),
	}
}

func TestPayout(t *testing.T) {
	t.Parallel()
	strict := sandboxRules
	strict.ChecksDocuments = true
	for _, tt := range []struct {
		name   string
		rules  Rules
		change func(r *PayoutRequest)
		want   string
	}{
		{"good", strict, func(*PayoutRequest) {}, ""},
		{"nothing", strict, func(r *PayoutRequest) { *r = PayoutRequest{} },
			"amount required, pixKey required, pixKeyType required, beneficiaryName required, beneficiaryDocument required, referenceId required"},
		{"amount", strict, func(r *PayoutRequest) { r.Amount.V = 0 }, "amount out_of_range"},
		{"largest amount", strict, func(r *PayoutRequest) { r.Amount.V = 99_999_999_999 }, ""},
		{"more", strict, func(r *PayoutRequest) { r.Amount.V = 100_000_000_000 }, "amount out_of_range"},
		{"type of key", strict, func(r *PayoutRequest) { r.PIXKeyType.V = "email" }, "pixKeyType not_allowed"},
		{"type and key", strict, func(r *PayoutRequest) { r.PIXKeyType.V, r.PIXKey.V = "x", "" }, "pixKeyType not_allowed, pixKey required"},
		{"key of another type", strict, func(r *PayoutRequest) { r.PIXKeyType.V = "CPF" }, "pixKey invalid_format"},
		{"long key", strict, func(r *PayoutRequest) { r.PIXKey.V = strings.Repeat("a", 73) + "@b.br" }, "pixKey too_long"},
		{"wrong CPF key", strict, func(r *PayoutRequest) { r.PIXKeyType.V, r.PIXKey.V = "CPF", "52998224724" }, "pixKey invalid_format"},
		{"in the sandbox", sandboxRules, func(r *PayoutRequest) { r.PIXKeyType.V, r.PIXKey.V = "CPF", "52998224724" }, ""},
		{"repeated CNPJ key", strict, func(r *PayoutRequest) { r.PIXKeyType.V, r.PIXKey.V = "CNPJ", "00000000000000" }, "pixKey invalid_format"},
		{"phone", strict, func(r *PayoutRequest) { r.PIXKeyType.V, r.PIXKey.V = "PHONE", "+0511987654321" }, "pixKey invalid_format"},
		{"EVP", strict, func(r *PayoutRequest) { r.PIXKeyType.V, r.PIXKey.V = "EVP", "123" }, "pixKey invalid_format"},
		{"control in key", strict, func(r *PayoutRequest) { r.PIXKey.V = "a\n@b.br" }, "pixKey invalid_format"},
		{"name", strict, func(r *PayoutRequest) { r.BeneficiaryName.V = "" }, "beneficiaryName required"},
		{"blank name", strict, func(r *PayoutRequest) { r.BeneficiaryName.V = "\u00a0\u3164\u200b" }, "beneficiaryName required"},
		{"name that reads as another", strict, func(r *PayoutRequest) { r.BeneficiaryName.V = "Ana \u202eairaM" }, "beneficiaryName invalid_format"},
		{"name in another script", strict, func(r *PayoutRequest) { r.BeneficiaryName.V = " \u200fמרים " }, ""},
		{"blank key, document and reference", strict, func(r *PayoutRequest) { r.PIXKey.V, r.BeneficiaryDocument.V, r.ReferenceID.V = " ", "\t", "\u2800" },
			"pixKey required, beneficiaryDocument required, referenceId required"},
		{"document", strict, func(r *PayoutRequest) { r.BeneficiaryDocument.V = "52998224724" }, "beneficiaryDocument invalid_format"},
		{"reference", strict, func(r *PayoutRequest) { r.ReferenceID.V = "\x1b[2J" }, "referenceId invalid_format"},
		{"hook", strict, func(r *PayoutRequest) { r.WebhookURL.V = "shop.example" }, "webhookUrl invalid_format"},
	} {
		r := goodPayout()
		tt.change(r)
		var errs Errors
		r.Check(tt.rules, &errs)
		var want []string
		if tt.want != "" {
			want = strings.Split(tt.want, ", ")
		}
		wantInvalid(t, tt.name, &errs, want...)
		keyInvalid := strings.Contains(tt.want, "pixKey")
		if (r.NormalKey == "") != keyInvalid {
			t.Errorf("%s: normal key is %q", tt.name, r.NormalKey)
		}
	}
}

func TestPayoutNormalKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, key, want string }{
		{"EMAIL", "Maria@Example.com", "maria@example.com"},
		{"PHONE", "11987654321", "+5511987654321"},
		{"PHONE", "1133334444", "+551133334444"},
		{"PHONE", "+5511987654321", "+5511987654321"},
		{"EVP", "123E4567-E12B-12D3-A456-426655440000", "123e4567-e12b-12d3-a456-426655440000"},
		{"CPF", "52998224725", "52998224725"},
		{"CNPJ", "12ABC34501DE35", "12ABC34501DE35"},
	} {
		r := goodPayout()
		r.PIXKeyType.V, r.PIXKey.V = tt.kind, tt.key
		var errs Errors
		r.Check(sandboxRules, &errs)
		if r.NormalKey != tt.want || r.PIXKey.V != tt.key || len(errs.List()) > 0 {
			t.Errorf("%s %s: normal key is %q with %v", tt.kind, tt.key, r.NormalKey, errs.List())
		}
	}
}

func TestPayoutNeverRepeatsValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const canary = "cAnArY"
		r := goodPayout()
		r.PIXKeyType.V = rapid.SampledFrom([]string{"CPF", "CNPJ", "EMAIL", "PHONE", "EVP", canary}).Draw(t, "type")
		r.PIXKey.V = rapid.String().Draw(t, "key") + canary
		r.BeneficiaryDocument.V = canary + rapid.String().Draw(t, "document")
		r.ReferenceID.V = rapid.String().Draw(t, "reference") + canary + "\x00"
		var errs Errors
		r.Check(sandboxRules, &errs)
		want := 3
		if r.NormalKey != "" { // the key is an e-mail address by chance
			want = 2
		}
		if len(errs.List()) < want {
			t.Fatalf("invalid fields are %v", errs.List())
		}
		for _, e := range errs.List() {
			if strings.Contains(e.Field+e.Detail, canary) {
				t.Fatalf("the error repeats the value: %+v", e)
			}
		}
	})
}
