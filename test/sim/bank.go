package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxbank"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/test/sim/checker"
)

const (
	bankURL    = "http://bank.sim"
	bankSecret = "a secret between bank and gateways"
)

// bank is the sandbox's bank in a separate process, with a journal that survives restarts.
type bank struct {
	sim         *simulation
	bank        *sandboxbank.Bank
	source      env.Env
	unreachable bool
	stepAt      time.Duration // of its next step; 0 while none is scheduled
	charges     map[string]*checker.BankCharge
	chargeIDs   []string // of charges, in the order of their registration
}

func (b *bank) open() error {
	s := b.sim
	o := sandboxbank.Options{
		Path: s.options.Journal, Secret: bankSecret, Clock: s.clock, IDs: b.source.IDs,
		Notify: &noticeTransport{s}, NotifyURL: s.contracts[0].noticeURL,
		Pause: func(_ context.Context, d time.Duration) { b.pause(d) },
	}
	if !s.faultsOff && s.plan.delayed > 0 {
		o.Faults = sandboxbank.FaultProfile{
			Seed: s.options.Seed, PerMille: s.plan.delayed,
			Operations: []bankapi.Operation{bankapi.OpTransfer, bankapi.OpRefund}, Kinds: []bankapi.FaultKind{bankapi.Delayed},
		}
	}
	opened, err := sandboxbank.Open(o)
	if err != nil {
		return err
	}
	b.bank = opened
	for _, c := range s.contracts {
		if c.bank = opened; c.name != "" {
			if c.bank, err = opened.Contract(c.repeat, c.name); err != nil {
				return err
			}
			c.bank.SetNotifyURL(c.noticeURL)
		}
		c.control, err = sandbox.NewControl(sandbox.Options{URL: bankURL + c.path(), Secret: bankSecret, Transport: directTransport{b}})
		if err != nil {
			return err
		}
	}
	b.scheduleStep()
	return nil
}

// nextDue is when the next work of a contract is due.
func (b *bank) nextDue() (next time.Time, ok bool) {
	for _, c := range b.sim.contracts {
		if due, some := c.bank.NextDue(); some && (!ok || due.Before(next)) {
			next, ok = due, true
		}
	}
	return next, ok
}

// pause advances time inside a call. A negative d is a call that is never answered: it ends
// when its caller gives up.
func (b *bank) pause(d time.Duration) {
	if d >= 0 {
		b.sim.elapse(d)
	}
}

// scheduleStep schedules the bank's next step at the due time of its work.
func (b *bank) scheduleStep() {
	if b.bank == nil {
		return
	}
	s := b.sim
	due, ok := b.nextDue()
	if !ok {
		return
	}
	at := max(s.clock.Monotonic(), due.Sub(s.began))
	if b.stepAt != 0 && b.stepAt <= at {
		return
	}
	b.stepAt = max(at, 1)
	scheduled := b.stepAt
	s.after(at-s.clock.Monotonic(), func() {
		if b.stepAt == scheduled {
			b.stepAt = 0
		}
		b.step()
	})
}

func (b *bank) step() {
	s := b.sim
	if b.unreachable {
		s.after(time.Second, b.scheduleStep)
		return
	}
	stepped := b.bank
	for _, c := range s.contracts {
		did, err := c.bank.Step(s.ctx, s.clock.Now())
		if b.bank != stepped {
			return // it was killed meanwhile
		}
		if err != nil {
			s.fail(err)
		}
		if did > 0 {
			s.trace.linef("bank did %d for account %s", did, c.id)
		}
	}
	b.scheduleStep()
}

// restart kills the bank and opens it from its journal.
func (b *bank) restart() {
	s := b.sim
	s.trace.linef("bank restarts")
	if err := errors.Join(b.bank.Close(), b.open()); err != nil {
		s.fail(err)
	}
}

var errNoAnswer = errors.New("sim: no answer")

// serve answers a request that reached the bank.
func (b *bank) serve(r *http.Request, body []byte) (answer *http.Response, err error) {
	w := newRecorder()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.RequestURI = ""
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler { //nolint:errorlint // it is never wrapped
			answer, err = nil, errNoAnswer
		} else if cause != nil {
			panic(cause)
		}
	}()
	defer b.scheduleStep() // for work due after this call
	b.bank.Handler().ServeHTTP(w, r)
	b.noteCharge(r.Method, r.URL.Path, body, w.Code)
	return recorded(r, w), nil
}

// directTransport calls the bank without faults: for payers, and to read its records.
type directTransport struct{ bank *bank }

// RoundTrip implements [http.RoundTripper].
func (t directTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readAll(r)
	if err != nil {
		return nil, err
	}
	return t.bank.serve(r, body)
}

// delayedCount is the number of transfers and refunds that the bank has delayed.
func (b *bank) delayedCount() (n int) {
	if b.sim.plan.delayed == 0 {
		return 0
	}
	for _, c := range b.sim.contracts {
		for fault, count := range c.bank.FaultsFired() {
			if fault.Kind == bankapi.Delayed {
				n += count
			}
		}
	}
	return n
}

// arm injects a fault of the bank itself into the next call of an operation.
func (b *bank) arm(c *contract, op bankapi.Operation, kind bankapi.FaultKind) {
	if err := c.control.Arm(b.sim.ctx, bankapi.Fault{Operation: op, Kind: kind, Count: 1}); err != nil {
		b.sim.fail(err)
	}
}
