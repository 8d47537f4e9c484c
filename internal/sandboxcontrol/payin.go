package sandboxcontrol

import (
	"cmp"
	"context"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// payinAction is an action on a pay-in.
type payinAction struct {
	triggers []payment.Trigger // one of which must be legal
	shows    func(was, is *payment.Payin) bool
}

// payinActions are the actions except pay, which shows as another receipt.
var payinActions = map[string]payinAction{
	"pay":     {[]payment.Trigger{payment.OnPay, payment.OnPayMore}, nil},
	"expire":  {[]payment.Trigger{payment.OnExpire}, became(payment.PayinExpired)},
	"fail":    {[]payment.Trigger{payment.OnFail}, became(payment.PayinFailed)},
	"dispute": {[]payment.Trigger{payment.OnDispute, payment.OnDisputeMore}, changed},
	"block":   {[]payment.Trigger{payment.OnDispute, payment.OnDisputeMore}, changed},
	"win":     {[]payment.Trigger{payment.OnWin, payment.OnWinPart, payment.OnReverse}, changed},
	"lose":    {[]payment.Trigger{payment.OnLose, payment.OnLosePart}, changed},
	"reverse": {[]payment.Trigger{payment.OnReverse, payment.OnReversePart}, changed},
}

// bankActions are the bank's names of actions that have others there.
var bankActions = map[string]string{"block": "dispute", "reverse": "win"}

func became(status payment.PayinStatus) func(was, is *payment.Payin) bool {
	return func(_, is *payment.Payin) bool { return is.Status == status }
}

// changed is the effect on an order that may have several disputes: its status may stay.
func changed(was, is *payment.Payin) bool { return is.Version > was.Version }

// PayinAction implements [httpapi.Sandbox].
func (c *Control) PayinAction(ctx context.Context, id payment.ID, name string, how wire.SandboxPayin) error {
	p, err := c.Store.FindPayin(ctx, id)
	if err != nil {
		return storeProblem(err)
	}
	action, ok := payinActions[name]
	if !ok {
		return problem.New(problem.NotFound, "Unknown action.")
	}
	legal := func(on payment.Trigger) bool { _, ok := payment.PayinTable.Next(p.Status, on); return ok }
	if !slices.ContainsFunc(action.triggers, legal) {
		return impossible(name, string(p.Status))
	}
	before, err := c.Store.Receipts(ctx, p.Merchant, p.ID)
	if err != nil {
		return err
	}
	disputes, err := c.Store.Disputes(ctx, p.Merchant, store.DisputeFilter{Payin: p.ID, Limit: disputesMax})
	if err != nil {
		return err
	}
	err = c.forceCharge(ctx, &p, cmp.Or(bankActions[name], name), bankapi.ForceCharge{
		Amount: how.Amount, Kind: string(how.Kind), Reason: how.Reason, RespondInSeconds: how.RespondInSeconds, Blocked: name == "block",
	})
	if err != nil {
		return err
	}
	return c.await(ctx, func() (bool, error) {
		if action.shows == nil {
			now, err := c.Store.Receipts(ctx, p.Merchant, p.ID)
			return len(now) > len(before), err
		}
		now, err := c.Store.Payin(ctx, p.Merchant, p.ID)
		if err != nil || action.shows(&p, &now) {
			return err == nil, err
		}
		of, err := c.Store.Disputes(ctx, p.Merchant, store.DisputeFilter{Payin: p.ID, Limit: disputesMax})
		return disputeVersions(of) > disputeVersions(disputes), err // a dispute may leave its order as it is
	})
}

// disputesMax is how many disputes of an order are read.
const disputesMax = 200

// disputeVersions is a number that grows with each change of disputes.
func disputeVersions(list []store.DefendedDispute) (sum int64) {
	for i := range list {
		sum += list[i].Version
	}
	return sum
}

// Act implements [checkout.Sandbox]: pay, expire or refuse. A refused card
// leaves the order open for another attempt; another order fails.
func (c *Control) Act(ctx context.Context, id payment.ID, name string) error {
	if name != "refuse" {
		return c.PayinAction(ctx, id, name, wire.SandboxPayin{})
	}
	p, err := c.Store.FindPayin(ctx, id)
	if err != nil {
		return storeProblem(err)
	}
	if p.Method != payment.CreditCard {
		return c.PayinAction(ctx, id, "fail", wire.SandboxPayin{})
	}
	if p.Status != payment.PayinPending {
		return impossible(name, string(p.Status))
	}
	if err := c.forceCharge(ctx, &p, "fail", bankapi.ForceCharge{Attempt: true}); err != nil {
		return err
	}
	if err := c.applyCharge(ctx, &p); err != nil {
		return err
	}
	return c.await(ctx, func() (bool, error) {
		now, err := c.Store.Payin(ctx, p.Merchant, p.ID)
		return now.Version > p.Version, err
	})
}

// forceCharge forces an outcome at the bank. The request lets the bank register
// a charge that was generated offline.
func (c *Control) forceCharge(ctx context.Context, p *payment.Payin, action string, how bankapi.ForceCharge) error {
	m, err := c.Store.Merchant(ctx, p.Merchant)
	if err != nil {
		return err
	}
	return bankProblem(c.bankOf(p.Processor).Charge(ctx, chargeRequest(&m, p), action, how))
}

func chargeRequest(m *store.Merchant, p *payment.Payin) processor.ChargeRequest {
	return processor.ChargeRequest{
		ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt,
		DueDate: p.Details.DueDate, Installments: p.Details.Installments, MerchantName: m.Name, MerchantCity: m.City,
	}
}

// applyCharge queries the bank and books its report before the notice arrives.
func (c *Control) applyCharge(ctx context.Context, p *payment.Payin) error {
	charger, ok := c.Processors.Find(p.Processor).(processor.Charger)
	if !ok {
		return problem.New(problem.Unavailable, "The order's processor is not configured.")
	}
	report := charger.QueryCharge(ctx, p.ExternalID)
	if report.Lookup != processor.Found {
		return nil
	}
	return c.Payins.Receive(ctx, p.Processor, p.ExternalID, report, nil)
}
