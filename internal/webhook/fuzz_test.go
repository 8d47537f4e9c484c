package webhook_test

import (
	"bytes"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/weburl"
	"github.com/porteira/porteira/internal/wire"
)

// FuzzCheckURL: an allowed URL can be sent to and names its receiver, and every
// URL that the API accepts in an order is allowed.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://merchant.example/hooks", "http://[::1]:80/", "https://a@b/", "https:///", "https://%41/", "\x00", "//x",
		"https://merchant.example:0443/", "https://merchant.example\\@evil.example/", "HTTPS://Merchant.Example/?a=b#c", "https://a.example:/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, http := range []bool{false, true} {
			if err := webhook.CheckURL(raw, http); err != nil && takenByAPI(raw, http) {
				t.Fatalf("%q is taken by the API, and never delivered to: %v", raw, err)
			}
		}
		if webhook.CheckURL(raw, true) != nil {
			if webhook.CheckURL(raw, false) == nil {
				t.Fatal("allowing http forbids something")
			}
			return
		}
		if utf8.RuneCountInString(raw) > 2048 || strings.ContainsAny(raw, "\r\n\x00 ") {
			t.Fatalf("accepts %q", raw)
		}
		u, err := url.Parse(raw)
		if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
			t.Fatalf("accepts %q, which is %#v, %v", raw, u, err)
		}
		if (webhook.CheckURL(raw, false) == nil) != (u.Scheme == "https") {
			t.Fatalf("%q without http: %v", raw, webhook.CheckURL(raw, false))
		}
		sent, err := weburl.Parse(raw)
		if err != nil {
			t.Fatalf("accepts %q: %v", raw, err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, sent.String(), nil)
		if err != nil {
			t.Fatalf("accepts %q, which cannot be sent to: %v", raw, err)
		}
		if bad := strings.IndexFunc(r.URL.RequestURI()+r.URL.Host, func(c rune) bool { return c <= ' ' || c >= 0x7f }); bad >= 0 {
			t.Fatalf("%q is sent as %q", raw, r.URL)
		}
		if webhook.EndpointKey("m", raw) != webhook.EndpointKey("m", r.URL.String()) {
			t.Fatalf("%q is another receiver once it is written again: %q", raw, r.URL)
		}
	})
}

// takenByAPI reports whether a request may name an address.
func takenByAPI(raw string, allowHTTP bool) bool {
	var errs wire.Errors
	(&wire.PayoutRequest{WebhookURL: wire.Some(raw)}).Check(wire.Rules{AllowHTTP: allowHTTP}, &errs)
	return !slices.ContainsFunc(errs.List(), func(e problem.FieldError) bool { return e.Field == "webhookUrl" })
}

// FuzzAnswer has a receiver answer with anything: the status decides, a wait is
// at most a day, and the kept part of the body is a text that fits its column.
func FuzzAnswer(f *testing.F) {
	body := []byte("no \xff\x00 text")
	for _, seed := range []string{
		"", "0", "10", "-1", "86401", "9999999999999999999", "Sun, 01 Mar 2026 12:00:10 GMT", "Sunday, 01-Mar-26 12:01:00 GMT", "Sun Mar  1 12:02:00 2026",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 0000 00:00:00 GMT", "x", " 7 ", "1e3",
	} {
		f.Add(429, seed, body, uint16(3))
	}
	f.Add(200, "5", bytes.Repeat([]byte("é"), 3000), uint16(9000))
	f.Add(101, "", []byte("switched"), uint16(0))
	random := env.SeededRandom(1)
	f.Fuzz(func(t *testing.T, status int, retryAfter string, body []byte, cut uint16) {
		source := io.Reader(bytes.NewReader(body))
		if int(cut) < len(body) {
			source = io.MultiReader(bytes.NewReader(body[:cut]), brokenReader{})
		}
		sender := &webhook.Sender{Clock: env.NewVirtualClock(epoch), Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(source), Request: r}, nil
		})}
		got := sender.Send(t.Context(), deliveryTo(t, "https://merchant.example/"))
		want := webhook.Retry
		if status >= 200 && status <= 299 {
			want = webhook.Delivered
		} else if status == 410 {
			want = webhook.Gone
		}
		if got.Outcome != want || (got.Reason == "") != (want == webhook.Delivered) || got.StatusCode != status {
			t.Fatalf("%d: %+v", status, got)
		}
		if !utf8.ValidString(got.Response) || strings.ContainsRune(got.Response, 0) || len(got.Response) > 4096 {
			t.Fatalf("kept %q", got.Response)
		}
		wait := time.Duration(0)
		if status == 429 || status == 503 {
			wait = waitOf(retryAfter)
		}
		if got.RetryAfter != wait {
			t.Fatalf("Retry-After %q with %d is %v, want %v", retryAfter, status, got.RetryAfter, wait)
		}
		checkSchedule(t, random, wait)
	})
}

// brokenReader is the end of a connection that was cut.
type brokenReader struct{}

// Read implements [io.Reader].
func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// waitOf is RFC 9110, section 10.2.3, within a day.
func waitOf(value string) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, _ := new(big.Int).SetString(value, 10)
		if seconds.Cmp(big.NewInt(86400)) > 0 {
			return 24 * time.Hour
		}
		return time.Duration(seconds.Int64()) * time.Second
	}
	for _, layout := range []string{http.TimeFormat, time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, value); err == nil {
			switch {
			case at.Before(epoch):
				return 0
			case at.After(epoch.Add(24 * time.Hour)):
				return 24 * time.Hour
			}
			return at.Sub(epoch)
		}
	}
	return 0
}

// checkSchedule: a requested wait makes none shorter, nor longer than a day and a
// tenth.
func checkSchedule(t *testing.T, random env.Random, requested time.Duration) {
	t.Helper()
	for done := range webhook.MaxAttempts + 1 {
		plain, _ := webhook.Schedule{}.Next(done, 0)
		wait, exhausted := webhook.Schedule{Jitter: random.Jitter}.Next(done, requested)
		if exhausted != (done == webhook.MaxAttempts) || !exhausted && (wait < requested || wait < plain*9/10 || wait > max(plain*11/10, requested)) {
			t.Fatalf("after %d attempts, %v requested: %v, %v", done, requested, wait, exhausted)
		}
	}
}

// FuzzSecret reads any text as a secret. An accepted one is revealed unchanged,
// and the reference library verifies its signatures and no others.
func FuzzSecret(f *testing.F) {
	f.Add(vectorSecret, []byte(vectorBody), int64(vectorSeconds), uint(3))
	f.Add("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\n", []byte{}, int64(0), uint(0))
	f.Add("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGB==", []byte{0xff}, int64(-1), uint(0))
	f.Add("whsec_"+strings.Repeat("A", 88)+"=", []byte("x"), int64(1<<40), uint(0))
	f.Fuzz(func(t *testing.T, text string, body []byte, seconds int64, at uint) {
		secret, err := webhook.ParseSecret(text)
		if err != nil {
			if !secret.IsZero() || err != webhook.ErrSecret {
				t.Fatalf("%v comes with a secret, or contains it", err)
			}
			return
		}
		if secret.Reveal() != text || strings.Contains(secret.String(), strings.TrimPrefix(text, "whsec_")) {
			t.Fatalf("%q is revealed as %q and shown as %s", text, secret.Reveal(), secret)
		}
		verifier, err := standardwebhooks.NewWebhook(text)
		if err != nil {
			t.Fatalf("%q is taken here, and not by the reference library: %v", text, err)
		}
		seconds = (seconds%(1<<40) + 1<<40) % (1 << 40)
		header := http.Header{}
		header.Set("Webhook-Id", vectorID)
		header.Set("Webhook-Timestamp", strconv.FormatInt(seconds, 10))
		header.Set("Webhook-Signature", webhook.Sign([]webhook.Secret{secret}, vectorID, time.Unix(seconds, 0), body))
		if err := verifier.VerifyIgnoringTimestamp(body, header); err != nil {
			t.Fatalf("not verified: %v", err)
		}
		changed := append(bytes.Clone(body), 0)
		changed[at%uint(len(changed))] ^= 1
		if verifier.VerifyIgnoringTimestamp(changed, header) == nil {
			t.Fatal("another body is verified")
		}
	})
}
