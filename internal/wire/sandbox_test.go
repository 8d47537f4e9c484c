package wire

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

func TestDecodeSandboxPayin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, action string
		amount       int64
		invalid      string
	}{
		{"", "pay", 0, ""},
		{"{}", "expire", 0, ""},
		{`{"amount":null}`, "lose", 0, ""},
		{`{"amount":500}`, "pay", 500, ""},
		{`{"amount":500}`, "lose", 500, ""},
		{`{"amount":500}`, "win", 500, "amount not_allowed"},
		{`{"kind":"MED","amount":1,"reason":"fraud","respondInSeconds":60}`, "dispute", 1, ""},
		{`{"kind":"OTHER"}`, "dispute", 0, "kind not_allowed"},
		{`{"kind":"MED"}`, "pay", 0, "kind not_allowed"},
		{`{"respondInSeconds":0}`, "dispute", 0, "respondInSeconds out_of_range"},
		{`{"respondInSeconds":60}`, "block", 0, "respondInSeconds not_allowed"},
		{`{"amount":0}`, "pay", 0, "amount out_of_range"},
		{`{"amount":99999999999}`, "pay", 99_999_999_999, ""},
		{`{"amount":100000000000}`, "pay", 100_000_000_000, "amount out_of_range"},
		{`{"sum":1}`, "pay", 0, "sum unknown_field"},
	} {
		p, err := DecodeSandboxPayin([]byte(tt.body), tt.action)
		if got := invalidOf(err); int64(p.Amount) != tt.amount || got != tt.invalid {
			t.Errorf("%s of %s: %d, %q, want %d, %q", tt.action, tt.body, p.Amount, got, tt.amount, tt.invalid)
		}
	}
}

func TestDecodeSandboxFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body    string
		want    SandboxFault
		invalid string
	}{
		{`{"operation":"transfer","kind":"late"}`, SandboxFault{"transfer", "late", 1, ""}, ""},
		{`{"operation":"query","kind":"refuse","count":1000000}`, SandboxFault{"query", "refuse", 1_000_000, ""}, ""},
		{`{"operation":"query","kind":"refuse","account":"second"}`, SandboxFault{"query", "refuse", 1, "second"}, ""},
		{`{"operation":"query","kind":"refuse","count":null}`, SandboxFault{"query", "refuse", 1, ""}, ""},
		{`{"operation":"query","kind":"refuse","count":1000001}`, SandboxFault{"query", "refuse", 1_000_001, ""}, "count out_of_range"},
		{`{"operation":"charge","kind":"registering"}`, SandboxFault{"charge", "registering", 1, ""}, ""},
		{`{"operation":"credentials","kind":"refuse"}`, SandboxFault{"credentials", "refuse", 1, ""}, ""},
		{`{"operation":"credentials","kind":"later"}`, SandboxFault{"credentials", "later", 1, ""}, "kind not_allowed"},
		{`{"operation":"query","kind":"registering"}`, SandboxFault{"query", "registering", 1, ""}, "kind not_allowed"},
		{`{"operation":"x","kind":"y"}`, SandboxFault{"x", "y", 1, ""}, "kind not_allowed, operation not_allowed"},
		{`{}`, SandboxFault{Count: 1}, "kind required, operation required"},
	} {
		got, err := DecodeSandboxFault([]byte(tt.body))
		if got != tt.want || invalidOf(err) != tt.invalid {
			t.Errorf("%s: %+v, %q, want %+v, %q", tt.body, got, invalidOf(err), tt.want, tt.invalid)
		}
	}
	if _, err := DecodeSandboxFault(nil); err == nil || err.Kind != problem.MalformedJSON {
		t.Errorf("without a body: %v", err)
	}
}

func TestDecodeSandboxClock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body    string
		want    time.Duration
		invalid string
	}{
		{`{"advance":60}`, time.Minute, ""},
		{`{"advance":315360000}`, 10 * 365 * 24 * time.Hour, ""},
		{`{"advance":0}`, 0, "advance out_of_range"},
		{`{"advance":1,"x":2}`, time.Second, "x unknown_field"},
		{`{}`, 0, "advance required"},
	} {
		got, err := DecodeSandboxClock([]byte(tt.body))
		if got != tt.want || invalidOf(err) != tt.invalid {
			t.Errorf("%s: %v, %q, want %v, %q", tt.body, got, invalidOf(err), tt.want, tt.invalid)
		}
	}
}

func TestSandboxTransfers(t *testing.T) {
	t.Parallel()
	got, err := SandboxTransfers([]SandboxTransfer{
		{ExternalID: "x", Amount: 5000, PIXKey: "m@example.com", EndToEndID: "E1", Status: "paid", CreatedAt: created},
	})
	wantJSON(t, "transfers", got, err, `{"data":[{"externalId":"x","amount":5000,"pixKey":"m@example.com","endToEndId":"E1",
"status":"paid","createdAt":"2026-02-28T23:30:05.007Z"}]}`)
}
