package sandbox

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// FuzzNotice verifies any notice: only one that was signed for these bytes and
// this time passes, and what it reports is complete.
func FuzzNotice(f *testing.F) {
	body := []byte(`{"id":"n1","subject":"charge","externalId":"abc","createdAt":"2026-11-20T18:30:00Z"}`)
	header := http.Header{}
	bankapi.SignNotice(header, testSecret, start, body)
	f.Add(header.Get(bankapi.HeaderTimestamp), header.Get(bankapi.HeaderSignature), body, int64(0))
	f.Add("", "", []byte("{}"), int64(301))
	f.Add("01795372200", "00", []byte(`{"id":"n1","subject":"transfer","externalId":"abc","payment":{"id":"E1","amount":1}}`), int64(-300))
	f.Add("x", "", []byte(`{"id":"n1","subject":"refund","externalId":"a","payment":{"id":"E\u00001","amount":-1,"endToEndId":"\u0000"}}`), int64(300))
	p := &Processor{secrets: []string{testSecret}}
	f.Fuzz(func(t *testing.T, timestamp, signature string, body []byte, shift int64) {
		id, err := p.VerifyNotice(http.Header{bankapi.HeaderTimestamp: {timestamp}, bankapi.HeaderSignature: {signature}}, body, start)
		if err == nil && (timestamp != header.Get(bankapi.HeaderTimestamp) || signature != header.Get(bankapi.HeaderSignature)) {
			t.Fatalf("accepted %q %q %q", timestamp, signature, body)
		}
		hints, unreadable := p.ParseNotice(body)
		shift %= 1000
		signed := http.Header{}
		bankapi.SignNotice(signed, testSecret, start.Add(time.Duration(shift)*time.Second), body)
		again, err := p.VerifyNotice(signed, body, start)
		if fresh := shift >= -300 && shift <= 300; (err == nil) != (fresh && unreadable == nil) {
			t.Fatalf("signed %d s from now: %v; read: %v", shift, err, unreadable)
		}
		if err != nil {
			return
		}
		if again == "" || id != "" && id != again || len(hints) != 1 || !bankapi.IsExternalID(hints[0].ExternalID) {
			t.Fatalf("%q is notice %q about %+v", body, again, hints)
		}
		if paid := hints[0].Payment; paid != nil {
			checkPayment(t, *paid)
		}
	})
}

// FuzzAnswer answers with anything, as a bank or a proxy in front of it might.
// Only the documented answers prove anything, and stored values are about the
// request, complete and within bounds.
func FuzzAnswer(f *testing.F) {
	for _, v := range verdicts {
		f.Add(v.status, bankapi.JSONType, "", []byte(`{"code":"`+string(v.code)+`","message":""}`))
	}
	for _, body := range []string{
		`{"externalId":"abc","amount":100,"state":"paid","endToEndId":"E1","returned":100,"changedAt":"2026-11-20T18:30:00Z"}`,
		`{"externalId":"abc","amount":100,"state":"failed","failure":{"code":"a\u0000","message":"é"},"changedAt":"2026-11-20T18:30:00Z"}`,
		`{"externalId":"abc","amount":100,"method":"PIX","state":"open","pix":{"qrcode":"000201","txid":"abc","expiresAt":"2026-11-20T18:30:00Z"},` +
			`"payments":[{"id":"E1","externalId":"abc","endToEndId":"E1","amount":-1,"paidAt":"2026-11-20T18:30:00Z","card":{"last4":"1111"}}],"disputes":[{"id":"d","amount":1,"state":"open"}]}`,
		`{"externalId":"abc","amount":100,"method":"PIX","state":"open"}`, `{"externalId":"abc","amount":1,"state":"gone"}`,
		`{"data":[{"id":"","externalId":"abc","amount":0}],"nextCursor":"1"}`, "", "{", "null", "[]",
	} {
		f.Add(200, bankapi.JSONType, "", []byte(body))
		f.Add(200, "application/json; charset=utf-8", "gzip", []byte(body))
	}
	f.Add(404, bankapi.JSONType, "", []byte(`{"code":"transfer_not_found"}`))
	f.Add(404, "text/html", "", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, media, encoding string, body []byte) {
		p, err := NewProcessor(Options{URL: "http://bank.invalid", Secret: testSecret, Transport: transportFunc(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}, "Content-Encoding": {encoding}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
		})})
		if err != nil {
			t.Fatal(err)
		}
		var problem struct{ Code string }
		if status != http.StatusOK {
			_ = stdjson.Unmarshal(body, &problem) // by another library; no code unless it is JSON
		}
		ctx, guard := t.Context(), func() error { return nil }
		sent := p.Transfer(ctx, processor.TransferRequest{ExternalID: "abc", Amount: 100, KeyType: "EVP", Key: "k", Name: "n", Document: "d"}, guard)
		back := p.Refund(ctx, processor.RefundRequest{ExternalID: "abc", PaymentID: "E1", Amount: 100}, guard)
		request, profile := processor.ChargeRequest{ExternalID: "abc", Method: payment.PIX, Amount: 100, ExpiresAt: start}, p.Profile()
		made := p.Charge(ctx, request, guard)
		for what, outcome := range map[string]processor.Outcome{"transfer": sent.Outcome, "refund": back.Outcome, "charge": made.Outcome} {
			proved := outcome == processor.Done && status == http.StatusOK ||
				outcome == processor.Refused && (status == 400 && problem.Code == "request_invalid" || status == 422 && slices.Contains(refusals, problem.Code)) ||
				outcome == processor.Later && status == 429 && problem.Code == "too_many_requests" ||
				outcome == processor.Known && status == 409 && problem.Code == "id_in_use"
			if outcome != processor.Unknown && !proved {
				t.Fatalf("%s is %s by %d %q", what, outcome, status, body)
			}
		}
		shown := made.Outcome == processor.Done && processor.CheckCharge(&profile, &request, &made.Charge) == nil
		if shown && (made.Charge.PIX == nil || made.Charge.PIX.QRCode == "") {
			t.Fatalf("a charge without a code is shown: %q", body)
		}
		for _, r := range []processor.TransferReport{sent.Report, back.Report, p.QueryTransfer(ctx, "abc"), p.QueryRefund(ctx, "E1", "abc")} {
			checkTransfer(t, status, r)
		}
		report := p.QueryCharge(ctx, "abc")
		if status != http.StatusOK && report.Lookup == processor.Found {
			t.Fatalf("%d shows %+v", status, report)
		}
		checkFeeds(t, p, status)
		for _, paid := range report.Payments {
			checkPayment(t, paid)
		}
		for _, d := range report.Disputes {
			if !isPlain(d.ID) || d.Amount < 1 || d.Amount > money.Max {
				t.Fatalf("dispute %+v", d)
			}
		}
		checkFailure(t, report.Failure)
	})
}

// checkFeeds checks a page of each feed.
func checkFeeds(t *testing.T, p *Processor, status int) {
	t.Helper()
	for feed := range p.Feeds() {
		page, err := p.Read(t.Context(), feed, "7")
		if err == nil && page.Next != "" && !isPlain(page.Next) {
			t.Fatalf("cursor %q", page.Next)
		}
		if status != http.StatusOK && err == nil && len(page.Facts) > 0 {
			t.Fatalf("%d shows %+v", status, page)
		}
		for _, fact := range page.Facts {
			if fact.Payment != nil {
				checkPayment(t, *fact.Payment)
			}
			if v := fact.Transfer; v != nil && (!isPlain(v.ExternalID) || v.Amount < 1 || v.Amount > money.Max || v.Returned < 0 || v.Returned > v.Amount) {
				t.Fatalf("listed transfer %+v", v)
			}
		}
	}
}

// refusals are the codes that the bank documents as having no effect, forever.
var refusals = []string{"charge_refused", "account_invalid", "refund_refused", "payment_not_found", "refund_exceeds_payment", "payment_disputed"}

// transportFunc is a transport that answers by itself.
type transportFunc func(r *http.Request) *http.Response

// RoundTrip implements [http.RoundTripper].
func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

func checkTransfer(t *testing.T, status int, r processor.TransferReport) {
	t.Helper()
	if r.Lookup != processor.Found {
		return
	}
	if status != http.StatusOK || r.Amount < 1 || r.Amount > money.Max ||
		r.EndToEndID != "" && !isPlain(r.EndToEndID) || len(r.Evidence) > 1000 {
		t.Fatalf("%d proves %+v", status, r)
	}
	checkFailure(t, r.Failure)
}

func checkPayment(t *testing.T, p processor.Payment) {
	t.Helper()
	if !isPlain(p.ID) || !bankapi.IsExternalID(p.ExternalID) || p.EndToEndID != "" && !isPlain(p.EndToEndID) || p.Amount < 1 || p.Amount > money.Max {
		t.Fatalf("payment %+v", p)
	}
	if c := p.Card; c != nil && (len(c.Brand) > 64 || len(c.Last4) > 4 || strings.ContainsRune(c.Brand+c.Last4, 0)) {
		t.Fatalf("card %+v", *c)
	}
}

func checkFailure(t *testing.T, f *payment.Failure) {
	t.Helper()
	if f != nil && (!isPlain(f.Code) || len(f.Message) > 500 || strings.ContainsRune(f.Message, 0)) {
		t.Fatalf("failure %+v", f)
	}
}

// isPlain reports whether a text can be an id anywhere: in a database, in an
// answer, in a log.
func isPlain(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
