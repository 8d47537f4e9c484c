// Package sandboxcontrol implements the sandbox's routes: it controls the bank and
// waits until the gateway shows the effect.
//
// The effect arrives the usual way: the bank notifies the gateway, or the gateway
// polls the bank. Nothing here changes an order.
package sandboxcontrol

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

const (
	// effectTimeout is how long a call waits for its effect.
	effectTimeout = 20 * time.Second
	// The first and the longest pause between two polls.
	pauseMin = 2 * time.Millisecond
	pauseMax = 100 * time.Millisecond
	// duePayins is how many overdue pay-ins are read after the clock was moved.
	duePayins = 1
)

// Bank is the control side of the sandbox's bank. An error answer of the bank
// is a [bankapi.Code].
type Bank interface {
	Charge(ctx context.Context, r processor.ChargeRequest, action string, how bankapi.ForceCharge) error
	Transfer(ctx context.Context, externalID, action string, returned money.Cents) error
	Refund(ctx context.Context, externalID, action string) error
	Arm(ctx context.Context, fault bankapi.Fault) error
	Disarm(ctx context.Context) error
	SetOffset(ctx context.Context, d time.Duration) error
	Transfers(ctx context.Context, externalID, cursor string) (page []bankapi.TransferEntry, next string, err error)
}

// Options make a Control. All but BankOf and OwnClock are needed.
type Options struct {
	Bank Bank
	// BankOf returns the control of an account's contract, nil if the account is not at a
	// sandbox's bank; without it all are at Bank.
	BankOf func(account string) Bank
	// OwnClock: the bank is another process, whose clock has to be moved too.
	OwnClock   bool
	Store      *store.Store
	Payins     *payin.Service
	Processors processor.Accounts
	Clock      *Clock
}

// Control implements the sandbox's routes and the sandbox strip of the payer's
// page.
type Control struct{ Options }

var (
	_ httpapi.Sandbox  = (*Control)(nil)
	_ checkout.Sandbox = (*Control)(nil)
)

// New returns the control of a bank.
func New(o Options) *Control { return &Control{o} }

func (c *Control) bankOf(account string) Bank {
	if c.BankOf == nil {
		return c.Bank
	}
	if b := c.BankOf(account); b != nil {
		return b
	}
	return foreign{c.Bank}
}

// foreign is the bank of an order that is at another processor: nothing there can be forced.
type foreign struct{ Bank }

var errForeign = problem.New(problem.InvalidState, "The order is not at the sandbox's bank: force its outcome at its own processor.")

// Charge implements [Bank].
func (foreign) Charge(context.Context, processor.ChargeRequest, string, bankapi.ForceCharge) error {
	return errForeign
}

// Transfer implements [Bank].
func (foreign) Transfer(context.Context, string, string, money.Cents) error { return errForeign }

// Refund implements [Bank].
func (foreign) Refund(context.Context, string, string) error { return errForeign }

// contract is the control of the contract that a request names by its account; "" is the bank's
// own.
func (c *Control) contract(account string) (Bank, error) {
	if account == "" {
		return c.Bank, nil
	}
	if c.BankOf != nil && c.Processors.Find(account) != nil {
		if b := c.BankOf(account); b != nil {
			return b, nil
		}
	}
	return nil, problem.New(problem.ValidationFailed, "Invalid request.").WithFields(problem.FieldError{
		Field: "account", Code: problem.CodeNotAllowed, Detail: "must be an account at the sandbox's bank",
	})
}

// ArmFault implements [httpapi.Sandbox].
func (c *Control) ArmFault(ctx context.Context, f wire.SandboxFault) error {
	b, err := c.contract(f.Account)
	if err != nil {
		return err
	}
	return bankProblem(b.Arm(ctx, bankapi.Fault{Operation: bankapi.Operation(f.Operation), Kind: bankapi.FaultKind(f.Kind), Count: f.Count}))
}

// ClearFaults implements [httpapi.Sandbox]. A bank that does not answer keeps no fault of
// another.
func (c *Control) ClearFaults(ctx context.Context) error {
	own := bankProblem(c.Bank.Disarm(ctx))
	var failed []string
	var errs []error
	for _, id := range c.Processors.IDs() {
		if b, err := c.contract(id); err == nil {
			if err := b.Disarm(ctx); err != nil {
				failed, errs = append(failed, id), append(errs, err)
			}
		}
	}
	if own != nil || len(failed) == 0 {
		return own
	}
	return problem.New(problem.Unavailable, "The faults of these accounts may remain, as their banks do not answer: "+strings.Join(failed, ", ")+". Those of the others are removed.").
		With(errors.Join(errs...))
}

// AdvanceClock implements [httpapi.Sandbox].
func (c *Control) AdvanceClock(ctx context.Context, d time.Duration) error {
	offset, err := c.Clock.Advance(ctx, d)
	if err != nil {
		return err
	}
	if c.OwnClock {
		if err := c.Bank.SetOffset(ctx, offset); err != nil {
			return bankProblem(err)
		}
	}
	now := c.Clock.system.Now()
	return c.await(ctx, func() (bool, error) {
		due, err := c.Store.PayinsDue(ctx, now, duePayins)
		return len(due) == 0, err
	})
}

// Transfers implements [httpapi.Sandbox].
func (c *Control) Transfers(ctx context.Context, account, externalID string) ([]wire.SandboxTransfer, error) {
	b, err := c.contract(account)
	if err != nil {
		return nil, err
	}
	var list []wire.SandboxTransfer
	for cursor := ""; ; {
		page, next, err := b.Transfers(ctx, externalID, cursor)
		if err != nil {
			return nil, bankProblem(err)
		}
		for i := range page {
			t := &page[i]
			list = append(list, wire.SandboxTransfer{
				ExternalID: t.ExternalID, Amount: t.Amount, PIXKey: t.PIXKey, EndToEndID: t.EndToEndID, Status: t.Status, CreatedAt: t.CreatedAt,
			})
		}
		if len(page) == 0 || next == cursor {
			return list, nil
		}
		cursor = next
	}
}

// await polls until done returns true or an error. After effectTimeout the
// error is a processor_timeout.
func (c *Control) await(ctx context.Context, done func() (bool, error)) error {
	clock := c.Clock.system
	deadline := clock.Monotonic() + effectTimeout
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if clock.Monotonic() > deadline {
			return problem.New(problem.ProcessorTimeout, "The bank has done it, but the gateway does not show the effect yet. A fault may be suppressing the bank's notices.")
		}
		timer := clock.NewTimer(pause)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func impossible(action, status string) error {
	return problem.New(problem.InvalidState, "An order that is "+status+" cannot "+action+".")
}

// storeProblem makes an error of the store one for the caller.
func storeProblem(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.NotFound, "Order not found.")
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrCommitUnknown):
		return problem.New(problem.Unavailable, "The database is not available. Send the same request again.").With(err)
	default:
		return err
	}
}

// bankProblem makes an error of the bank one for the caller.
func bankProblem(err error) error {
	if err == nil || errors.Is(err, errForeign) {
		return err
	}
	switch code, _ := errors.AsType[bankapi.Code](err); code {
	case bankapi.CodeStateForbids, bankapi.CodeContentDiffers,
		bankapi.CodeNotFound, bankapi.CodeChargeUnknown, bankapi.CodeTransferUnknown, bankapi.CodeRefundUnknown:
		return problem.New(problem.InvalidState, "The bank does not allow this in the order's current status.").With(err)
	case bankapi.CodeRequestInvalid:
		return problem.New(problem.ValidationFailed, "The bank rejected these values.").With(err)
	default:
		return problem.New(problem.Unavailable, "The sandbox's bank does not answer.").With(err)
	}
}
