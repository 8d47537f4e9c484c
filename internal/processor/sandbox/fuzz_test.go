package sandbox

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// FuzzNotice shows the door any notice: only what was signed for these bytes
// and this time passes. What it would say, were it signed, is complete.
func FuzzNotice(f *testing.F) {
	body := []byte(`{"id":"n1","subject":"charge","externalId":"abc","createdAt":"2026-11-20T18:30:00Z"}`)
	header := http.Header{}
	signNotice(header, testSecret, start, body)
	f.Add(header.Get(HeaderTimestamp), header.Get(HeaderSignature), body, int64(0))
	f.Add("", "", []byte("{}"), int64(301))
	f.Add("01795372200", "00", []byte(`{"id":"n1","subject":"transfer","externalId":"abc","payment":{"id":"E1","amount":1}}`), int64(-300))
	f.Add("x", "", []byte(`{"id":"n1","subject":"refund","externalId":"a","payment":{"id":"E\u00001","amount":-1,"endToEndId":"\u0000"}}`), int64(300))
	p := &Processor{secret: testSecret}
	f.Fuzz(func(t *testing.T, timestamp, signature string, body []byte, shift int64) {
		id, err := p.VerifyNotice(http.Header{HeaderTimestamp: {timestamp}, HeaderSignature: {signature}}, body, start)
		if err == nil && (timestamp != header.Get(HeaderTimestamp) || signature != header.Get(HeaderSignature)) {
			t.Fatalf("accepted %q %q %q", timestamp, signature, body)
		}
		hints, unreadable := p.ParseNotice(body)
		shift %= 1000
		signed := http.Header{}
		signNotice(signed, testSecret, start.Add(time.Duration(shift)*time.Second), body)
		again, err := p.VerifyNotice(signed, body, start)
		if fresh := shift >= -300 && shift <= 300; (err == nil) != (fresh && unreadable == nil) {
			t.Fatalf("signed %d s from now: %v; read: %v", shift, err, unreadable)
		}
		if err != nil {
			return
		}
		if again == "" || id != "" && id != again || len(hints) != 1 || !isExternalID(hints[0].ExternalID) {
			t.Fatalf("%q is notice %q about %+v", body, again, hints)
		}
		if paid := hints[0].Payment; paid != nil {
			checkPayment(t, *paid)
		}
	})
}

// script is a bank that serves requests, one a line: method, path, body. A line
// "wait" lets a minute pass.
type script struct {
	t     *testing.T
	bank  *Bank
	clock *env.VirtualClock
	file  *memoryFile
}

// newStage opens a bank; each script finds it as it was then, as opening one
// would take longer than playing one.
func newStage(f *testing.F) *Bank {
	f.Helper()
	w, clock := env.Virtual(start, 1)
	bank, err := OpenBank(BankOptions{
		Secret: testSecret, Clock: clock, IDs: w.IDs, Pause: func(context.Context, time.Duration) {},
		Notify: &receiver{}, NotifyURL: "http://gateway.invalid/notices",
	})
	if err != nil {
		f.Fatal(err)
	}
	return bank
}

func newScript(t *testing.T, bank *Bank) *script {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	s := &script{t: t, bank: bank, clock: clock, file: &memoryFile{}}
	s.file.cache = []byte(journalHeader)
	bank.journal = newJournal(s.file, int64(len(journalHeader)), 0)
	bank.opts.Clock, bank.opts.IDs, bank.opts.Notify = clock, w.IDs, &receiver{}
	bank.books, bank.work, bank.mail, bank.post, bank.serial = newBooks(), nil, nil, postOffice{}, 0
	return s
}

func (s *script) play(line string) {
	if line == "wait" {
		s.clock.Advance(time.Minute)
		if _, err := s.bank.Step(s.t.Context(), s.clock.Now()); err != nil {
			s.t.Fatalf("step: %v", err)
		}
		return
	}
	method, rest, _ := strings.Cut(line, " ")
	path, body, _ := strings.Cut(rest, " ")
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "/control/faults") {
		return // faults are meant to be 5xx
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://bank.invalid"+path, strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Authorization", "Bearer "+testSecret)
	r.Header.Set("Content-Type", jsonType)
	w := httptest.NewRecorder()
	s.bank.Handler().ServeHTTP(w, r)
	if w.Code >= 500 || w.Code != http.StatusTemporaryRedirect && !stdjson.Valid(w.Body.Bytes()) {
		s.t.Errorf("%s: %d %q", line, w.Code, w.Body)
	}
}

// FuzzHandler plays a few requests. None makes the bank fail, its books never
// give away more than came in, and its journal makes the same books again.
func FuzzHandler(f *testing.F) {
	const transfer = `POST /transfers {"externalId":"abc","amount":100,"keyType":"EVP","key":"k","name":"n","document":"d"}`
	const charge = `PUT /charges/abc {"method":"PIX","amount":100,"expiresAt":"2026-11-21T18:30:00Z"}`
	for _, lines := range [][]string{
		{transfer, "wait", "GET /transfers/abc", "GET /transfers?cursor=1", transfer},
		{transfer, "POST /control/transfers/abc/return {\"amount\":1}", "POST /control/transfers/abc/return", "POST /control/transfers/abc/fail"},
		{charge, `POST /control/charges/abc/pay {"amount":7}`, "POST /control/charges/abc/dispute", "POST /control/charges/abc/lose", "POST /control/charges/abc/win"},
		{`POST /control/charges/x/pay {"charge":{"method":"BOLETO","amount":1,"dueDate":"2026-11-20","expiresAt":"2026-11-20T18:30:00Z"},"method":"PIX"}`, "GET /charges/x", "GET /payments"},
		{charge, "POST /control/charges/abc/expire", "POST /control/charges/abc/fail", "GET /charges/abc", "wait"},
		{`PUT /charges/c {"method":"CREDIT_CARD","amount":1,"expiresAt":"9999-12-31T23:59:59.999999999Z"}`, `POST /control/charges/c/fail {"attempt":true}`},
		{`POST /refunds {"externalId":"abc","paymentId":"E1","amount":1}`, `PUT /notify-urls {"url":"http://a.invalid","ttlSeconds":1}`},
		{`POST /control/clock {"offset":3153600000}`, "wait", "DELETE /nowhere", "POST /transfers [1]"},
	} {
		f.Add(strings.Join(lines, "\n"))
	}
	bank := newStage(f)
	f.Fuzz(func(t *testing.T, text string) {
		s := newScript(t, bank)
		lines := strings.Split(text, "\n")
		for _, line := range lines[:min(len(lines), 12)] {
			s.play(line)
		}
		s.bank.mu.Lock()
		now := s.bank.now()
		s.bank.mu.Unlock()
		for _, p := range s.bank.books.payments {
			if p.refundable() < 0 || p.Amount < 1 || p.Amount > money.Max {
				t.Fatalf("payment %+v may be refunded by %d", p.paymentMade, p.refundable())
			}
		}
		if err := s.bank.journal.wait(s.bank.journal.latest()); err != nil {
			t.Fatal(err)
		}
		again, _, err := replayed(s.file.cache)
		if err != nil {
			t.Fatalf("the journal is refused: %v\n%s", err, s.file.cache)
		}
		if was, is := shown(t, s.bank.books, now), shown(t, again, now); was != is {
			t.Fatalf("the books were\n%s\nand after a restart are\n%s", was, is)
		}
	})
}

// replayed are the books of a journal.
func replayed(journal []byte) (*books, int64, error) {
	b := newBooks()
	read, err := readJournal(bytes.NewReader(journal), func(body []byte) error {
		var r record
		if err := json.Unmarshal(body, &r, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		return b.apply(&r)
	})
	return b, read.end, err
}

// shown is all that books have to say.
func shown(t *testing.T, b *books, now time.Time) string {
	t.Helper()
	out := &strings.Builder{}
	line := func(what any, err error) {
		text, failed := json.Marshal(what)
		_, _ = fmt.Fprintln(out, string(text), err, failed)
	}
	for _, id := range sortedKeys(b.charges, compareStrings) {
		line(b.charges[id].body(now))
	}
	for _, key := range sortedKeys(b.orders, orderKey.compare) {
		line(b.orders[key].body(), nil)
	}
	for _, p := range b.payments {
		line(p.body(), nil)
	}
	for _, o := range b.transfers {
		line(o.line(), nil)
	}
	for _, key := range sortedKeys(b.delayed, orderKey.compare) {
		line(b.delayed[key], nil)
	}
	for _, id := range sortedKeys(b.notices, compareStrings) {
		body, err := b.notices[id].body()
		_, _ = fmt.Fprintln(out, string(body), err)
	}
	line(b.listeners, nil)
	line(b.offset.String(), nil)
	return out.String()
}

// FuzzJournal opens any file as a journal: as it is, and its lines as records
// with the checksums that make them whole. What was kept reads the same again,
// and a bank works with it.
func FuzzJournal(f *testing.F) {
	journal := []byte(journalHeader)
	journal = appendLine(journal, 1, 0, []byte(`{"at":"2026-11-20T18:30:00Z","offset":1}`))
	journal = appendLine(journal, 2, 1, []byte(`{"at":"2026-11-20T18:30:00Z","settled":["a"]}`))
	f.Add(journal)
	f.Add(journal[:len(journal)-3])
	f.Add([]byte{})
	f.Add([]byte(journalHeader + "00000000 1 0 {}\n"))
	f.Add([]byte(`{"at":"2026-11-20T18:30:00Z","charge":{"externalId":"abc","terms":{"method":"PIX","amount":1,"expiresAt":"2026-11-20T18:30:00Z"}}}
{"at":"2026-11-20T18:30:00Z","payment":{"id":"E1","externalId":"abc","amount":1},"notice":"n1"}
{"at":"2026-11-20T18:30:00Z","dispute":{"id":"d1","externalId":"abc","paymentId":"E1","amount":1,"state":"open"},"notice":"n2"}
{"at":"2026-11-20T18:30:00Z","order":{"kind":"refund","externalId":"r","content":"","amount":1,"paymentId":"E1"}}
{"at":"2026-11-20T18:30:00Z","orderEnd":{"kind":"refund","externalId":"r","state":"paid"}}
{"at":"2026-11-20T18:30:00Z","delayed":{"order":{"kind":"transfer","externalId":"t","content":"","amount":1},"due":"2026-11-20T18:30:00Z"}}
{"at":"2026-11-20T18:30:00Z","listener":{"url":"http://a.invalid","expires":"2026-11-20T18:30:00Z"}}
{"at":"2026-11-20T18:30:00Z","chargeEnd":{"externalId":"abc","state":"expired"},"notice":"n3"}`))
	bank := newStage(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines int
		read, err := readJournal(bytes.NewReader(data), func([]byte) error { lines++; return nil })
		if err == nil {
			if read.end > int64(len(data)) || read.sure > read.end || uint64(lines) != read.last {
				t.Fatalf("%+v of %d bytes, %d lines", read, len(data), lines)
			}
			if again, err := readJournal(bytes.NewReader(data[:read.end]), func([]byte) error { return nil }); err != nil || again != read {
				t.Fatalf("what was kept reads otherwise: %+v, %v", again, err)
			}
		}
		whole := []byte(journalHeader)
		for i, line := range bytes.Split(data, []byte("\n")) {
			whole = appendLine(whole, uint64(i)+1, uint64(i), line)
		}
		books, _, err := replayed(whole)
		if err != nil {
			return
		}
		s := newScript(t, bank)
		s.bank.books = books
		s.bank.schedule()
		for range 3 {
			s.play("wait")
		}
		again, _, err := replayed(whole)
		if err != nil {
			t.Fatalf("a journal reads once, and not again: %v", err)
		}
		_ = shown(t, again, start)
	})
}

// FuzzAnswer has a bank, or whatever stands in its place, answer with anything.
// Nothing but the documented words proves anything, and what is taken over into
// the gateway's books is about what was asked, complete and within bounds.
func FuzzAnswer(f *testing.F) {
	for _, v := range verdicts {
		f.Add(v.status, jsonType, "", []byte(`{"code":"`+string(v.code)+`","message":""}`))
	}
	for _, body := range []string{
		`{"externalId":"abc","amount":100,"state":"paid","endToEndId":"E1","returned":100,"changedAt":"2026-11-20T18:30:00Z"}`,
		`{"externalId":"abc","amount":100,"state":"failed","failure":{"code":"a\u0000","message":"é"},"changedAt":"2026-11-20T18:30:00Z"}`,
		`{"externalId":"abc","amount":100,"method":"PIX","state":"open","pix":{"qrcode":"000201","txid":"abc","expiresAt":"2026-11-20T18:30:00Z"},` +
			`"payments":[{"id":"E1","externalId":"abc","endToEndId":"E1","amount":-1,"paidAt":"2026-11-20T18:30:00Z","card":{"last4":"1111"}}],"disputes":[{"id":"d","amount":1,"state":"open"}]}`,
		`{"externalId":"abc","amount":100,"method":"PIX","state":"open"}`, `{"externalId":"abc","amount":1,"state":"gone"}`,
		`{"data":[{"id":"","externalId":"abc","amount":0}],"nextCursor":"1"}`, "", "{", "null", "[]",
	} {
		f.Add(200, jsonType, "", []byte(body))
		f.Add(200, "application/json; charset=utf-8", "gzip", []byte(body))
	}
	f.Add(404, jsonType, "", []byte(`{"code":"transfer_not_found"}`))
	f.Add(404, "text/html", "", []byte(`<html>`))
	f.Fuzz(func(t *testing.T, status int, media, encoding string, body []byte) {
		p := &Processor{client: client{base: inProcessURL, secret: testSecret, transport: says(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}, "Content-Encoding": {encoding}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
		})}}
		var said struct{ Code string }
		if status != http.StatusOK {
			_ = stdjson.Unmarshal(body, &said) // a second opinion; no code where it is no JSON
		}
		ctx, guard := t.Context(), func() error { return nil }
		sent := p.Transfer(ctx, processor.TransferRequest{ExternalID: "abc", Amount: 100, KeyType: "EVP", Key: "k", Name: "n", Document: "d"}, guard)
		back := p.Refund(ctx, processor.RefundRequest{ExternalID: "abc", PaymentID: "E1", Amount: 100}, guard)
		made := p.Charge(ctx, processor.ChargeRequest{ExternalID: "abc", Method: payment.PIX, Amount: 100, ExpiresAt: start})
		for what, outcome := range map[string]processor.Outcome{"transfer": sent.Outcome, "refund": back.Outcome, "charge": made.Outcome} {
			proved := outcome == processor.Done && status == http.StatusOK ||
				outcome == processor.Refused && (status == 400 && said.Code == "request_invalid" || status == 422 && slices.Contains(refusals, said.Code))
			if outcome != processor.Unknown && !proved {
				t.Fatalf("%s is %s by %d %q", what, outcome, status, body)
			}
		}
		if made.Outcome == processor.Done && (made.Charge.PIX == nil || made.Charge.PIX.QRCode == "") {
			t.Fatalf("a charge without a code is taken: %q", body)
		}
		for _, r := range []processor.TransferReport{sent.Report, back.Report, p.QueryTransfer(ctx, "abc"), p.QueryRefund(ctx, "abc")} {
			checkTransfer(t, status, r)
		}
		report := p.QueryCharge(ctx, "abc")
		page, next, err := p.Payments(ctx, "7")
		if err == nil && next != "" && !isPlain(next) {
			t.Fatalf("cursor %q", next)
		}
		if status != http.StatusOK && (report.Lookup == processor.Found || err == nil && len(page) > 0) {
			t.Fatalf("%d shows %+v and %v", status, report, page)
		}
		for _, paid := range append(report.Payments, page...) {
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

// refusals are the codes that the bank documents as having no effect, ever.
var refusals = []string{"charge_refused", "account_invalid", "refund_refused", "payment_not_found", "refund_exceeds_payment", "payment_disputed"}

// says is a transport that answers by itself.
type says func(r *http.Request) *http.Response

// RoundTrip implements [http.RoundTripper].
func (s says) RoundTrip(r *http.Request) (*http.Response, error) { return s(r), nil }

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
	if !isPlain(p.ID) || !isExternalID(p.ExternalID) || p.EndToEndID != "" && !isPlain(p.EndToEndID) || p.Amount < 1 || p.Amount > money.Max {
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

// isPlain says whether a text can be an id anywhere: in a database, in an
// answer, in a log.
func isPlain(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}
