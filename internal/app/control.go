package app

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// How long an effect is waited for, and how often it is looked at.
const (
	effectTimeout = 20 * time.Second
	lookMin       = 2 * time.Millisecond
	lookMax       = 100 * time.Millisecond
	// expiredAtOnce bounds what is looked at after the clock was moved.
	expiredAtOnce = 1
)

// control is what the sandbox's routes reach: the bank is told what to do, and
// its news come back the way that they always come.
type control struct{ app *App }

var _ httpapi.Sandbox = (*control)(nil)

// payinVerbs are what each verb may do to a pay-in, and how that shows.
var payinVerbs = map[string]struct {
	triggers []payment.Trigger
	shows    func(was, is payment.PayinStatus) bool
}{
	"pay":     {[]payment.Trigger{payment.OnPay, payment.OnPayMore}, nil},
	"expire":  {[]payment.Trigger{payment.OnExpire}, became(payment.PayinExpired)},
	"fail":    {[]payment.Trigger{payment.OnFail}, became(payment.PayinFailed)},
	"dispute": {[]payment.Trigger{payment.OnDispute}, became(payment.PayinDisputed)},
	"win": {[]payment.Trigger{payment.OnWin, payment.OnReverse},
		func(was, is payment.PayinStatus) bool { return is != was }},
	"lose": {[]payment.Trigger{payment.OnLose}, became(payment.PayinChargeback)},
}

func became(status payment.PayinStatus) func(was, is payment.PayinStatus) bool {
	return func(_, is payment.PayinStatus) bool { return is == status }
}

// PayinAction implements [httpapi.Sandbox].
func (c *control) PayinAction(ctx context.Context, id payment.ID, action string, amount money.Cents) error {
	s := c.app.store
	p, err := s.FindPayin(ctx, id)
	if err != nil {
		return orderError(err)
	}
	verb, ok := payinVerbs[action]
	if !ok {
		return problem.New(problem.NotFound, "There is no such action.")
	}
	if !anyLegal(payment.PayinTable, p.Status, verb.triggers) {
		return impossible(action, string(p.Status))
	}
	m, err := s.Merchant(ctx, p.Merchant)
	if err != nil {
		return err
	}
	before, err := s.Receipts(ctx, p.Merchant, p.ID)
	if err != nil {
		return err
	}
	if err := c.app.bank.control.Charge(ctx, chargeOf(&m, &p), action, sandbox.Payment{Amount: amount}); err != nil {
		return bankProblem(err, action, string(p.Status))
	}
	return c.await(ctx, func() (bool, error) {
		if verb.shows == nil {
			now, err := s.Receipts(ctx, p.Merchant, p.ID)
			return len(now) > len(before), err
		}
		now, err := s.Payin(ctx, p.Merchant, p.ID)
		return verb.shows(p.Status, now.Status), err
	})
}

// chargeOf is what the bank is told of a pay-in, so that it can register one
// that was minted without it.
func chargeOf(m *store.Merchant, p *payment.Payin) processor.ChargeRequest {
	return processor.ChargeRequest{
		ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt,
		DueDate: p.Details.DueDate, Installments: p.Details.Installments, MerchantName: m.Name, MerchantCity: m.City,
	}
}

// PayoutAction implements [httpapi.Sandbox].
func (c *control) PayoutAction(ctx context.Context, id payment.ID, action string) error {
	s := c.app.store
	p, err := s.FindPayout(ctx, id)
	if err != nil {
		return orderError(err)
	}
	want := map[string]payment.PayoutStatus{
		"complete": payment.PayoutCompleted, "fail": payment.PayoutFailed, "return": payment.PayoutReturned,
	}[action]
	on := map[string]payment.Trigger{"complete": payment.OnComplete, "fail": payment.OnFail, "return": payment.OnReturn}[action]
	if p.Status == payment.PayoutPending && on != payment.OnReturn {
		// It is handed to the bank within milliseconds.
		if err := c.await(ctx, func() (bool, error) {
			p, err = s.Payout(ctx, p.Merchant, p.ID)
			return p.Status != payment.PayoutPending, err
		}); err != nil {
			return err
		}
	}
	if _, legal := payment.PayoutTable.Next(p.Status, on); !legal {
		return impossible(action, string(p.Status))
	}
	if err := c.forceTransfer(ctx, &p, action); err != nil {
		return err
	}
	return c.await(ctx, func() (bool, error) {
		now, err := s.Payout(ctx, p.Merchant, p.ID)
		return now.Status == want, err
	})
}

// forceTransfer tells the bank to end a transfer, as soon as it has it: the
// intent to send is durable a moment before the bank is called.
func (c *control) forceTransfer(ctx context.Context, p *payment.Payout, action string) error {
	return c.await(ctx, func() (bool, error) {
		err := c.app.bank.control.Transfer(ctx, p.ExternalID, action, 0)
		if !errors.Is(err, sandbox.ErrNotFound) {
			return true, bankProblem(err, action, string(p.Status))
		}
		now, err := c.app.store.Payout(ctx, p.Merchant, p.ID)
		if err == nil && now.Step != payment.StepIntent {
			err = problem.New(problem.InvalidState, "The bank has no transfer of this payout, which is "+string(now.Status)+".")
		}
		return false, err
	})
}

// ArmFault implements [httpapi.Sandbox].
func (c *control) ArmFault(ctx context.Context, operation, kind string, count int) error {
	return bankProblem(c.app.bank.control.Arm(ctx, sandbox.Fault{
		Operation: sandbox.Operation(operation), Kind: sandbox.Kind(kind), Count: count,
	}), "", "")
}

// ClearFaults implements [httpapi.Sandbox].
func (c *control) ClearFaults(ctx context.Context) error {
	return bankProblem(c.app.bank.control.Disarm(ctx), "", "")
}

// AdvanceClock implements [httpapi.Sandbox].
func (c *control) AdvanceClock(ctx context.Context, d time.Duration) error {
	a := c.app
	offset, err := a.flow.AdvanceClock(ctx, d)
	if err != nil {
		return err
	}
	a.setClockOffset(offset)
	if a.bank.inside == nil {
		if err := a.bank.control.SetOffset(ctx, offset); err != nil {
			return bankProblem(err, "", "")
		}
	}
	now := a.clock.Now()
	return c.await(ctx, func() (bool, error) {
		due, err := a.store.PayinsDue(ctx, now, expiredAtOnce)
		return len(due) == 0, err
	})
}

// Transfers implements [httpapi.Sandbox].
func (c *control) Transfers(ctx context.Context, externalID string) ([]wire.SandboxTransfer, error) {
	var list []wire.SandboxTransfer
	for cursor := ""; ; {
		page, next, err := c.app.bank.control.Transfers(ctx, externalID, cursor)
		if err != nil {
			return nil, bankProblem(err, "", "")
		}
		for i := range page {
			list = append(list, wire.SandboxTransfer(page[i]))
		}
		if len(page) == 0 || next == cursor {
			return list, nil
		}
		cursor = next
	}
}

// await looks until done says so; its error ends the wait.
func (c *control) await(ctx context.Context, done func() (bool, error)) error {
	clock := c.app.clock
	deadline := clock.Monotonic() + effectTimeout
	for wait := lookMin; ; wait = min(2*wait, lookMax) {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		if clock.Monotonic() > deadline {
			return problem.New(problem.ProcessorTimeout, "The bank did it, but its news has not come through yet, as when a fault keeps its notices back.")
		}
		timer := clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func anyLegal(table payment.Table[payment.PayinStatus], from payment.PayinStatus, triggers []payment.Trigger) bool {
	for _, on := range triggers {
		if _, legal := table.Next(from, on); legal {
			return true
		}
	}
	return false
}

func impossible(action, status string) error {
	return problem.New(problem.InvalidState, "An order that is "+status+" cannot "+action+".")
}

func orderError(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "There is no such order.")
	}
	return err
}

// bankProblem makes an answer of the bank one for the caller.
func bankProblem(err error, action, status string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sandbox.ErrState), errors.Is(err, sandbox.ErrNotFound):
		return problem.New(problem.InvalidState, "The bank does not let an order that is "+status+" "+action+".").With(err)
	case errors.Is(err, sandbox.ErrInvalid):
		return problem.New(problem.ValidationFailed, "The bank does not take these values.").With(err)
	default:
		return problem.New(problem.Unavailable, "The sandbox's bank does not answer.").With(err)
	}
}
