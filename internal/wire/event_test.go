package wire

import (
	"testing"
	"time"
)

func TestAttempts(t *testing.T) {
	t.Parallel()
	got, err := Attempts(nil)
	wantJSON(t, "none", got, err, `{"data":[]}`)
	got, err = Attempts([]Attempt{
		{URL: "https://shop.example", Number: 1, Latency: 1999 * time.Microsecond, Error: "a\xff", CreatedAt: created, EndedAt: created},
		{URL: "https://shop.example", Number: 2, Status: 200, Response: "\xff", CreatedAt: created, EndedAt: created},
		{URL: "https://shop.example", Number: 3, CreatedAt: created},
	})
	wantJSON(t, "three", got, err, `{"data":[
{"url":"https://shop.example","number":1,"latencyMs":1,"error":"a`+"\ufffd"+`","createdAt":"2026-02-28T23:30:05.007Z","endedAt":"2026-02-28T23:30:05.007Z"},
{"url":"https://shop.example","number":2,"status":200,"latencyMs":0,"response":"`+"\ufffd"+`","createdAt":"2026-02-28T23:30:05.007Z","endedAt":"2026-02-28T23:30:05.007Z"},
{"url":"https://shop.example","number":3,"createdAt":"2026-02-28T23:30:05.007Z"}]}`)
}

func TestWebhookSecret(t *testing.T) {
	t.Parallel()
	got, err := WebhookSecret("whsec_c2VjcmV0")
	wantJSON(t, "secret", got, err, `{"secret":"whsec_c2VjcmV0"}`)
}
