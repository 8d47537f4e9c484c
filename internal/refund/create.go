package refund

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Create holds the money of a refund and queues it for sending, or finds the refund of an earlier
// equal request (replayed). r has been validated. Errors: problem kinds not_found,
// reference_conflict, invalid_state, validation_failed, refund_not_possible, insufficient_balance,
// overloaded and unavailable.
func (s *Service) Create(ctx context.Context, m store.Merchant, payin payment.ID, r *wire.RefundRequest) (refund payment.Refund, replayed bool, err error) {
	op := s.NewCreateOp(m, payin, r)
	if err := s.Writer.Do(ctx, op); err != nil {
		return refund, false, err
	}
	if !op.Fresh {
		return op.Refund, true, op.conflict()
	}
	s.Requested()
	return op.Refund, false, nil
}

// Replay finds the refund of an earlier request. Errors: as of Create.
func (s *Service) Replay(ctx context.Context, m store.Merchant, payin payment.ID, r *wire.RefundRequest) (refund payment.Refund, found bool, err error) {
	op := s.NewCreateOp(m, payin, r)
	op.Refund, op.first, err = s.Store.RefundByExternalID(ctx, m.ID, externalID(s.Store, &m, r.ReferenceID.V, 1))
	if errors.Is(err, store.ErrNotFound) {
		return refund, false, nil
	}
	if err != nil {
		return refund, false, store.Problem(err)
	}
	return op.Refund, true, op.conflict()
}

// CreateOp is the operation that stores a new refund.
type CreateOp struct {
	request  *wire.RefundRequest
	merchant payment.ID
	payin    payment.ID
	id       payment.ID
	created  time.Time
	windows  Windows
	ids      func(part int) string
	// frozen is why new refunds are refused after a cold start, as far as this process knows; nil if
	// they are not. history is the history of its last heartbeat.
	frozen  *problem.Error
	history int64

	// Refund is the stored refund: the new one, or the one with its reference. Fresh is false for
	// the latter.
	Refund payment.Refund
	Fresh  bool
	first  wire.Fingerprint // of the request that created it
}

// NewCreateOp builds the operation that stores the refund of r.
func (s *Service) NewCreateOp(m store.Merchant, payin payment.ID, r *wire.RefundRequest) *CreateOp {
	now := s.Env.Clock.Now().Truncate(time.Millisecond)
	return &CreateOp{
		request: r, merchant: m.ID, payin: payin, id: s.Env.IDs.NewID(now), created: now, windows: s.Windows(),
		ids:    func(part int) string { return externalID(s.Store, &m, r.ReferenceID.V, part) },
		frozen: s.frozen(m.ID), history: s.History(),
	}
}

// conflict compares the request with the first one under its reference.
func (v *CreateOp) conflict() error {
	if v.Refund.Payin == v.payin {
		return v.request.Fingerprint.Conflict(v.first)
	}
	e := problem.New(problem.ReferenceConflict, "This referenceId was already used by a refund of another pay-in. Use a new one.")
	return e.WithFields(problem.FieldError{Field: "payinId", Code: problem.CodeNotAllowed, Detail: "differs from the original request"})
}

// Merchant implements [write.Operation].
func (v *CreateOp) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *CreateOp) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *CreateOp) Needs(n *store.Needs) {
	n.RefundsOf(v.merchant, v.payin)
	n.RefundByExternalID(v.merchant, v.ids(1))
	n.RefundByExternalID(v.merchant, v.ids(2))
	n.ReceivablesOf(v.merchant, v.payin)
	n.OpenCasesAbout(v.merchant, v.payin, store.CaseOverpaid)
	n.Balances(v.merchant)
}

// Decide picks the refund of the reference: an earlier refund, or the new one, whose money is then
// held.
func (v *CreateOp) Decide(l *store.Loaded, c *store.Changes) error {
	v.Refund, v.first, v.Fresh = payment.Refund{}, nil, false
	if r, first, ok := l.RefundByExternalID(v.merchant, v.ids(1)); ok {
		// An earlier run whose commit was unknown may have stored this refund.
		v.Refund, v.first, v.Fresh = r, first, r.ID == v.id
		if len(first) == 0 {
			v.adopt(c)
		}
		return nil
	}
	if r, ok := v.foundPart(l); ok {
		// A part of the refund was found that a restored backup lacks: the rest is not sent again.
		v.Refund = r
		return nil
	}
	if v.frozen != nil {
		return v.frozen
	}
	if l.HistoryOf(v.merchant).Number > v.history { // another process has found that it was restored
		return errBegun
	}
	p, ok := l.Payin(v.merchant, v.payin)
	if !ok {
		return fmt.Errorf("pay-in %s of %s: %w", v.payin, v.merchant, store.ErrNotFound)
	}
	if !p.Refundable() {
		return errNotRefundable(&p)
	}
	refunds, parts := l.RefundsOf(v.merchant, p.ID), l.RefundPartsOf(v.merchant, p.ID)
	amount, err := v.amount(payment.RefundLeft(&p, l.ReceiptsOf(v.merchant, p.ID), parts, 0))
	if err != nil {
		return err
	}
	if len(refunds) >= refundsMax {
		return notPossible(fmt.Sprintf("This pay-in has %d refunds already, the most that a pay-in can have.", len(refunds)))
	}
	list, err := v.split(l, &p, amount, parts)
	if err != nil {
		return err
	}
	return v.add(l, c, &p, amount, list)
}

// errNotRefundable is the problem of a pay-in that has no money to give back.
func errNotRefundable(p *payment.Payin) error {
	why := "nothing was paid of it"
	switch {
	case p.Status == payment.PayinRefunded:
		why = "all that was paid was given back"
	case p.PaidAmount > 0:
		why = "its payment is being processed: wait until it is PAID or FAILED"
	}
	return problem.New(problem.InvalidState, "This pay-in is "+string(p.Status)+" and has no money to give back: "+why+".")
}

// foundPart is the refund that the processor listed under the id of a later part of the new refund:
// a restored backup lacks that part.
func (v *CreateOp) foundPart(l *store.Loaded) (payment.Refund, bool) {
	if r, _, ok := l.RefundByExternalID(v.merchant, v.ids(2)); ok { // of any pay-in
		return r, true
	}
	refunds := l.RefundsOf(v.merchant, v.payin)
	for n := range l.ReceiptsOf(v.merchant, v.payin) { // it had no more parts than there are payments
		id := v.ids(n + 1)
		if i := slices.IndexFunc(refunds, func(r payment.Refund) bool { return r.ExternalID == id }); i >= 0 {
			return refunds[i], true
		}
	}
	return payment.Refund{}, false
}

// adopt gives the request a refund that the processor listed, if it gives back the same money.
func (v *CreateOp) adopt(c *store.Changes) {
	r := v.Refund
	if r.Payin != v.payin || r.Origin != payment.RefundByProcessor || v.request.Amount.Set && money.Cents(v.request.Amount.V) != r.Amount {
		return
	}
	r.Origin, r.ReferenceID, r.Reason = payment.RefundByMerchant, v.request.ReferenceID.V, v.request.Reason.V
	v.first = v.request.Fingerprint
	v.Refund = c.AdoptRefund(r, v.first)
}

// amount is the amount to refund, at most the rest of the pay-in.
func (v *CreateOp) amount(left money.Cents) (money.Cents, error) {
	amount := left
	if v.request.Amount.Set {
		amount = money.Cents(v.request.Amount.V)
	}
	if amount > 0 && amount <= left {
		return amount, nil
	}
	detail := fmt.Sprintf("must be at most %s, what is left of the paid amount", left)
	if left == 0 {
		detail = "nothing is left of the paid amount: it was given back, is being given back, or is disputed"
	}
	return 0, problem.New(problem.ValidationFailed, "The amount exceeds what is left to refund.").
		WithFields(problem.FieldError{Field: "amount", Code: problem.CodeOutOfRange, Detail: detail})
}

func notPossible(why string) error { return problem.New(problem.RefundNotPossible, why) }

// split divides the amount among the payments that can be given back.
func (v *CreateOp) split(l *store.Loaded, p *payment.Payin, amount money.Cents, parts []payment.RefundPart) ([]payment.RefundSlice, error) {
	sources, why := v.windows.possible(p, l.ReceiptsOf(p.Merchant, p.ID), parts, l.Now())
	_, unapplied := outgoing.Unapplied(l, p.Merchant, p.ID, payment.ID{}) // that names no payment
	for i := range sources {
		_, of := outgoing.Unapplied(l, p.Merchant, p.ID, sources[i].Receipt.ID)
		sources[i].Surplus = max(sources[i].Surplus-(of-unapplied), 0)
	}
	list, ok := payment.SplitRefund(amount, sources, unapplied)
	switch {
	case ok:
		return list, nil
	case why == notOpen:
		return nil, v.errNotOpen(l, p)
	case why == noMethod:
		return nil, notPossible("The processor cannot give a " + string(p.Method) + " payment back.")
	case why == tooLate:
		return nil, notPossible("The processor gives a " + string(p.Method) + " payment back only within " + v.days(l, p) + " days after it was paid.")
	default:
		return nil, notPossible("The payments of this pay-in do not cover the amount: a part of it was paid by other means, as an operator decided.")
	}
}

// errNotOpen is the problem of the first account of the pay-in's payments that is not open.
func (v *CreateOp) errNotOpen(l *store.Loaded, p *payment.Payin) error {
	account := p.Processor
	for _, r := range l.ReceiptsOf(p.Merchant, p.ID) {
		if v.windows[r.Processor] == nil {
			account = r.Processor
			break
		}
	}
	return processor.NotOpen(account, nil)
}

// days is the window of the pay-in's method, in days.
func (v *CreateOp) days(l *store.Loaded, p *payment.Payin) string {
	var window time.Duration
	for _, r := range l.ReceiptsOf(p.Merchant, p.ID) {
		window = max(window, v.windows[r.Processor][p.Method])
	}
	return strconv.Itoa(int(window / (24 * time.Hour)))
}

// add stores the refund, and holds its money: first unsettled money of the pay-in, then available
// money, then the fee that comes back with it.
func (v *CreateOp) add(l *store.Loaded, c *store.Changes, p *payment.Payin, amount money.Cents, list []payment.RefundSlice) error {
	available, feeBack := l.Balances(v.merchant)[ledger.Available], receivable.FeeBack(p, l.RefundPartsOf(v.merchant, p.ID), amount)
	if available+receivable.Pending(l, p)+feeBack < amount {
		return problem.New(problem.InsufficientBalance,
			"The available balance, with what has not settled of this pay-in and the fee that comes back, does not cover this refund. The referenceId remains unused.")
	}
	r := payment.Refund{
		Merchant: v.merchant, ID: v.id, Payin: p.ID, ExternalID: v.ids(1), ReferenceID: v.request.ReferenceID.V, Origin: payment.RefundByMerchant,
		Amount: amount, Status: payment.RefundPending, Version: 1, Reason: v.request.Reason.V,
		WebhookURL: p.WebhookURL, WebhookDisabled: p.WebhookDisabled, CreatedAt: v.created, UpdatedAt: v.created,
	}
	parts := newParts(&r, list, v.ids, l.Now())
	var of ledger.Parts
	for i := range parts {
		parts[i].Took = receivable.Take(l, c, p, parts[i].Amount)
		of.Pending += parts[i].Took.Sum()
	}
	if err := c.Post(r.Merchant, r.ID, ledger.HoldRefund(of, available, feeBack, amount)); err != nil {
		return err
	}
	c.AddRefund(r, v.request.Fingerprint, parts...)
	v.Refund, v.Fresh, v.first = r, true, v.request.Fingerprint
	return nil
}
