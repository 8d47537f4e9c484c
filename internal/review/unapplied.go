package review

import (
	"context"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
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
	if v.opened.Kind == store.CaseOverpaid {
		n.Payin(v.opened.Merchant, v.opened.Subject)
	}
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
	if _, legal := payment.PayinTable.Next(p.Status, payment.OnApply); !legal || p.Lacking() == 0 {
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
		if err := v.takeUnapplied(l, c, amount); err != nil {
			return err
		}
		if err := c.Post(m, v.opened.Subject, ledger.ReleaseUnapplied(amount)); err != nil {
			return err
		}
		return transition.RepayDebt(l, c, m, v.opened.Subject)
	}
	p, _ := l.Payin(m, v.Order)
	on, applied := payment.OnApplyShort, min(amount, p.Lacking())
	if err := v.takeUnapplied(l, c, applied); err != nil {
		return err
	}
	p, _ = l.Payin(m, v.Order) // it may be the one whose money is taken
	if v.opened.Kind == store.CaseUnmatchedReceipt {
		p.UnappliedAmount += amount - applied
	}
	if applied == p.Lacking() {
		on = payment.OnApply
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

// takeUnapplied reduces the unapplied amount of the order that the money was paid for, if it names one.
func (v *Resolve) takeUnapplied(l *store.Loaded, c *store.Changes, amount money.Cents) error {
	if v.opened.Kind != store.CaseOverpaid {
		return nil
	}
	return transition.Unapplied(l, c, v.opened.Merchant, v.opened.Subject, -amount)
}

func needsWriteOff(v *Resolve, n *store.Needs) {
	n.RefundsOf(v.opened.Merchant, v.opened.Subject)
	n.DisputesOfPayin(v.opened.Merchant, v.opened.Subject)
	n.Balances(v.opened.Merchant)
}

// checkWriteOff returns a problem if a dispute has taken from the merchant what the platform would keep
// of the payment.
func checkWriteOff(v *Resolve, l *store.Loaded) error {
	m, p := v.opened.Merchant, v.opened.Subject
	list := slices.DeleteFunc(slices.Clone(l.ReceiptsOf(m, p)), func(r payment.Receipt) bool { return !v.opened.MayBeOf(r.ID) })
	if len(list) == 0 { // it came for another order
		return nil
	}
	of := payment.ID{} // all of them
	if len(list) == 1 {
		of = list[0].ID
	}
	left := -l.WrittenOff(m, p, of)
	for _, r := range list {
		left += r.Amount
		for _, part := range l.RefundPartsOf(m, p) {
			if part.Receipt == r.ID {
				left -= part.InUse()
			}
		}
	}
	var disputed money.Cents
	for _, d := range l.DisputesOf(m, p) {
		if d.PaymentID == "" || slices.ContainsFunc(list, func(r payment.Receipt) bool { return r.Processor == d.Processor && r.ExternalID == d.PaymentID }) {
			disputed += d.InUse()
		}
	}
	if disputed > 0 && v.opened.Amount > left-disputed {
		return problem.New(problem.InvalidState, "A dispute has taken money of this payment from the merchant. Apply the surplus; if the dispute is won, it can be written off.")
	}
	return nil
}

// writeOffUnapplied gives the money to the platform.
func writeOffUnapplied(v *Resolve, l *store.Loaded, c *store.Changes) error {
	if err := v.takeUnapplied(l, c, v.opened.Amount); err != nil {
		return err
	}
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
