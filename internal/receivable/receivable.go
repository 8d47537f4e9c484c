// Package receivable credits what is paid for an order, less its fee, at once or when it
// settles; and takes money back from what has not settled.
package receivable

import (
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/pricing"
	"github.com/porteira/porteira/internal/store"
)

// Credit is how a payment of an order is credited. Amounts are cents; fees are at most what
// they are the fees of.
type Credit struct {
	Gross, Fee           money.Cents // of what is available at once
	LaterGross, LaterFee money.Cents // of what settles later
}

// Book charges the fee of a payment of an order under the terms of its creation, and adds the
// receivables of what settles later. amount is the part of the payment that is applied: p has
// it in PaidAmount already. Its fee is added to p. The caller posts the entries.
func Book(l *store.Loaded, c *store.Changes, p *payment.Payin, amount money.Cents, paidAt time.Time) Credit {
	terms := p.Terms()
	fee := pricing.FeeOfPart(terms, p.PaidAmount-amount, p.Fee, amount)
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

// Take takes up to amount from what has not settled of an order, what settles soonest first,
// and returns how much. The receivables of the order are loaded; the caller posts the entry.
func Take(l *store.Loaded, c *store.Changes, p *payment.Payin, amount money.Cents) (taken money.Cents) {
	for _, r := range l.ReceivablesOf(p.Merchant, p.ID) {
		if part := min(r.Net(), amount-taken); r.Open() && part > 0 {
			r.Taken, taken = r.Taken+part, taken+part
			c.SetReceivable(r)
		}
	}
	return taken
}

// Restore gives up to amount back to what was taken from an order and has not settled, and
// returns how much: the rest of amount is available at once.
func Restore(l *store.Loaded, c *store.Changes, p *payment.Payin, amount money.Cents) (restored money.Cents) {
	for _, r := range l.ReceivablesOf(p.Merchant, p.ID) {
		if part := min(r.Taken, amount-restored); r.Open() && part > 0 {
			r.Taken, restored = r.Taken-part, restored+part
			c.SetReceivable(r)
		}
	}
	return restored
}
