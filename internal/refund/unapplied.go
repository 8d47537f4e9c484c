package refund

import (
	"context"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Unapplied gives unapplied money of a pay-in back to its payer, by the decision on a case.
type Unapplied struct {
	Merchant payment.ID
	Payin    payment.ID
	Amount   money.Cents

	of  store.Case
	ids func(part int) string
}

// NewUnapplied prepares it. The refund's external id is derived from the case, so it is paid once.
func NewUnapplied(ctx context.Context, s *store.Store, of *store.Case) (*Unapplied, error) {
	m, err := s.Merchant(ctx, of.Merchant)
	if err != nil {
		return nil, err
	}
	ids := func(part int) string { return externalID(s, &m, "\x00case\x00"+of.ID.String(), part) }
	return &Unapplied{Merchant: of.Merchant, Payin: of.Subject, Amount: of.Amount, of: *of, ids: ids}, nil
}

// Needs reads the rows that Check and Apply need.
func (v *Unapplied) Needs(n *store.Needs) {
	n.RefundsOf(v.Merchant, v.Payin)
	n.DisputesOfPayin(v.Merchant, v.Payin)
	n.Balances(v.Merchant)
}

// split takes the surplus over the order of the case's payment, or of all payments if the case names
// none.
func (v *Unapplied) split(l *store.Loaded) ([]payment.RefundSlice, bool) {
	list := payment.RefundSources(l.ReceiptsOf(v.Merchant, v.Payin), l.RefundPartsOf(v.Merchant, v.Payin))
	return payment.SplitUnapplied(v.Amount, slices.DeleteFunc(list, func(s payment.RefundSource) bool { return !v.of.MayBeOf(s.Receipt.ID) }))
}

// Check returns a problem of kind invalid_state if the pay-in has an open or lost dispute, even if
// the pay-in's status does not show the dispute. It returns refund_not_possible if the payments of
// the pay-in do not cover the money.
func (v *Unapplied) Check(l *store.Loaded) error {
	disputed := func(d payment.Dispute) bool { return d.Live() || d.Status == payment.DisputeLost }
	if slices.ContainsFunc(l.DisputesOf(v.Merchant, v.Payin), disputed) {
		return problem.New(problem.InvalidState, "The payer disputes the payment: its bank may have taken this money already.")
	}
	if _, ok := v.split(l); !ok {
		return notPossible(fmt.Sprintf("The payments of pay-in %s do not cover the money: a part of it was given back already, or was received for another order.", v.Payin))
	}
	if l.Balances(v.Merchant)[ledger.Unapplied] < v.Amount {
		return problem.New(problem.InvalidState, "The merchant's unapplied account does not have the money.")
	}
	return nil
}

// Apply stores a refund that Check allows, and holds its money.
func (v *Unapplied) Apply(l *store.Loaded, c *store.Changes) error {
	if err := transition.Unapplied(l, c, v.Merchant, v.Payin, -v.Amount); err != nil {
		return err
	}
	p, _ := l.Payin(v.Merchant, v.Payin)
	list, _ := v.split(l)
	r := payment.Refund{
		Merchant: v.Merchant, ID: c.NewID(), Payin: v.Payin, ExternalID: v.ids(1), Origin: payment.RefundByCase, Amount: v.Amount,
		Status: payment.RefundPending, Version: 1, WebhookURL: p.WebhookURL, WebhookDisabled: p.WebhookDisabled, CreatedAt: l.Now(), UpdatedAt: l.Now(),
	}
	if err := c.Post(r.Merchant, r.ID, ledger.HoldRefund(ledger.Parts{Unapplied: r.Amount}, 0, 0, r.Amount)); err != nil {
		return err
	}
	parts := newParts(&r, list, v.ids, l.Now())
	for i := range parts {
		parts[i].Unapplied, parts[i].Surplus = parts[i].Amount, true
	}
	c.AddRefund(r, nil, parts...)
	return nil
}
