package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	bankURL    = "http://bank.sim"
	bankSecret = "a secret between bank and gateways"
	noticeURL  = "http://gateway.sim/inbound/sandbox"
)

// bankSite is the sandbox's bank as a process of its own: with a journal, which
// outlives it, and an address, at which it is not always reached.
type bankSite struct {
	sim     *simulation
	bank    *sandboxbank.Bank
	control *sandbox.Control
	source  env.Env
	down    bool
	at      time.Duration // when it next has something to do; 0 while nothing is planned
	hung    bool          // the call under way is not answered
}

func (b *bankSite) open() error {
	s := b.sim
	o := sandboxbank.Options{
		Path: s.options.Journal, Secret: bankSecret, Clock: s.clock, IDs: b.source.IDs,
		Notify: &noticeWire{s}, NotifyURL: noticeURL,
		Pause: func(_ context.Context, d time.Duration) { b.pause(d) },
	}
	if !s.calm && s.plan.delayed > 0 {
		o.Faults = sandboxbank.FaultProfile{
			Seed: s.options.Seed, PerMille: s.plan.delayed,
			Operations: []bankapi.Operation{bankapi.OpTransfer}, Kinds: []bankapi.FaultKind{bankapi.Delayed},
		}
	}
	bank, err := sandboxbank.Open(o)
	if err != nil {
		return err
	}
	b.bank = bank
	b.control, err = sandbox.NewControl(sandbox.Options{URL: bankURL, Secret: bankSecret, Transport: direct{b}})
	b.plan()
	return err
}

// pause is how the bank lets time pass inside a call. Where it would never
// answer, the caller's patience is what ends the call.
func (b *bankSite) pause(d time.Duration) {
	if d < 0 {
		b.hung = true
		return
	}
	b.sim.elapse(d)
}

// plan lets the bank go on when it next has something to do.
func (b *bankSite) plan() {
	if b.bank == nil {
		return
	}
	s := b.sim
	due, ok := b.bank.NextDue()
	if !ok {
		return
	}
	at := max(s.clock.Monotonic(), due.Sub(epoch))
	if b.at != 0 && b.at <= at {
		return
	}
	b.at = max(at, 1)
	planned := b.at
	s.after(at-s.clock.Monotonic(), func() {
		if b.at == planned {
			b.at = 0
		}
		b.work()
	})
}

func (b *bankSite) work() {
	s := b.sim
	if b.down {
		s.after(time.Second, b.plan)
		return
	}
	s.depth++
	did, err := b.bank.Step(s.ctx, s.clock.Now())
	s.depth--
	if err != nil {
		s.violate("", "", "", "the bank has stopped: "+err.Error())
	}
	if did > 0 {
		s.trace.linef("bank did %d", did)
	}
	b.plan()
}

// delayed is how many transfers the bank has put off.
func (b *bankSite) delayed() (n int) {
	if b.sim.plan.delayed == 0 {
		return 0
	}
	for fault, count := range b.bank.FaultsFired() {
		if fault.Kind == bankapi.Delayed {
			n += count
		}
	}
	return n
}

// restart kills the bank and brings it back from its journal.
func (b *bankSite) restart() {
	s := b.sim
	s.trace.linef("bank dies and comes back")
	if err := errors.Join(b.bank.Close(), b.open()); err != nil {
		s.violate("", "", "", "the bank cannot start: "+err.Error())
	}
}

// serve is a request that reached the bank.
func (b *bankSite) serve(r *http.Request, body []byte) (answer *http.Response, err error) {
	w := &recorder{header: http.Header{}}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.RequestURI = ""
	b.hung = false
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler { //nolint:errorlint // it is thrown as it is
			answer, err = nil, errNoAnswer
		} else if cause != nil {
			panic(cause)
		}
	}()
	defer b.plan() // what this call made due
	b.bank.Handler().ServeHTTP(w, r)
	return w.response(r), nil
}

var errNoAnswer = errors.New("simulate: no answer")

// errDial is a connection that was refused.
var errDial = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// errReset is a connection that broke after the request had left.
var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// direct reaches the bank without faults: for payers, and for its books.
type direct struct{ bank *bankSite }

// RoundTrip implements [http.RoundTripper].
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	return d.bank.serve(r, body)
}

func readAll(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// transfers reads what the bank sent out.
func (b *bankSite) transfers() (list []bankTransfer, err error) {
	for cursor := ""; ; {
		page, next, err := b.control.Transfers(b.sim.ctx, "", cursor)
		if err != nil || len(page) == 0 {
			return list, err
		}
		for _, t := range page {
			one, err := b.transfer(t.ExternalID)
			if err != nil {
				return list, err
			}
			list = append(list, one)
		}
		cursor = next
	}
}

// transfer reads one transfer, with what came back of it.
func (b *bankSite) transfer(externalID string) (t bankTransfer, err error) {
	var body struct {
		ExternalID string      `json:"externalId"`
		Amount     money.Cents `json:"amount"`
		State      string      `json:"state"`
		Returned   money.Cents `json:"returned"`
		EndToEndID string      `json:"endToEndId"`
	}
	if err := b.get("/transfers/"+externalID, &body); err != nil {
		return t, err
	}
	return bankTransfer{
		externalID: body.ExternalID, amount: int64(body.Amount), returned: int64(body.Returned),
		state: body.State, endToEndID: body.EndToEndID,
	}, nil
}

// payments reads what came in.
func (b *bankSite) payments() (list []bankPayment, err error) {
	for cursor := ""; ; {
		var page struct {
			Data []struct {
				ID         string      `json:"id"`
				ExternalID string      `json:"externalId"`
				Amount     money.Cents `json:"amount"`
				EndToEndID string      `json:"endToEndId"`
			} `json:"data"`
			NextCursor string `json:"nextCursor"`
		}
		if err := b.get("/payments?cursor="+cursor, &page); err != nil || len(page.Data) == 0 {
			return list, err
		}
		for _, p := range page.Data {
			list = append(list, bankPayment{p.ID, p.ExternalID, int64(p.Amount), p.EndToEndID})
		}
		cursor = page.NextCursor
	}
}

func (b *bankSite) get(path string, into any) error {
	r, err := http.NewRequestWithContext(b.sim.ctx, http.MethodGet, bankURL+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+bankSecret)
	answer, err := b.serve(r, nil)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("simulate: bank answers %d to %s", answer.StatusCode, path)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// arm lets the next call of an operation misbehave in the bank itself.
func (b *bankSite) arm(op bankapi.Operation, kind bankapi.FaultKind) {
	if err := b.control.Arm(b.sim.ctx, bankapi.Fault{Operation: op, Kind: kind, Count: 1}); err != nil {
		b.sim.violate("", "", "", "the bank cannot be armed: "+err.Error())
	}
}

// recorder keeps what a handler writes.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements [http.ResponseWriter].
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements [http.ResponseWriter].
func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

func (w *recorder) response(r *http.Request) *http.Response {
	return response(r, w.status, w.header, w.body.Bytes())
}

func response(r *http.Request, status int, header http.Header, body []byte) *http.Response {
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
