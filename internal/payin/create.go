package payin

import (
	"cmp"
	"context"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
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
		p, found, other := s.Replay(ctx, m, r)
		if other != nil || !found {
			return p, false, cmp.Or(other, err)
		}
		return s.chargeStored(ctx, m, p, r, true)
	}
	if !op.Payin.Ready() {
		return s.createCharged(ctx, m, op, r)
	}
	if err := s.Writer.Do(ctx, op); err != nil {
		return p, false, err
	}
	return s.created(ctx, m, op, r)
}

// createCharged creates an order whose charge the processor generates. The commit claims the work
// on it, and this request makes the call. Repeated requests wait: they may find the order as soon
// as it is stored.
func (s *Service) createCharged(ctx context.Context, m store.Merchant, op *CreateOp, r *wire.PayinRequest) (p payment.Payin, replayed bool, err error) {
	id := op.Payin.ID
	c, _ := s.begin(id)
	defer s.end(id, c)
	c.payin, c.err = op.Payin, chargeTimeout(errChargeEnded)
	op.node = s.Node.ID()
	if err := s.Writer.DoWithoutCancel(ctx, op); err != nil {
		return p, false, err
	}
	if !op.Fresh {
		return s.created(ctx, m, op, r)
	}
	c.payin, c.err = s.register(ctx, &m, op.Payin, op.charge, r.Personal)
	return c.payin, false, c.err
}

// created is the answer to a request whose order is stored, by this request or an earlier one.
func (s *Service) created(ctx context.Context, m store.Merchant, op *CreateOp, r *wire.PayinRequest) (p payment.Payin, replayed bool, err error) {
	if !op.Fresh {
		if err := r.Fingerprint.Conflict(op.fingerprint); err != nil {
			return p, false, err
		}
	}
	return s.chargeStored(ctx, m, op.Payin, r, !op.Fresh)
}

// chargeStored charges a stored order at the order's own account. The merchant's routes may name another
// one by now.
func (s *Service) chargeStored(ctx context.Context, m store.Merchant, p payment.Payin, r *wire.PayinRequest, replayed bool) (payment.Payin, bool, error) {
	if p.Ready() || p.Status != payment.PayinPending {
		return p, replayed, nil
	}
	p, err := s.chargeOnce(p, func() (payment.Payin, error) {
		return s.register(ctx, &m, p, store.Charge{}, r.Personal)
	})
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

	announced []byte // the data of its event payin.created; nil if no endpoint asks for it

	node   payment.ID   // that claims the work on the charge; zero if the worker is to do it
	charge store.Charge // as it was claimed, MayExist as before; zero if it was not
}

// budgetWait is after how long an order that budgetIsReserved refuses may be sent again.
const budgetWait = time.Minute

// budgetIsReserved reports whether an order is refused because the rest of the account's budget of
// requests is reserved for others: anyone can send orders without credentials, and each takes
// requests.
func budgetIsReserved(proc processor.Processor, origin string) bool {
	b, ok := proc.(processor.Budgeted)
	return ok && origin == payment.OriginPublic && b.BudgetLow()
}

// NewCreateOp builds the operation that stores the order of r at the account that its
// merchant's routes name, with its charge if the processor generates charges offline.
func (s *Service) NewCreateOp(m store.Merchant, r *wire.PayinRequest) (*CreateOp, error) {
	if m.Damaged != nil { // its prices or routes may be another's
		return nil, store.Problem(m.Damaged)
	}
	if exceeded := m.Limits.Payin[payment.Method(r.Method.V)].Exceeded(money.Cents(r.Amount.V)); exceeded != "" {
		return nil, problem.New(problem.LimitExceeded, "The amount is outside the merchant's limits for this method. The referenceId remains unused.").WithLimit(exceeded)
	}
	externalID := s.Store.ExternalID(&m, r.Operation(), r.ReferenceID.V)
	account, proc, err := s.route(&m, r, externalID)
	if err != nil {
		return nil, err
	}
	if budgetIsReserved(proc, r.Origin()) {
		return nil, problem.New(problem.RateLimited, "Too many orders without credentials.").
			WithQuota(problem.Quota{Name: "processor-budget", Window: budgetWait}, budgetWait)
	}
	op := &CreateOp{Payin: s.newPayin(&m, r, externalID, account)}
	p := &op.Payin
	chargeOffline(proc, &m, p, r.Personal)
	op.in = s.Store.NewPayin(*p, r.Personal, r.Fingerprint)
	if s.Wanted != nil && s.Wanted(m.ID, payment.EventPayinCreated) {
		op.announced, err = wire.Payin(p, s.Links(p), payment.PersonalData{})
	}
	return op, err
}

// chargeOffline sets the charge of a new order, if the driver generates it; else the processor is
// called. The driver made it from the order, in this process: it is not decoded and compared, as a
// processor's answer is. processortest does that for each driver.
func chargeOffline(proc processor.Processor, m *store.Merchant, p *payment.Payin, personal payment.PersonalData) {
	offline, ok := proc.(processor.OfflineCharger)
	if !ok {
		return
	}
	if charge, ok := offline.NewCharge(chargeRequest(m, p, personal)); ok {
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
			Origin: r.Origin(), Description: r.Description.V, Metadata: r.Metadata.V, ReturnURL: r.ReturnURL.V,
			DueDate: r.Due(now), Installments: int(r.Installments.V), IdempotencyKey: r.IdempotencyKey,
			Prices: payment.PricesOf(m.Prices, payment.Method(r.Method.V)),
		},
		ExpiresAt: r.ExpiresAt(now), CreatedAt: now, UpdatedAt: now,
	}
}

// Merchant implements [write.Operation].
func (v *CreateOp) Merchant() payment.ID { return v.in.Payin.Merchant }

// Class implements [write.Operation].
func (v *CreateOp) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *CreateOp) Needs(n *store.Needs) {
	n.InsertPayin(v.in)
	if !v.node.IsZero() {
		n.ClaimingNode(v.node)
	}
}

// Decide picks the order that has the reference: this one, or an earlier one. The intent to
// charge a new order is stored with it, unless its charge was generated offline. Its event
// goes to endpoints only: its creator has the answer.
func (v *CreateOp) Decide(l *store.Loaded, c *store.Changes) error {
	in := &v.in.Payin
	var ok bool
	if v.Payin, v.fingerprint, ok = l.PayinByExternalID(in.Merchant, in.ExternalID); !ok {
		return notFound(in.Merchant, in.ID)
	}
	v.Fresh = v.Payin.ID == in.ID
	if l.Inserted(in.ID) && v.announced != nil {
		c.AddEvent(payment.Event{Merchant: in.Merchant, Type: payment.EventPayinCreated, Subject: in.ID, Version: in.Version}, v.announced, "")
	}
	if l.Inserted(in.ID) && !in.Ready() {
		v.charge = newWork(in, v.node, l)
		c.AddCharge(v.charge)
		v.charge.MayExist = false
	}
	return nil
}

// Replay finds the order of r's reference if the repeated request has a form that would be rejected
// today. Errors: problem kind reference_conflict.
func (s *Service) Replay(ctx context.Context, m store.Merchant, r *wire.PayinRequest) (p payment.Payin, found bool, err error) {
	p, first, err := s.Store.PayinByExternalID(ctx, m.ID, s.Store.ExternalID(&m, r.Operation(), r.ReferenceID.V))
	found, err = r.Fingerprint.Replay(first, store.Problem(err))
	return p, found, err
}
