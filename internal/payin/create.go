package payin

import (
	"cmp"
	"context"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Create creates the order of r, or finds the one that the same request created
// before (replayed). r has been validated. Errors: problem kinds
// reference_conflict, method_not_enabled, limit_exceeded, processor_refused,
// processor_timeout, unavailable and overloaded.
func (s *Service) Create(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, replayed bool, err error) {
	op, err := s.NewCreateOp(m, r)
	if err != nil { // an order that exists has its account already
		p, found, other := s.Replay(ctx, m, r.ReferenceID.V, r.Fingerprint)
		if other != nil || !found {
			return p, false, cmp.Or(other, err)
		}
		return s.carryOn(ctx, m, p, r, true)
	}
	if err := s.Writer.Do(ctx, op); err != nil {
		return p, false, err
	}
	if !op.Fresh {
		if err := r.Fingerprint.Conflict(op.fingerprint); err != nil {
			return p, false, err
		}
	}
	return s.carryOn(ctx, m, op.Payin, r, !op.Fresh)
}

// carryOn charges a stored order at the order's own account, which may not be the one that
// its merchant's routes name today.
func (s *Service) carryOn(ctx context.Context, m store.Merchant, p payment.Payin, r *wire.PayinRequest, replayed bool) (payment.Payin, bool, error) {
	if p.Ready() || p.Status != payment.PayinPending {
		return p, replayed, nil
	}
	p, err := s.chargeOnce(ctx, p, !replayed, chargeRequest(&m, &p, r.Personal))
	return p, replayed, err
}

// CreateOp is the operation that stores a new pay-in.
type CreateOp struct {
	in *store.NewPayin

	// Payin is the order as it is stored: the new one, or the one that has its
	// reference. Fresh is false for the latter.
	Payin       payment.Payin
	Fresh       bool
	fingerprint wire.Fingerprint
}

// NewCreateOp builds the operation that stores the order of r at the account that its
// merchant's routes name, with its charge if the processor generates charges offline.
func (s *Service) NewCreateOp(m store.Merchant, r *wire.PayinRequest) (*CreateOp, error) {
	externalID := s.Store.ExternalID(&m, payment.OperationPayin, r.ReferenceID.V)
	account, proc, err := s.route(&m, r, externalID)
	if err != nil {
		return nil, err
	}
	p := s.newPayin(&m, r, externalID, account)
	chargeOffline(proc, &m, &p, r.Personal)
	in, err := s.Store.NewPayin(p, r.Personal, r.Fingerprint)
	return &CreateOp{in: in, Payin: p}, err
}

// chargeOffline sets the charge of a new order, if the driver generates it and it is right;
// else the processor is called.
func chargeOffline(proc processor.Processor, m *store.Merchant, p *payment.Payin, personal payment.PersonalData) {
	offline, ok := proc.(processor.OfflineCharger)
	if !ok {
		return
	}
	request, profile := chargeRequest(m, p, personal), proc.Profile()
	charge, ok := offline.NewCharge(request)
	if ok && processor.CheckCharge(&profile, &request, &charge) == nil {
		setCharge(p, charge)
	}
}

// newPayin is the order as it will be stored.
func (s *Service) newPayin(m *store.Merchant, r *wire.PayinRequest, externalID, account string) payment.Payin {
	now := s.Env.Clock.Now().Truncate(time.Millisecond)
	return payment.Payin{
		Merchant: m.ID, ID: s.Env.IDs.NewID(now), ReferenceID: r.ReferenceID.V,
		ExternalID: externalID,
		Method:     payment.Method(r.Method.V), Amount: money.Cents(r.Amount.V),
		Status: payment.PayinPending, Version: 1, Processor: account, WebhookURL: r.WebhookURL.V,
		Details: payment.PayinDetails{
			Description: r.Description.V, Metadata: r.Metadata.V, ReturnURL: r.ReturnURL.V,
			DueDate: r.Due(now), Installments: int(r.Installments.V), IdempotencyKey: r.IdempotencyKey,
		},
		ExpiresAt: r.ExpiresAt(now), CreatedAt: now, UpdatedAt: now,
	}
}

// Merchant implements [write.Operation].
func (v *CreateOp) Merchant() payment.ID { return v.in.Payin.Merchant }

// Class implements [write.Operation].
func (v *CreateOp) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *CreateOp) Needs(n *store.Needs) { n.InsertPayin(v.in) }

// Decide picks the order that has the reference: this one, or an earlier one.
func (v *CreateOp) Decide(l *store.Loaded, _ *store.Changes) error {
	in := &v.in.Payin
	var ok bool
	if v.Payin, v.fingerprint, ok = l.PayinByExternalID(in.Merchant, in.ExternalID); !ok {
		return notFound(in.Merchant, in.ID)
	}
	v.Fresh = v.Payin.ID == in.ID
	return nil
}

// Replay finds the order of a reference if its request is repeated in a form that
// would be rejected today. Errors: problem kind reference_conflict.
func (s *Service) Replay(ctx context.Context, m store.Merchant, reference string, f wire.Fingerprint) (p payment.Payin, found bool, err error) {
	p, first, err := s.Store.PayinByExternalID(ctx, m.ID, s.Store.ExternalID(&m, payment.OperationPayin, reference))
	found, err = f.Replay(first, store.Problem(err))
	return p, found, err
}
