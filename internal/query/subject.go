// Package query has what lists, pages and commands read: one file per question,
// no locks.
package query

import (
	"context"
	"errors"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Kind is what an id names.
type Kind string

// The kinds of subjects.
const (
	KindPayin    Kind = "payin"
	KindPayout   Kind = "payout"
	KindRefund   Kind = "refund"
	KindReceipt  Kind = "receipt"
	KindDispute  Kind = "dispute"
	KindTransfer Kind = "transfer" // that was found: see [store.FoundTransfer]
	KindEvent    Kind = "event"
)

// postingsMost is how many postings of a subject are read.
const postingsMost = 100

// Subject is what a person asks about, with everything that is known about it: an order, a refund, a
// payment, a dispute or a found transfer. One of the pointers is set, or none if the row cannot be
// read.
type Subject struct {
	Kind     Kind
	Merchant payment.ID // zero: the platform
	ID       payment.ID

	Payin    *payment.Payin
	Payout   *payment.Payout
	Refund   *payment.Refund
	Receipt  *payment.Receipt
	Dispute  *payment.Dispute
	Transfer *store.FoundTransfer
	Damaged  *store.DamagedOrder // a row with a column that cannot be opened

	Receipts  []payment.Receipt       // payments of a pay-in
	Refunds   []payment.Refund        // of a pay-in, newest first
	Disputes  []payment.Dispute       // of a pay-in
	Parts     []payment.RefundPart    // of a refund
	Answers   []payment.DisputeAnswer // to a dispute
	Sends     []store.Send            // of a payout
	Charges   []store.Charge          // of a pay-in
	Approvals []store.Approval        // of a payout
	Cases     []store.Case            // about it, newest first
	Postings  []store.Posting         // about it, at most 100
}

// Explain reads a subject of a merchant, or of the platform. A row that cannot be opened is left
// out: the question may be about that. Then Damaged has what can be read. Error:
// [store.ErrNotFound] if nothing has the id.
func Explain(ctx context.Context, s *store.Store, merchant, id payment.ID) (*Subject, error) {
	v := &Subject{Merchant: merchant, ID: id}
	if err := v.find(ctx, s); err != nil {
		return nil, err
	}
	var err error
	keep := func(other error) { err = errors.Join(err, other) }
	switch v.Kind {
	case KindPayin:
		v.Receipts, err = s.Receipts(ctx, merchant, id)
		keep(read(&v.Refunds, func() ([]payment.Refund, error) {
			return s.Refunds(ctx, merchant, store.Filter{Payin: id, Limit: refundsMost})
		}))
		keep(read(&v.Disputes, func() ([]payment.Dispute, error) { return s.DisputesOfPayin(ctx, merchant, id) }))
		keep(read(&v.Charges, func() ([]store.Charge, error) { return s.Charges(ctx, merchant, id) }))
	case KindPayout:
		v.Sends, err = s.Sends(ctx, merchant, id)
		keep(read(&v.Approvals, func() ([]store.Approval, error) { return s.Approvals(ctx, merchant, id) }))
	case KindRefund:
		if v.Parts, err = s.RefundParts(ctx, merchant, id); err != nil && v.Damaged != nil {
			err = nil // a case has their external ids
		}
	case KindDispute:
		v.Answers, err = s.DisputeAnswers(ctx, merchant, id)
	}
	keep(read(&v.Cases, func() ([]store.Case, error) { return s.CasesOf(ctx, merchant, id) }))
	keep(read(&v.Postings, func() ([]store.Posting, error) { return s.PostingsAbout(ctx, merchant, id, postingsMost) }))
	return v, err
}

// refundsMost is more than a pay-in has refunds.
const refundsMost = 200

func read[T any](into *[]T, from func() ([]T, error)) (err error) {
	*into, err = from()
	return err
}

// find reads the row that has the id.
func (v *Subject) find(ctx context.Context, s *store.Store) error {
	if p, err := s.Payin(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Payin = KindPayin, &p
	} else if p, err := s.Payout(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Payout = KindPayout, &p
	} else if p, err := s.Refund(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Refund = KindRefund, &p
	} else if p, err := s.Receipt(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Receipt = KindReceipt, &p
	} else if p, _, err := s.Dispute(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Dispute = KindDispute, &p
	} else if p, err := s.FoundTransferOf(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Transfer = KindTransfer, &p
	} else if p, err := s.DamagedOrder(ctx, v.Merchant, v.ID); err == nil {
		v.Kind, v.Damaged = Kind(p.Type), &p
	} else {
		return err
	}
	return nil
}

// OwnerOf finds the merchant of an order, refund, dispute or payment by its id alone. Error:
// [store.ErrNotFound].
func OwnerOf(ctx context.Context, s *store.Store, id payment.ID) (payment.ID, error) {
	merchants, err := s.Merchants(ctx)
	if err != nil {
		return payment.ID{}, err
	}
	owners := []payment.ID{{}} // the platform, which has unmatched payments
	for i := range merchants {
		owners = append(owners, merchants[i].ID)
	}
	for _, m := range slices.Backward(owners) {
		v := &Subject{Merchant: m, ID: id}
		if err = v.find(ctx, s); err == nil {
			return m, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return payment.ID{}, err
		}
	}
	return payment.ID{}, err
}
