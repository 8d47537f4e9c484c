package sandboxbank

import (
	"bytes"
	"context"
	stdjson "encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// script plays requests to a bank, one a line: method, path, body. A line
// "wait" lets a minute pass.
type script struct {
	t     *testing.T
	bank  *Bank
	clock *env.VirtualClock
	file  *memoryFile
}

// newScriptBank opens a bank; each script resets it, as opening one would take
// longer than the script.
func newScriptBank(f *testing.F) *Bank {
	f.Helper()
	w, clock := env.Virtual(start, 1)
	bank, err := Open(Options{
		Secret: testSecret, Clock: clock, IDs: w.IDs, Pause: func(context.Context, time.Duration) {},
		Notify: &gateway{}, NotifyURL: "http://gateway.invalid/notices",
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
	bank.opts.Clock, bank.opts.IDs, bank.opts.Notify = clock, w.IDs, &gateway{}
	bank.ledger, bank.timers, bank.noticeTimers, bank.questions, bank.notifier, bank.serial = newLedger(), nil, nil, nil, notifier{}, 0
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
	r.Header.Set("Content-Type", bankapi.JSONType)
	w := httptest.NewRecorder()
	s.bank.Handler().ServeHTTP(w, r)
	if w.Code >= 500 || w.Code != http.StatusTemporaryRedirect && !stdjson.Valid(w.Body.Bytes()) {
		s.t.Errorf("%s: %d %q", line, w.Code, w.Body)
	}
}

// FuzzHandler plays a few requests. None makes the bank fail, a payment is never
// refunded beyond its amount, and the journal makes the same ledger again.
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
	bank := newScriptBank(f)
	f.Fuzz(func(t *testing.T, text string) {
		s := newScript(t, bank)
		lines := strings.Split(text, "\n")
		for _, line := range lines[:min(len(lines), 12)] {
			s.play(line)
		}
		s.bank.mu.Lock()
		now := s.bank.now()
		s.bank.mu.Unlock()
		for _, p := range s.bank.ledger.payments {
			if p.refundable() < 0 || p.Amount < 1 || p.Amount > money.Max {
				t.Fatalf("payment %+v may be refunded by %d", p.paymentReceived, p.refundable())
			}
		}
		if err := s.bank.journal.wait(s.bank.journal.latest()); err != nil {
			t.Fatal(err)
		}
		again, _, err := replayed(s.file.cache)
		if err != nil {
			t.Fatalf("the journal is refused: %v\n%s", err, s.file.cache)
		}
		if was, is := shown(t, s.bank.ledger, now), shown(t, again, now); was != is {
			t.Fatalf("the ledger was\n%s\nand after a restart is\n%s", was, is)
		}
	})
}

// replayed is the ledger of a journal.
func replayed(journal []byte) (*ledger, int64, error) {
	l := newLedger()
	read, err := readJournal(bytes.NewReader(journal), func(body []byte) error {
		var r record
		if err := json.Unmarshal(body, &r, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		return l.apply(&r)
	})
	return l, read.end, err
}

// shown is everything that a ledger shows.
func shown(t *testing.T, l *ledger, now time.Time) string {
	t.Helper()
	out := &strings.Builder{}
	line := func(what any, err error) {
		text, failed := json.Marshal(what)
		_, _ = fmt.Fprintln(out, string(text), err, failed)
	}
	for _, id := range sortedKeys(l.charges, strings.Compare) {
		line(l.charges[id].shown(now))
	}
	for _, key := range sortedKeys(l.orders, orderKey.compare) {
		line(l.orders[key].shown(), nil)
	}
	for _, p := range l.payments {
		line(p.shown(), nil)
	}
	for _, o := range l.transfers {
		line(o.entry(), nil)
	}
	for _, key := range sortedKeys(l.delayed, orderKey.compare) {
		line(l.delayed[key], nil)
	}
	for _, id := range sortedKeys(l.notices, strings.Compare) {
		body, err := l.notices[id].body()
		_, _ = fmt.Fprintln(out, string(body), err)
	}
	line(l.listeners, nil)
	line(l.offset.String(), nil)
	return out.String()
}

// FuzzJournal opens any file as a journal: as it is, and its lines as records
// with valid checksums. The readable part reads the same again, and a bank works
// with it.
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
{"at":"2026-11-20T18:30:00Z","order":{"kind":"transfer","externalId":"u","copy":1,"content":"","amount":1}}
{"at":"2026-11-20T18:30:00Z","approval":{"externalId":"u","copy":1}}
{"at":"2026-11-20T18:30:00Z","listener":{"url":"http://a.invalid","expires":"2026-11-20T18:30:00Z"}}
{"at":"2026-11-20T18:30:00Z","chargeEnd":{"externalId":"abc","state":"expired"},"notice":"n3"}`))
	bank := newScriptBank(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var lines int
		read, err := readJournal(bytes.NewReader(data), func([]byte) error { lines++; return nil })
		if err == nil {
			if read.end > int64(len(data)) || read.confirmed > read.end || uint64(lines) != read.last {
				t.Fatalf("%+v of %d bytes, %d lines", read, len(data), lines)
			}
			if again, err := readJournal(bytes.NewReader(data[:read.end]), func([]byte) error { return nil }); err != nil || again != read {
				t.Fatalf("the readable part reads otherwise: %+v, %v", again, err)
			}
		}
		valid := []byte(journalHeader)
		for i, line := range bytes.Split(data, []byte("\n")) {
			valid = appendLine(valid, uint64(i)+1, uint64(i), line)
		}
		ledger, _, err := replayed(valid)
		if err != nil {
			return
		}
		s := newScript(t, bank)
		s.bank.ledger = ledger
		s.bank.startTimers()
		for range 3 {
			s.play("wait")
		}
		again, _, err := replayed(valid)
		if err != nil {
			t.Fatalf("a journal reads once, and not again: %v", err)
		}
		_ = shown(t, again, start)
	})
}
