// Package receivable credits payments of an order, less its fee, at once or when they settle, and
// takes unsettled money back.
package receivable

import (
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
	"github.com/porteira/porteira/internal/store"
)

// Credit is how a payment of an order is credited. Amounts are cents. Each fee is at most the
// amount that it is charged on.
type Credit struct {
	Gross, Fee           money.Cents // available at once
	LaterGross, LaterFee money.Cents // settles later
}

// Book charges the fee of a payment of an order under the terms of its creation, and adds the
// receivables of the part that settles later. amount is the applied part of the payment: p has it
// in PaidAmount already. Its fee is added to p. The refunds of an order that was paid before are loaded.
// The caller posts the entries.
func Book(l *store.Loaded, c *store.Changes, p *payment.Payin, amount money.Cents, paidAt time.Time) Credit {
	terms := p.Terms()
	fee := pricing.FeeOfPart(terms, p.PaidAmount-amount, charged(p, l.RefundPartsOf(p.Merchant, p.ID)), amount)
	p.Fee += fee
	if paidAt.IsZero() || paidAt.After(l.Now()) { // the processor's clock is ahead
		paidAt = l.Now()
	}
	var v Credit
	for _, part := range pricing.Schedule(terms, amount, fee, paidAt, p.Installments()) {
		if !part.SettlesAt.After(l.Now()) || part.Net() == 0 {
			v.Gross, v.Fee = v.Gross+part.Gross, v.Fee+part.Fee
			continue
		}
		v.LaterGross, v.LaterFee = v.LaterGross+part.Gross, v.LaterFee+part.Fee
		c.AddReceivable(store.Receivable{
			Merchant: p.Merchant, Payin: p.ID, Installment: part.Installment, Gross: part.Gross, Fee: part.Fee, SettlesAt: part.SettlesAt,
		})
	}
	return v
}

// Received are the entries of a credited receipt.
func (v Credit) Received(processor string) []ledger.Entry {
	var list []ledger.Entry
	if v.Gross > 0 {
		list = append(list, ledger.Receive(processor, v.Gross, v.Fee))
	}
	if v.LaterGross > 0 {
		list = append(list, ledger.ReceiveLater(processor, v.LaterGross, v.LaterFee))
	}
	return list
}

// Applied is the entry of unapplied money that pays an order.
func (v Credit) Applied() ledger.Entry {
	return ledger.ApplyUnapplied(v.Gross+v.LaterGross, v.Fee+v.LaterFee, v.LaterGross-v.LaterFee)
}

// Pending is the unsettled money of an order, in cents. The receivables of the order are loaded.
func Pending(l *store.Loaded, p *payment.Payin) (sum money.Cents) {
	for _, r := range l.ReceivablesOf(p.Merchant, p.ID) {
		if r.Open() {
			sum += r.Net()
		}
	}
	return sum
}

// Take takes up to amount from the unsettled money of an order, from the receivable that settles
// first on. The receivables of the order are loaded. The caller posts the entry, and keeps the
// result for [Restore].
func Take(l *store.Loaded, c *store.Changes, p *payment.Payin, amount money.Cents) (took payment.Takes) {
	for _, r := range l.ReceivablesOf(p.Merchant, p.ID) {
		if part := min(r.Net(), amount); r.Open() && part > 0 {
			r.Taken += part
			amount -= part
			took = append(took, payment.Take{Receivable: r.ID, Amount: part})
			c.SetReceivable(r)
		}
	}
	return took
}

// Restore gives money back to the unsettled receivables from which it was taken, and returns how
// much: the rest is available at once.
func Restore(l *store.Loaded, c *store.Changes, merchant payment.ID, took payment.Takes) (restored money.Cents) {
	for _, t := range took {
		if r, ok := l.Receivable(merchant, t.Receivable); ok && r.Open() {
			r.Taken -= t.Amount
			restored += t.Amount
			c.SetReceivable(r)
		}
	}
	return restored
}

// FeeBack is the part of an order's fee that goes back to the merchant with a refund of amount, pro
// rata, if its price says so. p does not count the refund yet; parts are those of its refunds. The
// parts of all refunds together are the fee, and never more.
func FeeBack(p *payment.Payin, parts []payment.RefundPart, amount money.Cents) money.Cents {
	terms := p.Terms()
	if terms.RefundsFee && p.RefundedAmount+amount >= p.PaidAmount {
		return p.Fee
	}
	return min(pricing.FeeOfRefund(terms, charged(p, parts), p.PaidAmount, p.RefundedAmount, amount), p.Fee)
}

// charged is the fee of an order with what its refunds gave back of it.
func charged(p *payment.Payin, parts []payment.RefundPart) money.Cents {
	sum := p.Fee
	for i := range parts {
		sum += parts[i].FeeRefunded
	}
	return sum
}
