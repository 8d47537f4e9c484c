package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
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
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const testSecret = "a secret between bank and gateway"

// start is when tests begin: some afternoon in Brazil.
var start = time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)

// gateway accepts the bank's notices, and approves transfers unless decide is set.
type gateway struct {
	mu      sync.Mutex
	notices []processortest.Notice
	decide  func(processortest.Notice) (status int, contentType string, body []byte)
}

// RoundTrip implements [http.RoundTripper].
func (g *gateway) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := processortest.Notice{Header: request.Header.Clone(), Body: body}
	answer := &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Header: http.Header{}}
	switch {
	case !strings.HasSuffix(request.URL.Path, bankapi.ConsentPath):
		g.notices = append(g.notices, n)
	case g.decide == nil:
		answer.StatusCode, answer.Body = http.StatusOK, io.NopCloser(strings.NewReader(`{"status":"approved"}`))
	default:
		status, contentType, body := g.decide(n)
		if status == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		answer.StatusCode, answer.Body = status, io.NopCloser(bytes.NewReader(body))
		answer.Header.Set("Content-Type", contentType)
	}
	return answer, nil
}

func (g *gateway) onQuestion(decide func(processortest.Notice) (status int, contentType string, body []byte)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decide = decide
}

func (g *gateway) received() []processortest.Notice {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]processortest.Notice(nil), g.notices...)
}

// harness is the driver and its bank.
type harness struct {
	t       *testing.T
	clock   *env.VirtualClock
	bank    *sandboxbank.Bank
	gateway *gateway
	ids     int
	control *Control
	driver  *Processor

	asked *sandboxbank.Bank // the contract that asks for consent, if the driver is there
}

// newHarness opens a bank whose pauses advance a virtual clock, and reaches it
// in process.
func newHarness(t *testing.T, path string) *harness {
	t.Helper()
	w, clock := env.Virtual(start, 1)
	h := &harness{t: t, clock: clock, gateway: &gateway{}}
	var err error
	h.bank, err = sandboxbank.Open(sandboxbank.Options{
		Path: path, Secret: testSecret, Clock: clock, IDs: w.IDs,
		Notify: h.gateway, NotifyURL: "http://gateway.invalid/notices",
		Pause: clock.Pause,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.bank.Close() })
	h.connect(Options{URL: sandboxbank.InProcessURL, Secret: testSecret, Transport: h.bank.Transport(), Offline: h.bank.OfflineCharges})
	return h
}

func (h *harness) connect(o Options) {
	h.t.Helper()
	var err error
	if h.driver, err = NewProcessor(o); err != nil {
		h.t.Fatal(err)
	}
	if h.control, err = NewControl(o); err != nil {
		h.t.Fatal(err)
	}
}

// askConsent moves the driver to a contract that asks for consent.
func (h *harness) askConsent() {
	h.t.Helper()
	const repeat, name = bankapi.RepeatAsksConsent, "asks"
	var err error
	if h.asked, err = h.bank.Contract(repeat, name); err != nil {
		h.t.Fatal(err)
	}
	h.asked.SetNotifyURL("http://gateway.invalid/notices")
	h.connect(Options{
		URL: sandboxbank.InProcessURL + bankapi.ContractPath(repeat, name), Secret: testSecret, Transport: h.bank.Transport(), Repeat: repeat,
	})
}

// contract is the bank that the driver calls.
func (h *harness) contract() *sandboxbank.Bank {
	if h.asked != nil {
		return h.asked
	}
	return h.bank
}

// patientTransport returns the error of a call once the bank has ended the call as well. The
// bank of a call that timed out advances the clock until it notices, and must not do so while
// the next call is under way.
type patientTransport struct {
	http.RoundTripper
	serving *sync.RWMutex // read-locked by each call at the bank
}

// RoundTrip implements [http.RoundTripper].
func (p patientTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.RoundTripper.RoundTrip(request)
	if err != nil {
		p.serving.Lock()
		defer p.serving.Unlock()
	}
	return response, err
}

// listen reaches the bank over a real socket.
func (h *harness) listen() {
	h.t.Helper()
	var serving sync.RWMutex
	bank := h.bank.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.RLock()
		defer serving.RUnlock()
		bank.ServeHTTP(w, r)
	}))
	outbound := env.NewOutbound(env.OutboundOptions{})
	h.t.Cleanup(func() {
		(&http.Client{Transport: outbound.Processor()}).CloseIdleConnections()
		_ = h.bank.Close() // ends calls that wait
		server.Close()
	})
	h.connect(Options{URL: server.URL, Secret: testSecret, Transport: patientTransport{outbound.Processor(), &serving}})
}

func (h *harness) newID() string {
	h.ids++
	return fmt.Sprintf("%032d", h.ids)
}

// elapse lets a few seconds pass at the bank.
func (h *harness) elapse(t *testing.T) {
	t.Helper()
	for range 6 {
		for {
			did, err := h.contract().Step(t.Context(), h.clock.Now())
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

func (h *harness) arm(t *testing.T, operation bankapi.Operation, kind bankapi.FaultKind) {
	t.Helper()
	if err := h.control.Arm(t.Context(), bankapi.Fault{Operation: operation, Kind: kind, Count: 1}); err != nil {
		t.Fatalf("arm: %v", err)
	}
}

// conformance makes the harness fit the suite of all processors.
func (h *harness) conformance() processortest.Harness {
	return processortest.Harness{
		Processor: h.driver, Clock: h.clock, NewID: h.newID, Secrets: []string{testSecret},
		Open: func(t *testing.T, farSide http.RoundTripper) processor.Processor {
			t.Helper()
			p, err := NewProcessor(Options{URL: "http://bank.invalid", Secret: testSecret, Transport: farSide})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Faults: []processortest.Fault{
			processortest.Refuse, processortest.NotSent, processortest.TimeoutBefore, processortest.TimeoutAfter,
			processortest.ServerErrorAfter, processortest.Late, processortest.Garbage,
		},
		Misbehave: func(t *testing.T, operation processortest.Operation, fault processortest.Fault) {
			h.arm(t, bankapi.Operation(operation), bankapi.FaultKind(fault))
		},
		Transfers: func(t *testing.T, externalID string) (entries []processortest.Entry) {
			list, _, err := h.control.Transfers(t.Context(), externalID, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range list {
				entries = append(entries, processortest.Entry{ExternalID: entry.ExternalID, Amount: entry.Amount})
			}
			return entries
		},
		Refunds: h.refunds,
		Pay: func(t *testing.T, request processor.ChargeRequest, amount money.Cents) {
			if err := h.control.Charge(t.Context(), request, "pay", bankapi.ForceCharge{Amount: amount}); err != nil {
				t.Fatal(err)
			}
		},
		Dispute: func(t *testing.T, request processor.ChargeRequest) {
			if err := h.control.Charge(t.Context(), request, "dispute", bankapi.ForceCharge{}); err != nil {
				t.Fatal(err)
			}
		},
		Elapse:  h.elapse,
		Notices: func(*testing.T) []processortest.Notice { return h.gateway.received() },
		Forge: func(_ *testing.T, body []byte, at time.Time, wrongSecret bool) processortest.Notice {
			secret := testSecret
			if wrongSecret {
				secret += "!"
			}
			header := http.Header{}
			bankapi.SignNotice(header, secret, at, body)
			return processortest.Notice{Header: header, Body: body}
		},
		SignatureHeaders: []string{bankapi.HeaderTimestamp, bankapi.HeaderSignature},
		Tolerance:        300 * time.Second,
	}
}

// refunds reads the bank's refund of an id, if the bank accepted it.
func (h *harness) refunds(t *testing.T, externalID string) []processortest.Entry {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/refunds/"+externalID, nil)
	request.Header.Set("Authorization", "Bearer "+testSecret)
	w := httptest.NewRecorder()
	h.contract().Handler().ServeHTTP(w, request)
	var order bankapi.Order
	if err := json.Unmarshal(w.Body.Bytes(), &order); err != nil {
		t.Fatal(err)
	}
	switch {
	case w.Code == http.StatusNotFound, order.EndToEndID == "": // unknown, or refused
		return nil
	case w.Code != http.StatusOK:
		t.Fatalf("the bank answered %d", w.Code)
	}
	return []processortest.Entry{{ExternalID: order.ExternalID, Amount: order.Amount}}
}

func TestProcessorInProcess(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness {
		return newHarness(t, "").conformance()
	})
}

func TestProcessorOverSocket(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness {
		h := newHarness(t, filepath.Join(t.TempDir(), "bank.journal"))
		h.listen()
		return h.conformance()
	})
}

func TestProcessorAsksConsent(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness {
		h := newHarness(t, filepath.Join(t.TempDir(), "bank.journal"))
		h.askConsent()
		c := h.conformance()
		c.OnQuestion = h.gateway.onQuestion
		return c
	})
}

func TestOptionsAreNeeded(t *testing.T) {
	complete := Options{URL: "http://bank.invalid", Secret: testSecret, Transport: &gateway{}}
	if _, err := NewProcessor(complete); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"no secret":    func(o *Options) { o.Secret = "" },
		"no transport": func(o *Options) { o.Transport = nil },
		"no address":   func(o *Options) { o.URL = "" },
		"a file":       func(o *Options) { o.URL = "file:///etc/passwd" },
	} {
		o := complete
		change(&o)
		if _, err := NewProcessor(o); err == nil {
			t.Errorf("%s: a driver was made", name)
		}
	}
}

// TestErrorsHoldNoPersonalData: no error names the receiver of the money.
func TestErrorsHoldNoPersonalData(t *testing.T) {
	h := newHarness(t, "")
	for _, kind := range bankapi.FaultKinds {
		h.arm(t, bankapi.OpTransfer, kind)
		request := processor.TransferRequest{
			ExternalID: h.newID(), Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com",
			Name: "Maria da Silva", Document: "52998224725",
		}
		ctx, cancel := h.clock.WithTimeout(t.Context(), 5*time.Second)
		answer := h.driver.Transfer(ctx, request, func() error { return nil })
		cancel()
		text := answer.Evidence + answer.Report.Evidence
		if answer.Cause != nil {
			text += answer.Cause.Error()
		}
		for _, secret := range []string{request.Key, request.Name, request.Document, testSecret} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q holds %q", kind, text, secret)
			}
		}
	}
}

// TestRemoteBankIsCalled: without Offline every charge needs a call.
func TestRemoteBankIsCalled(t *testing.T) {
	h := newHarness(t, "")
	request := processor.ChargeRequest{ExternalID: h.newID(), Method: "PIX", Amount: 1, ExpiresAt: start.Add(time.Hour), MerchantName: "Padaria"}
	if _, ok := h.driver.NewCharge(request); !ok {
		t.Error("bank in process: not generated")
	}
	h.listen()
	if _, ok := h.driver.NewCharge(request); ok {
		t.Error("remote bank: generated")
	}
}
