package refund

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
)

// Find stores a refund that a processor lists and nobody requested here: a refund from the
// processor's own panel, or from a past that a restored backup lacks. The money is set aside even
// before the refund is paid. The part waits for the processor's report, which the caller records
// next. ok is false if there is nothing to record. Errors: store.ErrNotFound if the payment is not
// booked.
func (s *Service) Find(ctx context.Context, account string, listed *processor.ListedRefund) (part payment.RefundPart, ok bool, err error) {
	merchant, receipt, err := s.Store.ReceiptClaim(ctx, account, listed.PaymentID)
	if err != nil {
		return part, false, err
	}
	part, err = s.Store.RefundPart(ctx, merchant, account, listed.ExternalID)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return part, err == nil, err
	}
	r, err := s.Store.Receipt(ctx, merchant, receipt)
	if err != nil {
		return part, false, err
	}
	if r.Payin.IsZero() {
		return part, false, s.Writer.Do(ctx, newReturnUnidentified(account, listed, &r))
	}
	if listed.State == processor.TransferFailed {
		return part, false, nil // it moved no money
	}
	op := &find{listed: listed, receipt: r, id: s.Env.IDs.NewID(s.Env.Clock.Now())}
	if op.externalID, err = s.foundID(ctx, merchant, account, listed.ExternalID); err != nil {
		return part, false, err
	}
	err = s.Writer.Do(ctx, op)
	return op.part, op.found, err
}

// foundID is the external id of a found refund: the listed id if we derived it for the merchant,
// else an id of its own.
func (s *Service) foundID(ctx context.Context, merchant payment.ID, account, listed string) (string, error) {
	owner, err := s.Store.MerchantOf(ctx, listed)
	if err != nil {
		return "", store.Problem(err)
	}
	if owner == merchant && len(listed) == payment.ExternalIDLength {
		return listed, nil
	}
	m, err := s.Store.Merchant(ctx, merchant)
	if err != nil {
		return "", store.Problem(err)
	}
	return s.Store.ExternalID(&m, payment.OperationRefund, "\x00"+account+"\x00"+listed), nil
}

// short returns a foreign id in a form that every case can have.
func short(id string) string {
	if len(id) <= payment.ExternalIDLength*2 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// find is the operation that stores a found refund.
type find struct {
	listed     *processor.ListedRefund
	receipt    payment.Receipt
	id         payment.ID
	externalID string

	part  payment.RefundPart
	found bool
}

// Merchant implements [write.Operation].
func (v *find) Merchant() payment.ID { return v.receipt.Merchant }

// Class implements [write.Operation].
func (v *find) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *find) Needs(n *store.Needs) {
	n.RefundsOf(v.receipt.Merchant, v.receipt.Payin)
	n.RefundByExternalID(v.receipt.Merchant, v.externalID)
	n.ReceivablesOf(v.receipt.Merchant, v.receipt.Payin)
	n.OpenCasesAbout(v.receipt.Merchant, v.receipt.Payin, store.CaseOverpaid)
	n.DisputesOfPayin(v.receipt.Merchant, v.receipt.Payin)
	n.Balances(v.receipt.Merchant)
}

// errUndecided means that a listed refund waits, because it may be one of ours.
var errUndecided = errors.New("refund: a refund of the same payment and amount is not decided yet: the processor may show it under another id")

// mayBe reports whether the listed refund may be a part of unknown outcome whose id the processor
// has lost. Booked as another refund, its money would be taken twice.
func (v *find) mayBe(p payment.RefundPart) bool {
	undecided := p.State == effect.Sending || p.Possible() && (p.State == effect.Asking || p.State == effect.Unknown || p.State == effect.Review)
	return undecided && p.Receipt == v.receipt.ID && p.Amount == v.listed.Amount
}

// Decide sets the money aside: first the surplus of the payment that is unapplied or was written
// off, then unsettled money of the order, then available money, and the rest as debt. A refund that
// exceeds the paid amount of the pay-in, less refunds and disputes, gets a case.
func (v *find) Decide(l *store.Loaded, c *store.Changes) error {
	v.part, v.found = payment.RefundPart{}, false
	m := v.receipt.Merchant
	parts := l.RefundPartsOf(m, v.receipt.Payin)
	for i := range parts {
		if parts[i].Processor == v.receipt.Processor && parts[i].ExternalID == v.listed.ExternalID {
			v.part, v.found = parts[i], true
			return nil
		}
	}
	if slices.ContainsFunc(parts, v.mayBe) {
		return errUndecided
	}
	p, ok := l.Payin(m, v.receipt.Payin)
	if _, _, taken := l.RefundByExternalID(m, v.externalID); !ok || taken {
		return store.ErrNotFound
	}
	receipts := l.ReceiptsOf(m, p.ID)
	unapplied, err := outgoing.TakeUnapplied(l, c, &payment.RefundPart{Merchant: m, Payin: p.ID, Receipt: v.receipt.ID},
		min(v.listed.Amount, v.surplus(parts), payment.SurplusLeft(&p, receipts, parts)))
	if err != nil {
		return err
	}
	ofOrder := v.listed.Amount - unapplied
	_, legal := payment.PayinTable.Next(p.Status, payment.OnRefundPart)
	beyond := ofOrder > 0 && (!legal || ofOrder > payment.RefundLeft(&p, receipts, parts, unapplied))
	r := payment.Refund{
		Merchant: m, ID: v.id, Payin: p.ID, ExternalID: v.externalID, Origin: payment.RefundByProcessor, Amount: v.listed.Amount,
		Status: payment.RefundPending, Version: 1,
		WebhookURL: p.WebhookURL, WebhookDisabled: p.WebhookDisabled, CreatedAt: l.Now(), UpdatedAt: l.Now(),
	}
	v.part = payment.RefundPart{
		Merchant: m, Refund: r.ID, Number: 1, Payin: p.ID, Receipt: v.receipt.ID, Processor: v.receipt.Processor, PaymentID: v.receipt.ExternalID,
		ExternalID: v.listed.ExternalID, Amount: r.Amount, Unapplied: unapplied, Surplus: beyond || ofOrder == 0, Took: receivable.Take(l, c, &p, ofOrder),
		Effect: effect.Effect{State: effect.Accepted, Last: true, NextAt: l.Now()},
	}
	of := ledger.Parts{Unapplied: unapplied, Pending: v.part.Took.Sum()}
	if err := c.Post(m, r.ID, ledger.FindRefund(of, l.Balances(m)[ledger.Available], r.Amount)); err != nil {
		return err
	}
	c.AddRefund(r, nil, v.part)
	v.found = true
	if beyond {
		c.OpenCase(store.Case{
			Merchant: m, Kind: store.CaseRefundUnexpected, Subject: p.ID, Amount: ofOrder,
			Params: store.Params{"processor": v.receipt.Processor, "externalId": v.listed.ExternalID},
		})
	}
	return nil
}

// surplus is the rest of the payment's surplus over its order.
func (v *find) surplus(parts []payment.RefundPart) money.Cents {
	return payment.RefundSources([]payment.Receipt{v.receipt}, parts)[0].Surplus
}
