package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// requestPayout is a payout on its way into the store.
type requestPayout struct {
	in    store.NewPayout
	out   payment.Payout
	other wire.Fingerprint
	fresh bool
}

var requestPayoutVerb = &verb{name: "request_payout", still: true, run: requestPayouts}

// RequestPayout sets the money of a payout aside and queues it for sending, or
// finds the one that the same request created before (replayed). r has been
// checked. Errors: problem kinds reference_conflict, insufficient_balance,
// unavailable and overloaded.
func (f *Flow) RequestPayout(ctx context.Context, m store.Merchant, r *wire.PayoutRequest) (p payment.Payout, replayed bool, err error) {
	c, err := f.prepareRequest(m, r)
	if err != nil {
		return p, false, err
	}
	if err := f.submit(ctx, requestPayoutVerb, m.ID, c); err != nil {
		return p, false, err
	}
	if !c.fresh {
		return c.out, true, sameRequest(r.Fingerprint, c.other)
	}
	f.wake(WakeSubmit)
	return c.out, false, nil
}

// prepareRequest makes the payout that r asks for, as far as it can be done
// before the transaction.
func (f *Flow) prepareRequest(m store.Merchant, r *wire.PayoutRequest) (*requestPayout, error) {
	proc, err := f.processorOf(m.Processor)
	if err != nil {
		return nil, err
	}
	if _, ok := proc.(processor.Transferrer); !ok {
		return nil, problem.New(problem.MethodNotEnabled, "The merchant's processor does not support payouts.")
	}
	c := &requestPayout{in: f.newPayout(&m, r)}
	return c, f.store.PreparePayout(&c.in)
}

func (f *Flow) newPayout(m *store.Merchant, r *wire.PayoutRequest) store.NewPayout {
	now := f.env.Clock.Now().Truncate(time.Millisecond)
	p := payment.Payout{
		Merchant: m.ID, ID: f.env.IDs.NewID(now), ReferenceID: r.ReferenceID.V,
		ExternalID: f.externalID(m, payment.OperationPayout, r.ReferenceID.V),
		Amount:     money.Cents(r.Amount.V), Status: payment.PayoutPending, Step: payment.StepQueued, Version: 1,
		Processor: m.Processor, PIXKeyType: r.PIXKeyType.V, WebhookURL: r.WebhookURL.V, Approval: payment.ApprovalNone,
		Beneficiary: payment.Beneficiary{Name: r.BeneficiaryName.V, Document: r.BeneficiaryDocument.V, PIXKey: r.PIXKey.V},
		NextAt:      now, CreatedAt: now, UpdatedAt: now,
	}
	if r.NormalKey != r.PIXKey.V {
		p.Beneficiary.NormalKey = r.NormalKey
	}
	return store.NewPayout{Payout: p, Fingerprint: r.Fingerprint, IdempotencyKey: r.IdempotencyKey}
}

// requestPayouts decides payouts of one merchant in the order in which they
// came, against the balance that it has locked.
func requestPayouts(ctx context.Context, tx *store.Tx, tasks []*task) error {
	balances, err := tx.Balances(ctx, tasks[0].merchant)
	if err != nil {
		return err
	}
	var total money.Cents
	for _, t := range tasks {
		c := t.arg.(*requestPayout)
		if total, err = total.Add(c.in.Amount + c.in.Fee); err != nil {
			break // beyond any balance
		}
	}
	if err == nil && total <= balances[ledger.Available] {
		return holdPayouts(ctx, tx, tasks) // all can be afforded, whichever are new
	}
	for _, t := range tasks {
		c := t.arg.(*requestPayout)
		c.out, c.other, err = tx.PayoutByExternalID(ctx, c.in.Merchant, c.in.ExternalID)
		switch {
		case err == nil:
			c.fresh = c.out.ID == c.in.ID
		case !errors.Is(err, store.ErrNotFound):
			return err
		case balances[ledger.Available] < c.in.Amount+c.in.Fee:
			t.err = problem.New(problem.InsufficientBalance, "The available balance does not cover this payout. The referenceId remains unused.")
		default:
			if err := holdPayouts(ctx, tx, []*task{t}); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdPayouts stores payouts that the balance covers, and sets the money of
// the new ones aside.
func holdPayouts(ctx context.Context, tx *store.Tx, tasks []*task) error {
	list := make([]*store.NewPayout, len(tasks))
	for i, t := range tasks {
		list[i] = &t.arg.(*requestPayout).in
	}
	added, err := tx.InsertPayouts(ctx, list)
	if err != nil {
		return err
	}
	for i, t := range tasks {
		c := t.arg.(*requestPayout)
		c.out, c.other, c.fresh = c.in.Payout, c.in.Fingerprint, added[i]
		if added[i] {
			if err := tx.Post(ctx, c.in.Merchant, c.in.ID, ledger.HoldPayout(c.in.Amount, c.in.Fee)); err != nil {
				return err
			}
			continue
		}
		if c.out, c.other, err = tx.PayoutByExternalID(ctx, c.in.Merchant, c.in.ExternalID); err != nil {
			return fmt.Errorf("payout with a used reference: %w", err)
		}
		c.fresh = c.out.ID == c.in.ID
	}
	return nil
}

// ReplayPayout is ReplayPayin for payouts.
func (f *Flow) ReplayPayout(ctx context.Context, m store.Merchant, reference string, fp wire.Fingerprint) (p payment.Payout, found bool, err error) {
	p, first, err := f.store.PayoutByExternalID(ctx, m.ID, f.externalID(&m, payment.OperationPayout, reference))
	if errors.Is(err, store.ErrNotFound) {
		return p, false, nil
	}
	if err != nil {
		return p, false, public(err)
	}
	return p, true, sameRequest(fp, first)
}
