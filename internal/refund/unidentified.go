package refund

import (
	"cmp"
	"context"
	"errors"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// FindDispute books a dispute that took the money of a payment without an order, or the reversal of
// such a dispute, like a refund. A won dispute may have been lost before, if the processor shows
// only the present dispute. Other disputes change nothing.
func (s *Service) FindDispute(ctx context.Context, account string, d *processor.Dispute) error {
	listed := processor.ListedRefund{ExternalID: cmp.Or(d.ReturnID, d.ID), PaymentID: d.PaymentID, Amount: cmp.Or(d.Lost, d.Amount)}
	switch {
	case d.State == processor.DisputeLost:
		listed.State = processor.TransferPaid
	case d.State == processor.DisputeReversed, d.Current && d.State == processor.DisputeWon:
		listed.State = processor.TransferFailed
	default:
		return nil
	}
	merchant, receipt, err := s.Store.ReceiptClaim(ctx, account, d.PaymentID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := s.Store.Receipt(ctx, merchant, receipt)
	if err != nil || !r.Payin.IsZero() {
		return err
	}
	return s.Writer.Do(ctx, newReturnUnidentified(account, &listed, &r))
}

// returnUnidentified books money without an order that was given back at the processor or taken by
// a dispute, and such money that came back. Each booking has a case of fixed id, which marks it as
// booked.
type returnUnidentified struct {
	listed  *processor.ListedRefund
	receipt payment.Receipt
	id      payment.ID // of the case about it
	backID  payment.ID // of the case about its failure afterwards
}

func newReturnUnidentified(account string, listed *processor.ListedRefund, r *payment.Receipt) *returnUnidentified {
	return &returnUnidentified{
		listed: listed, receipt: *r,
		id: store.CaseID("listed refund %s %s", account, listed.ExternalID), backID: store.CaseID("failed refund %s %s", account, listed.ExternalID),
	}
}

// Merchant implements [write.Operation].
func (v *returnUnidentified) Merchant() payment.ID { return v.receipt.Merchant }

// Class implements [write.Operation].
func (v *returnUnidentified) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *returnUnidentified) Needs(n *store.Needs) {
	n.Case(v.receipt.Merchant, v.id)
	n.Case(v.receipt.Merchant, v.backID)
	n.OpenCasesAbout(v.receipt.Merchant, v.receipt.ID, store.CaseUnmatchedReceipt)
	n.Balances(v.receipt.Merchant)
}

// Decide takes the money from the part that can be assigned. If an operator has assigned the money
// or written it off, the case stays open: an operator decides who bears the loss.
func (v *returnUnidentified) Decide(l *store.Loaded, c *store.Changes) error {
	found, known := l.Case(v.receipt.Merchant, v.id)
	_, undone := l.Case(v.receipt.Merchant, v.backID)
	switch {
	case v.listed.State == processor.TransferPaid && !known:
		return v.returned(l, c)
	case v.listed.State == processor.TransferFailed && known && !undone:
		return v.cameBack(c, &found)
	default:
		return nil
	}
}

func (v *returnUnidentified) returned(l *store.Loaded, c *store.Changes) error {
	m := v.receipt.Merchant
	c.OpenCase(store.Case{
		ID: v.id, Merchant: m, Kind: store.CaseRefundUnexpected, Subject: v.receipt.ID, Amount: v.listed.Amount, Params: v.params(),
	})
	open := l.OpenCasesAbout(m, v.receipt.ID, store.CaseUnmatchedReceipt) // several, if an earlier refund came back
	var left money.Cents
	for i := range open {
		left += open[i].Amount
	}
	if left < v.listed.Amount {
		return nil
	}
	c.CloseCase(m, v.id, store.ResolvedByProof)
	taken := money.Cents(0)
	for i := range open {
		if taken == v.listed.Amount {
			break
		}
		n := min(open[i].Amount, v.listed.Amount-taken)
		taken += n
		c.CloseCase(m, open[i].ID, store.ResolvedByProof)
		if rest := open[i].Amount - n; rest > 0 {
			v.openUnmatched(c, rest)
		}
	}
	return c.Post(m, v.receipt.ID, ledger.ReturnUnidentified(v.receipt.Processor, v.listed.Amount))
}

// cameBack makes the money assignable again, if it was taken.
func (v *returnUnidentified) cameBack(c *store.Changes, found *store.Case) error {
	m := v.receipt.Merchant
	c.OpenCase(store.Case{
		ID: v.backID, Merchant: m, Kind: store.CaseRefundUnexpected, Subject: v.receipt.ID, Amount: v.listed.Amount, Params: v.params(),
	})
	c.CloseCase(m, v.backID, store.ResolvedByProof)
	if found.Resolution != store.ResolvedByProof {
		c.CloseCase(m, v.id, store.ResolvedByProof)
		return nil
	}
	v.openUnmatched(c, found.Amount)
	return c.Post(m, v.receipt.ID, ledger.TakeBackUnidentified(v.receipt.Processor, found.Amount))
}

func (v *returnUnidentified) openUnmatched(c *store.Changes, amount money.Cents) {
	c.OpenCase(store.Case{
		Merchant: v.receipt.Merchant, Kind: store.CaseUnmatchedReceipt, Subject: v.receipt.ID, Amount: amount,
		Params: store.Params{"processor": v.receipt.Processor, "externalId": v.receipt.OrderID},
	})
}

func (v *returnUnidentified) params() store.Params {
	return store.Params{"processor": v.receipt.Processor, "externalId": short(v.listed.ExternalID)}
}
