package sandboxbank

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

const testSecret = "a secret between bank and gateway"

// start is when tests begin: some afternoon in Brazil.
var start = time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)

// sentNotice is a notice that the gateway accepted.
type sentNotice struct {
	header http.Header
	body   []byte
}

// gateway accepts notices.
type gateway struct {
	mu      sync.Mutex
	notices []sentNotice
	urls    []string
	answer  func(url string) (int, error) // nil accepts
	asked   []askedQuestion
	consent func(q bankapi.Question) (int, string) // the answer to a question; nil approves
}

// askedQuestion is a question that reached the gateway.
type askedQuestion struct {
	bankapi.Question

	at time.Time
}

// RoundTrip implements [http.RoundTripper].
func (g *gateway) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if strings.HasSuffix(request.URL.Path, bankapi.ConsentPath) {
		return g.decide(request, body)
	}
	g.urls = append(g.urls, request.URL.String())
	status := http.StatusNoContent
	if g.answer != nil {
		if status, err = g.answer(request.URL.String()); err != nil {
			return nil, err
		}
	}
	if status < 300 {
		g.notices = append(g.notices, sentNotice{request.Header.Clone(), body})
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil)), Header: http.Header{}}, nil
}

// decide answers a question.
func (g *gateway) decide(request *http.Request, body []byte) (*http.Response, error) {
	seconds, err := strconv.ParseInt(request.Header.Get(bankapi.HeaderTimestamp), 10, 64)
	if err != nil {
		return nil, err
	}
	asked := askedQuestion{at: time.Unix(seconds, 0)}
	if err := json.Unmarshal(body, &asked.Question); err != nil {
		return nil, err
	}
	g.asked = append(g.asked, asked)
	status, answer := http.StatusOK, `{"status":"approved"}`
	if g.consent != nil {
		status, answer = g.consent(asked.Question)
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(answer)), Header: http.Header{}}, nil
}

func (g *gateway) received() []sentNotice {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]sentNotice(nil), g.notices...)
}

// harness is a bank, and the driver and the control that call it.
type harness struct {
	t       *testing.T
	clock   *env.VirtualClock
	bank    *Bank
	gateway *gateway
	opts    Options
	ids     int
	control *sandbox.Control
	driver  *sandbox.Processor
}

// newHarness opens a bank whose pauses advance a virtual clock.
func newHarness(t *testing.T, change func(*Options)) *harness {
	t.Helper()
	h := &harness{t: t, gateway: &gateway{}}
	var w env.Env
	w, h.clock = env.Virtual(start, 1)
	h.opts = Options{
		Secret: testSecret, Clock: h.clock, IDs: w.IDs,
		Notify: h.gateway, NotifyURL: "http://gateway.invalid/notices",
		Pause: h.clock.Pause,
	}
	if change != nil {
		change(&h.opts)
	}
	h.open()
	t.Cleanup(func() { _ = h.bank.Close() })
	return h
}

// open opens the bank, again after a crash.
func (h *harness) open() {
	h.t.Helper()
	var err error
	if h.bank, err = Open(h.opts); err != nil {
		h.t.Fatalf("open bank: %v", err)
	}
	o := sandbox.Options{URL: InProcessURL, Secret: testSecret, Transport: h.bank.Transport(), Offline: h.bank.OfflineCharges}
	if h.driver, err = sandbox.NewProcessor(o); err != nil {
		h.t.Fatal(err)
	}
	if h.control, err = sandbox.NewControl(o); err != nil {
		h.t.Fatal(err)
	}
}

// reopen closes the bank and opens it again.
func (h *harness) reopen() {
	h.t.Helper()
	if err := h.bank.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.open()
}

func onDisk(t *testing.T) func(*Options) {
	path := filepath.Join(t.TempDir(), "bank.journal")
	return func(o *Options) { o.Path = path }
}

func (h *harness) newID() string {
	h.ids++
	return fmt.Sprintf("%032d", h.ids)
}

// step fires the timers that are due now.
func (h *harness) step() {
	h.t.Helper()
	for {
		did, err := h.bank.Step(h.t.Context(), h.clock.Now())
		if err != nil {
			h.t.Fatalf("step: %v", err)
		}
		if did == 0 {
			return
		}
	}
}

// elapse lets a few seconds pass.
func (h *harness) elapse() {
	h.t.Helper()
	for range 5 {
		h.step()
		h.clock.Advance(time.Second)
	}
	h.step()
}

func (h *harness) transferRequest() processor.TransferRequest {
	return processor.TransferRequest{
		ExternalID: h.newID(), Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com",
		Name: "Maria da Silva", Document: "52998224725",
	}
}

func (h *harness) chargeRequest(method payment.Method) processor.ChargeRequest {
	request := processor.ChargeRequest{
		ExternalID: h.newID(), Method: method, Amount: 12_345, ExpiresAt: h.clock.Now().Add(24 * time.Hour),
		MerchantName: "Padaria São João", MerchantCity: "São Paulo",
	}
	if method == payment.Boleto {
		request.DueDate = h.clock.Now().Add(72 * time.Hour).Format(time.DateOnly)
	}
	return request
}

func (h *harness) transfer(request processor.TransferRequest) processor.TransferAnswer {
	ctx, cancel := h.clock.WithTimeout(h.t.Context(), 5*time.Second)
	defer cancel()
	return h.driver.Transfer(ctx, request, willing)
}

func (h *harness) pay(request processor.ChargeRequest, how bankapi.ForceCharge) {
	h.t.Helper()
	if err := h.control.Charge(h.t.Context(), request, "pay", how); err != nil {
		h.t.Fatalf("pay: %v", err)
	}
}

func (h *harness) arm(operation bankapi.Operation, kind bankapi.FaultKind) {
	h.t.Helper()
	if err := h.control.Arm(h.t.Context(), bankapi.Fault{Operation: operation, Kind: kind, Count: 1}); err != nil {
		h.t.Fatalf("arm: %v", err)
	}
}

// transfers reads the bank's list of transfers under an id.
func (h *harness) transfers(externalID string) []bankapi.TransferEntry {
	h.t.Helper()
	list, _, err := h.control.Transfers(h.t.Context(), externalID, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// willing is a guard that lets the call pass.
func willing() error { return nil }
