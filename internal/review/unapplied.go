package review

import (
	"context"
	"fmt"

	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// findMerchant reads the merchant that gets the money.
func findMerchant(ctx context.Context, s *Service, v *Resolve) error {
	_, err := s.Store.Merchant(ctx, v.Request.Merchant)
	return err
}

// owner is the merchant whose money the case is about.
func (v *Resolve) owner() payment.ID {
	if v.rule.Merchant {
		return v.Request.Merchant
	}
	return v.opened.Merchant
}

func needsBalances(v *Resolve, n *store.Needs) { n.Balances(v.opened.Merchant) }

func needsOrder(v *Resolve, n *store.Needs) {
	if !v.Order.IsZero() {
		n.DisputesOfPayin(v.owner(), v.Order)
		n.ExpectDeliveries(v.owner(), 1)
	}
	n.Balances(v.owner())
}

func needsAssign(v *Resolve, n *store.Needs) {
	needsBalances(v, n)
	needsOrder(v, n)
	if !v.Order.IsZero() {
		n.Charge(v.owner(), v.Order) // where it was tried
	}
}

// checkOrder returns a problem if the order cannot be paid.
func checkOrder(v *Resolve, l *store.Loaded) error {
	if v.Order.IsZero() {
		return nil
	}
	p, ok := l.Payin(v.owner(), v.Order)
	if !ok {
		return problem.New(problem.NotFound, fmt.Sprintf("The merchant has no pay-in %s.", v.Order))
	}
	return payable(&p)
}

// payable returns a problem if the pay-in takes no more money.
func payable(p *payment.Payin) error {
	if _, legal := payment.PayinTable.Next(p.Status, payment.OnApply); !legal || p.PaidAmount >= p.Amount {
		return problem.New(problem.InvalidState, fmt.Sprintf("Pay-in %s is %s and takes no more money. Without --order the money becomes available.", p.ID, p.Status))
	}
	return nil
}

// applyUnapplied pays an order, or makes the money available. The surplus stays unapplied, with a
// case of its own. That case is about the order of the payment, to whose payer the surplus can be
// returned. If the money named no order, it is about the paid order.
func applyUnapplied(v *Resolve, l *store.Loaded, c *store.Changes) error {
	m, amount := v.owner(), v.opened.Amount
	if v.Order.IsZero() {
		if err := c.Post(m, v.opened.Subject, ledger.ReleaseUnapplied(amount)); err != nil {
			return err
		}
		return transition.RepayDebt(l, c, m, v.opened.Subject)
	}
	p, _ := l.Payin(m, v.Order)
	on, applied := payment.OnApplyShort, amount
	if lacking := p.Amount - p.PaidAmount; amount >= lacking {
		on, applied = payment.OnApply, lacking
		p.Late = p.LateAt(l.Now())
		p.PaidAt, p.Failure = l.Now(), nil
	}
	p.PaidAmount += applied
	credit := receivable.Book(l, c, &p, applied, l.Now())
	if _, err := transition.Payin(l, c, &p, v.links, on, credit.Applied()); err != nil {
		return err
	}
	if err := dispute.ShowBefore(l, c, &p, v.links); err != nil {
		return err
	}
	if rest := amount - applied; rest > 0 {
		left := store.Case{Merchant: m, Kind: store.CaseOverpaid, Subject: p.ID, Amount: rest, Params: store.OfReceipt(v.opened.Subject)}
		if v.opened.Kind == store.CaseOverpaid {
			left = v.opened.Rest(rest)
		}
		v.Result.Rest = c.OpenCase(left)
	}
	return nil
}

// writeOffUnapplied gives the money to the platform.
func writeOffUnapplied(v *Resolve, _ *store.Loaded, c *store.Changes) error {
	return c.Post(v.opened.Merchant, v.opened.Subject, ledger.WriteOffUnapplied(v.opened.Amount))
}

// assignUnidentified moves money that names no order from the platform to a merchant, and
// applies it there.
func assignUnidentified(v *Resolve, l *store.Loaded, c *store.Changes) error {
	processor := v.opened.Params["processor"]
	if err := c.Post(v.opened.Merchant, v.opened.Subject, ledger.MoveUnidentified(processor, v.opened.Amount)); err != nil {
		return err
	}
	if err := c.Post(v.owner(), v.opened.Subject, ledger.TakeUnidentified(processor, v.opened.Amount)); err != nil {
		return err
	}
	return applyUnapplied(v, l, c)
}

// writeOffUnidentified leaves money that names no order to the platform.
func writeOffUnidentified(v *Resolve, _ *store.Loaded, c *store.Changes) error {
	return c.Post(v.opened.Merchant, v.opened.Subject, ledger.WriteOffUnidentified(v.opened.Amount))
}
