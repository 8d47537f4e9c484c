package apipix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/apipixface"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const (
	testBankSecret = "a secret inside of the bank of tests"
	testSecret     = "the secret of the application"
	testBase       = "https://bank.invalid"
)

// start is when tests begin: some afternoon in Brazil.
var start = time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)

// handlerTransport reaches a handler without a socket.
type handlerTransport struct{ handler http.Handler }

var errHungUp = errors.New("the server hung up")

// RoundTrip implements [http.RoundTripper].
func (h handlerTransport) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler {
			answer, err = nil, errors.Join(errHungUp, r.Context().Err())
		} else if cause != nil {
			panic(cause)
		}
	}()
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// inbox accepts notices.
type inbox struct {
	mu      sync.Mutex
	notices []processortest.Notice
	check   func(body []byte)
	status  int // of the answer; 0 is 200
}

// RoundTrip implements [http.RoundTripper].
func (g *inbox) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	status := g.status
	if status == 0 {
		status = http.StatusOK
	}
	if strings.HasSuffix(r.URL.Path, "/pix") && status == http.StatusOK {
		g.check(body)
		g.notices = append(g.notices, processortest.Notice{Header: r.Header.Clone(), Body: body})
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}, nil
}

func (g *inbox) received() []processortest.Notice {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]processortest.Notice(nil), g.notices...)
}

// harness is the driver, the bank's face, and the bank behind it.
type harness struct {
	t        *testing.T
	clock    *env.VirtualClock
	bank     *sandboxbank.Bank
	face     *apipixface.Face
	receiver *inbox
	ids      int
	driver   processor.Processor
}

func newHarness(t *testing.T, profile string, change ...func(o *apipixface.Options)) *harness {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	h := &harness{t: t, clock: clock, receiver: &inbox{}}
	o := apipixface.Options{
		BankURL: sandboxbank.InProcessURL, BankSecret: testBankSecret, Secret: testSecret, Clock: clock, Random: w.Random, Webhooks: h.receiver,
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	h.face, err = apipixface.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.bank, err = sandboxbank.Open(sandboxbank.Options{
		Secret: testBankSecret, Clock: clock, IDs: w.IDs, Notify: h.face.Notify(nil), NotifyURL: apipixface.NotifyURL,
		Pause: clock.Pause,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(h.bank.Close(), h.face.Close()) })
	h.face.Connect(h.bank)
	between := newValidator(t, handlerTransport{h.face.Handler()})
	h.receiver.check = between.notice
	h.driver = open(t, clock, between, profile, testBase)
	if err := h.driver.(processor.Installer).Install(t.Context(), "https://gateway.invalid/inbound/bank/token"); err != nil {
		t.Fatal(err)
	}
	return h
}

// account is one at a bank of tests.
func account(t testing.TB, profile, base string) processor.Account {
	t.Helper()
	a := processor.Account{
		ID: "bank",
		Settings: map[string]string{
			SettingBaseURL: base, SettingClientID: apipixface.ClientID, SettingPIXKey: apipixface.Key, SettingProfile: profile,
		},
		Secrets: map[string]string{SecretClient: testSecret, SecretCertificate: string(testCertificate(t))},
	}
	if profile == ProfileBacen {
		a.Settings[SettingBaseURL], a.Settings[SettingTokenURL] = base+"/v2", base+"/oauth/token"
	}
	return a
}

func open(t testing.TB, clock env.Clock, transport http.RoundTripper, profile, base string) processor.Processor {
	t.Helper()
	p, err := Driver{}.Open(account(t, profile, base), processor.Env{Clock: clock, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// testCertificate is a client certificate with its key.
func testCertificate(t testing.TB) []byte {
	t.Helper()
	return makeCertificates(t).Client
}

// makeCertificates makes the certificates of tests once.
func makeCertificates(t testing.TB) *apipixface.Authority {
	t.Helper()
	certificates.Do(func() {
		dir, err := tempDir()
		if err != nil {
			t.Fatal(err)
		}
		w := env.System(env.OutboundOptions{})
		if authority, err = apipixface.OpenAuthority(dir, "", w.Clock, w.Random); err != nil {
			t.Fatal(err)
		}
	})
	return authority
}

var (
	certificates sync.Once
	authority    *apipixface.Authority
)

func (h *harness) newID() string {
	h.ids++
	return fmt.Sprintf("%032d", h.ids)
}

// elapse lets a few seconds pass at the bank.
func (h *harness) elapse(t *testing.T) {
	t.Helper()
	for range 6 {
		for {
			did, err := h.bank.Step(t.Context(), h.clock.Now())
			if err != nil {
				t.Fatalf("step: %v", err)
			}
			if did == 0 {
				break
			}
		}
		h.clock.Advance(time.Second)
	}
}

// control calls a route of the bank that forces an outcome.
func (h *harness) control(t *testing.T, path string, in any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+testBankSecret)
	r.Header.Set("Content-Type", bankapi.JSONType)
	w := httptest.NewRecorder()
	h.bank.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: the bank answered %d %s", path, w.Code, w.Body)
	}
}

// ask calls a route of the bank's own protocol without a body, and returns status and body.
func (h *harness) ask(method, path string) string {
	r := httptest.NewRequestWithContext(context.Background(), method, path, http.NoBody)
	r.Header.Set("Authorization", "Bearer "+testBankSecret)
	w := httptest.NewRecorder()
	h.bank.Handler().ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", w.Body)
}

func (h *harness) arm(t *testing.T, operation bankapi.Operation, kind bankapi.FaultKind) {
	t.Helper()
	h.control(t, "/control/faults", bankapi.Fault{Operation: operation, Kind: kind, Count: 1})
}

func (h *harness) pay(t *testing.T, r processor.ChargeRequest, amount money.Cents) {
	t.Helper()
	h.control(t, "/control/charges/"+r.ExternalID+"/pay", bankapi.ForceCharge{Amount: amount})
}

func (h *harness) entries(subject bankapi.Subject) func(t *testing.T, externalID string) []processortest.Entry {
	return func(t *testing.T, externalID string) []processortest.Entry {
		t.Helper()
		o, ok, err := h.bank.PeekOrder(subject, externalID)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return nil
		}
		return []processortest.Entry{{ExternalID: o.ExternalID, Amount: o.Amount}}
	}
}

// conformance makes the harness fit the suite of all processors.
func (h *harness) conformance(profile string) processortest.Harness {
	return processortest.Harness{
		Processor: h.driver, Clock: h.clock, NewID: h.newID, Secrets: []string{testSecret, "a-secret-token"},
		Open: func(t *testing.T, farSide http.RoundTripper) processor.Processor {
			t.Helper()
			return open(t, h.clock, farSide, profile, testBase)
		},
		Greet: func(r *http.Request) (status int, body string) {
			if !strings.HasSuffix(r.URL.Path, "/oauth/token") {
				return 0, ""
			}
			return http.StatusOK, `{"access_token":"a-secret-token","token_type":"Bearer","expires_in":3600}`
		},
		Faults: []processortest.Fault{
			processortest.Refuse, processortest.TimeoutBefore, processortest.TimeoutAfter,
			processortest.ServerErrorAfter, processortest.Late, processortest.Garbage,
		},
		Misbehave: func(t *testing.T, operation processortest.Operation, fault processortest.Fault) {
			h.arm(t, bankapi.Operation(operation), bankapi.FaultKind(fault))
		},
		Transfers: h.entries(bankapi.SubjectTransfer),
		Refunds:   h.entries(bankapi.SubjectRefund),
		Pay:       h.pay,
		DisputeID: infractionPrefix + "1", NoFiles: true,
		Dispute: func(t *testing.T, r processor.ChargeRequest) {
			t.Helper()
			h.clock.Advance(infractionsFrom)
			h.control(t, "/control/charges/"+r.ExternalID+"/dispute", bankapi.ForceCharge{})
		},
		Elapse:  h.elapse,
		Notices: func(*testing.T) []processortest.Notice { return h.receiver.received() },
	}
}

// TestProcessor runs the suite of all processors on both profiles. Every request, answer and
// notice is valid by the official file, or by what Efí documents beyond it.
func TestProcessor(t *testing.T) {
	for _, profile := range []string{ProfileBacen, ProfileEfi} {
		t.Run(profile, func(t *testing.T) {
			processortest.Run(t, func(t *testing.T) processortest.Harness {
				t.Helper()
				return newHarness(t, profile).conformance(profile)
			})
		})
	}
}
