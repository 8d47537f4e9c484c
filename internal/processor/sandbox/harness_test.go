package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/processortest"
)

const testSecret = "a secret between bank and gateway"

// start is when tests begin: some afternoon in Brazil.
var start = time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)

// receiver is a gateway that takes notices.
type receiver struct {
	mu      sync.Mutex
	notices []processortest.Notice
	urls    []string
	answer  func(url string) (int, error) // nil accepts
}

// RoundTrip implements [http.RoundTripper].
func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.urls = append(r.urls, request.URL.String())
	status := http.StatusNoContent
	if r.answer != nil {
		if status, err = r.answer(request.URL.String()); err != nil {
			return nil, err
		}
	}
	if status < 300 {
		r.notices = append(r.notices, processortest.Notice{Header: request.Header.Clone(), Body: body})
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil)), Header: http.Header{}}, nil
}

func (r *receiver) received() []processortest.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]processortest.Notice(nil), r.notices...)
}

// rig is a bank with everything around it.
type rig struct {
	t       *testing.T
	env     env.Env
	clock   *env.VirtualClock
	bank    *Bank
	gateway *receiver
	opts    BankOptions
	near    Options // how the processor reaches the bank
	ids     int
	control *Control
	adapter *Processor
}

// newRig opens a bank whose pauses let virtual time pass.
func newRig(t *testing.T, change func(*BankOptions)) *rig {
	t.Helper()
	r := &rig{t: t, gateway: &receiver{}}
	r.env, r.clock = env.Virtual(start, 1)
	r.opts = BankOptions{
		Secret: testSecret, Clock: r.clock, IDs: r.env.IDs,
		Notify: r.gateway, NotifyURL: "http://gateway.invalid/notices",
		Pause: func(ctx context.Context, d time.Duration) {
			if d >= 0 {
				r.clock.Advance(d)
				return
			}
			// Exactly to the caller's time-out: what it does next is none of ours.
			if wait, ok := r.clock.Next(); ok {
				r.clock.Advance(wait)
			}
			<-ctx.Done()
		},
	}
	if change != nil {
		change(&r.opts)
	}
	r.open()
	t.Cleanup(func() { _ = r.bank.Close() })
	return r
}

// open opens the bank, again after a crash, and reaches it in process.
func (r *rig) open() {
	r.t.Helper()
	bank, err := OpenBank(r.opts)
	if err != nil {
		r.t.Fatalf("open bank: %v", err)
	}
	r.bank, r.near = bank, Options{Bank: bank}
	r.connect()
}

// connect makes adapter and control anew.
func (r *rig) connect() {
	r.t.Helper()
	var err error
	if r.adapter, err = NewProcessor(r.near); err != nil {
		r.t.Fatal(err)
	}
	if r.control, err = NewControl(r.near); err != nil {
		r.t.Fatal(err)
	}
}

// listen lets the bank be reached over a real socket.
func (r *rig) listen() {
	r.t.Helper()
	server := httptest.NewServer(r.bank.Handler())
	outbound := env.NewOutbound(env.OutboundOptions{})
	r.t.Cleanup(func() {
		outbound.CloseIdle()
		_ = r.bank.Close() // ends calls that wait
		server.Close()
	})
	r.near = Options{URL: server.URL, Secret: testSecret, Transport: outbound.Processor()}
	r.connect()
}

func (r *rig) newID() string {
	r.ids++
	return fmt.Sprintf("%032d", r.ids)
}

// step does what is due now.
func (r *rig) step() {
	r.t.Helper()
	for {
		did, err := r.bank.Step(r.t.Context(), r.clock.Now())
		if err != nil {
			r.t.Fatalf("step: %v", err)
		}
		if did == 0 {
			return
		}
	}
}

// settle lets a few seconds pass.
func (r *rig) settle() {
	r.t.Helper()
	for range 5 {
		r.step()
		r.clock.Advance(time.Second)
	}
	r.step()
}

func (r *rig) transferRequest() processor.TransferRequest {
	return processor.TransferRequest{
		ExternalID: r.newID(), Amount: 6_789, KeyType: "EMAIL", Key: "maria@example.com",
		Name: "Maria da Silva", Document: "52998224725",
	}
}

func (r *rig) chargeRequest(method payment.Method) processor.ChargeRequest {
	request := processor.ChargeRequest{
		ExternalID: r.newID(), Method: method, Amount: 12_345, ExpiresAt: r.clock.Now().Add(24 * time.Hour),
		MerchantName: "Padaria São João", MerchantCity: "São Paulo",
	}
	if method == payment.Boleto {
		request.DueDate = r.clock.Now().Add(72 * time.Hour).Format(time.DateOnly)
	}
	return request
}

func (r *rig) transfer(request processor.TransferRequest) processor.TransferAnswer {
	ctx, cancel := r.clock.WithTimeout(r.t.Context(), 5*time.Second)
	defer cancel()
	return r.adapter.Transfer(ctx, request, func() error { return nil })
}

func (r *rig) pay(request processor.ChargeRequest, how Payment) {
	r.t.Helper()
	if err := r.control.Charge(r.t.Context(), request, "pay", how); err != nil {
		r.t.Fatalf("pay: %v", err)
	}
}

func (r *rig) arm(operation Operation, kind Kind) {
	r.t.Helper()
	if err := r.control.Arm(r.t.Context(), Fault{operation, kind, 1}); err != nil {
		r.t.Fatalf("arm: %v", err)
	}
}

// harness makes the rig fit the suite of all processors.
func (r *rig) harness() processortest.Harness {
	return processortest.Harness{
		Processor: r.adapter, Clock: r.clock, NewID: r.newID,
		Faults: []processortest.Fault{
			processortest.Refuse, processortest.NotSent, processortest.TimeoutBefore, processortest.TimeoutAfter,
			processortest.ServerErrorAfter, processortest.Late, processortest.Rubbish,
		},
		Misbehave: func(_ *testing.T, operation processortest.Operation, fault processortest.Fault) {
			r.arm(Operation(operation), Kind(fault))
		},
		Transfers: func(t *testing.T, externalID string) (entries []processortest.Entry) {
			lines, _, err := r.control.Transfers(t.Context(), externalID, "")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range lines {
				entries = append(entries, processortest.Entry{ExternalID: line.ExternalID, Amount: line.Amount})
			}
			return entries
		},
		Refunds: func(_ *testing.T, externalID string) []processortest.Entry {
			r.bank.mu.Lock()
			defer r.bank.mu.Unlock()
			o := r.bank.books.orders[orderKey{processor.SubjectRefund, externalID}]
			if o == nil || o.Refusal != "" {
				return nil
			}
			return []processortest.Entry{{ExternalID: o.ExternalID, Amount: o.Amount}}
		},
		Pay: func(t *testing.T, request processor.ChargeRequest, amount money.Cents) {
			if err := r.control.Charge(t.Context(), request, "pay", Payment{Amount: amount}); err != nil {
				t.Fatal(err)
			}
		},
		Settle:  func(*testing.T) { r.settle() },
		Notices: func(*testing.T) []processortest.Notice { return r.gateway.received() },
		Forge: func(_ *testing.T, body []byte, at time.Time, wrongSecret bool) processortest.Notice {
			secret := testSecret
			if wrongSecret {
				secret += "!"
			}
			header := http.Header{}
			signNotice(header, secret, at, body)
			return processortest.Notice{Header: header, Body: body}
		},
		SignatureHeaders: []string{HeaderTimestamp, HeaderSignature},
		Tolerance:        300 * time.Second,
	}
}

func TestProcessorInProcess(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness {
		return newRig(t, nil).harness()
	})
}

func TestProcessorOverSocket(t *testing.T) {
	processortest.Run(t, func(t *testing.T) processortest.Harness {
		r := newRig(t, func(o *BankOptions) { o.Path = filepath.Join(t.TempDir(), "bank.journal") })
		r.listen()
		return r.harness()
	})
}
