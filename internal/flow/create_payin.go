package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// chargeRetryWait is the pause before a charge that had no effect, or none
// that can be proved, is asked for again under the same id.
const chargeRetryWait = 100 * time.Millisecond

// createPayin is a pay-in on its way into the store.
type createPayin struct {
	merchant store.Merchant
	in       store.NewPayin
	out      payment.Payin // as stored: the new one, or the one that was there
	other    wire.Fingerprint
	fresh    bool
}

var createPayinVerb = &verb{name: "create_payin", still: true, run: createPayins}

// CreatePayin creates the order that r asks for, or finds the one that the same
// request created before (replayed). r has been checked. Errors: problem kinds
// reference_conflict, processor_refused, processor_timeout, unavailable and
// overloaded.
func (f *Flow) CreatePayin(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, replayed bool, err error) {
	c, proc, err := f.prepareCreate(m, r)
	if err != nil {
		return p, false, err
	}
	if err := f.submit(ctx, createPayinVerb, m.ID, c); err != nil {
		return p, false, err
	}
	if !c.fresh {
		if err := sameRequest(r.Fingerprint, c.other); err != nil {
			return p, false, err
		}
	}
	if c.out.Ready() || c.out.Status != payment.PayinPending {
		return c.out, !c.fresh, nil
	}
	p, err = f.charge(ctx, m, c.out, c.in.Personal, proc.(processor.Charger), proc.Profile()) // prepareCreate has seen that it is one
	return p, !c.fresh, err
}

// prepareCreate makes the order that r asks for, with its charge where that
// needs no call, as far as it can be done before the transaction.
func (f *Flow) prepareCreate(m store.Merchant, r *wire.PayinRequest) (*createPayin, processor.Processor, error) {
	proc, err := f.processorOf(m.Processor)
	if err != nil {
		return nil, nil, err
	}
	if _, ok := proc.(processor.Charger); !ok {
		return nil, nil, problem.New(problem.MethodNotEnabled, "The merchant's processor does not support pay-ins.")
	}
	c := &createPayin{merchant: m, in: f.newPayin(&m, r)}
	if minter, ok := proc.(processor.Minter); ok {
		if charge, ok := minter.Mint(chargeRequest(&m, &c.in.Payin, c.in.Personal)); ok {
			setCharge(&c.in.Payin, charge)
		}
	}
	return c, proc, f.store.PreparePayin(&c.in)
}

// newPayin is the order as it will be stored.
func (f *Flow) newPayin(m *store.Merchant, r *wire.PayinRequest) store.NewPayin {
	now := f.env.Clock.Now().Truncate(time.Millisecond)
	p := payment.Payin{
		Merchant: m.ID, ID: f.env.IDs.NewID(now), ReferenceID: r.ReferenceID.V,
		ExternalID: f.externalID(m, payment.OperationPayin, r.ReferenceID.V),
		Method:     payment.Method(r.Method.V), Amount: money.Cents(r.Amount.V),
		Status: payment.PayinPending, Version: 1, Processor: m.Processor, WebhookURL: r.WebhookURL.V,
		Details: payment.PayinDetails{
			Description: r.Description.V, Metadata: r.Metadata.V, ReturnURL: r.ReturnURL.V,
			DueDate: r.Due(now), Installments: int(r.Installments.V), IdempotencyKey: r.IdempotencyKey,
		},
		ExpiresAt: r.ExpiresAt(now), CreatedAt: now, UpdatedAt: now,
	}
	return store.NewPayin{Payin: p, Personal: r.Personal, Fingerprint: r.Fingerprint}
}

func chargeRequest(m *store.Merchant, p *payment.Payin, personal payment.PersonalData) processor.ChargeRequest {
	return processor.ChargeRequest{
		ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt,
		DueDate: p.Details.DueDate, Installments: p.Details.Installments, Description: p.Details.Description,
		MerchantName: m.Name, MerchantCity: m.City, Personal: personal,
	}
}

// setCharge keeps what the payer needs to pay.
func setCharge(p *payment.Payin, c processor.Charge) {
	p.ProcessorID = c.ProcessorID
	p.Details.PIX, p.Details.Boleto, p.Details.Card = c.PIX, c.Boleto, c.Card
}

// sameRequest compares a request with the first one under its reference.
func sameRequest(now, first wire.Fingerprint) error {
	differing := now.Differing(first)
	if len(differing) == 0 {
		return nil
	}
	e := problem.New(problem.ReferenceConflict, "This referenceId was already used by a different request. Use a new one, or send the original request again.")
	for _, name := range differing {
		e.Fields = append(e.Fields, problem.FieldError{Field: name, Code: problem.CodeNotAllowed, Detail: "differs from the original request"})
	}
	return e
}

// createPayins stores pay-ins of one merchant. Those whose reference is taken
// get the order that has it; after a COMMIT whose outcome was unknown, that is
// the very one.
func createPayins(ctx context.Context, tx *store.Tx, tasks []*task) error {
	list := make([]*store.NewPayin, len(tasks))
	for i, t := range tasks {
		list[i] = &t.arg.(*createPayin).in
	}
	added, err := tx.InsertPayins(ctx, list)
	if err != nil {
		return err
	}
	for i, t := range tasks {
		c := t.arg.(*createPayin)
		c.out, c.other, c.fresh = c.in.Payin, c.in.Fingerprint, added[i]
		if added[i] {
			continue
		}
		if c.out, c.other, err = tx.PayinByExternalID(ctx, c.in.Merchant, c.in.ExternalID); err != nil {
			return fmt.Errorf("pay-in with a used reference: %w", err)
		}
		c.fresh = c.out.ID == c.in.ID
	}
	return nil
}

// ReplayPayin looks for the order of a reference whose request is repeated in a
// form that would be refused today. Errors: problem kind reference_conflict.
func (f *Flow) ReplayPayin(ctx context.Context, m store.Merchant, reference string, fp wire.Fingerprint) (p payment.Payin, found bool, err error) {
	p, first, err := f.store.PayinByExternalID(ctx, m.ID, f.externalID(&m, payment.OperationPayin, reference))
	if errors.Is(err, store.ErrNotFound) {
		return p, false, nil
	}
	if err != nil {
		return p, false, public(err)
	}
	return p, true, sameRequest(fp, first)
}

// charge registers a stored order at its processor, within the processor's
// time. Charges are idempotent by our id, so what had no effect, or may have
// had one, is asked for again until the time is over. The order stays in any
// case; the same request again takes it up where it stands.
func (f *Flow) charge(ctx context.Context, m store.Merchant, p payment.Payin, personal payment.PersonalData, charger processor.Charger, profile processor.Profile) (payment.Payin, error) {
	limited, cancel := f.env.Clock.WithTimeout(context.WithoutCancel(ctx), profile.ChargeTimeout)
	defer cancel()
	request := chargeRequest(&m, &p, personal)
	for {
		answer := charger.Charge(limited, request)
		switch answer.Outcome {
		case processor.Done:
			return f.chargeDone(ctx, p, answer.Charge)
		case processor.Refused:
			return f.chargeRefused(ctx, p, answer.Failure)
		}
		f.log.Warn("charge not confirmed", "processor", profile.Name, "externalId", p.ExternalID, "outcome", answer.Outcome.String(), "cause", answer.Cause)
		timer := f.env.Clock.NewTimer(chargeRetryWait)
		select {
		case <-timer.C():
		case <-limited.Done():
			timer.Stop()
		}
		if limited.Err() != nil { // looked at on its own: of two ready cases select takes any
			return p, problem.New(problem.ProcessorTimeout, "The processor did not answer in time. The order exists; send the same request again to continue.").With(answer.Cause)
		}
	}
}

func (f *Flow) chargeDone(ctx context.Context, p payment.Payin, c processor.Charge) (payment.Payin, error) {
	merchant, id := p.Merchant, p.ID // the work may run again, and p is then what it left
	err := f.write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		var err error
		if p, err = tx.Payin(ctx, merchant, id); err != nil || p.Ready() {
			return err
		}
		setCharge(&p, c)
		p.Version++
		return tx.UpdatePayin(ctx, &p, p.Version-1)
	})
	return p, err
}

func (f *Flow) chargeRefused(ctx context.Context, p payment.Payin, why *payment.Failure) (payment.Payin, error) {
	merchant, id := p.Merchant, p.ID
	err := f.write(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		var err error
		if p, err = tx.Payin(ctx, merchant, id); err != nil {
			return err
		}
		p.Failure = why
		_, err = f.movePayin(ctx, tx, &p, payment.OnFail)
		return err
	})
	if err != nil {
		return p, err
	}
	if p.Ready() {
		return p, nil // a request side by side was answered otherwise, and first
	}
	return p, problem.New(problem.ProcessorRefused, "The processor refused the order: "+failureMessage(why))
}

func failureMessage(f *payment.Failure) string {
	if f == nil || f.Message == "" {
		return "it gave no reason."
	}
	return f.Message
}
