package store

import (
	"slices"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
)

func (g *Given) loadRefunds(l *Loaded, n *Needs) {
	v, payins := &n.refunds, l.refundedPayins(n)
	if len(v.ids)+len(v.byExternal)+len(payins)+len(v.due) == 0 {
		return
	}
	l.refunds.begin()
	ids := append(slices.Clone(v.ids), g.loadDueParts(l, n)...)
	for i := range g.Refunds {
		r := &g.Refunds[i]
		if slices.Contains(ids, Ref{r.Merchant, r.ID}) || slices.Contains(v.byExternal, ExternalRef{r.Merchant, r.ExternalID}) ||
			slices.Contains(payins, Ref{r.Merchant, r.Payin}) {
			l.refunds.add(refundRow{Refund: r.Refund, fingerprint: r.Fingerprint})
		}
	}
	for i := range g.RefundParts {
		if p := &g.RefundParts[i]; slices.Contains(payins, Ref{p.Merchant, p.Payin}) {
			l.refunds.parts[keyOfPart(p)] = *p
		}
	}
	for i := range g.Receipts {
		if ref := (Ref{g.Receipts[i].Merchant, g.Receipts[i].Payin}); slices.Contains(payins, ref) {
			l.refunds.receipts[ref] = append(l.refunds.receipts[ref], g.Receipts[i])
		}
	}
}

func (g *Given) loadDueParts(l *Loaded, n *Needs) (refunds []Ref) {
	byTime := slices.Clone(g.RefundParts)
	slices.SortStableFunc(byTime, func(a, b payment.RefundPart) int { return a.NextAt.Compare(b.NextAt) })
	for _, d := range n.refunds.due {
		for i := range byTime {
			p := &byTime[i]
			if p.Processor == d.Account && d.Queue.includes(p.Step) && l.due(payment.ID{}, p.NextAt) && len(l.refunds.due[d]) < d.Limit {
				key := keyOfPart(p)
				l.refunds.parts[key] = *p
				l.refunds.due[d] = append(l.refunds.due[d], key)
				refunds = append(refunds, key.Ref)
				if d.Debts {
					l.refunds.owed[p.Merchant] = -g.Balances[p.Merchant][ledger.Owed]
				}
			}
		}
	}
	return refunds
}

func (g *Given) refundsAfter(c *Changes) ([]GivenRefund, []payment.RefundPart) {
	refunds := overlaid(g.Refunds, c.l.refunds.rows, func(r *GivenRefund) Ref { return Ref{r.Merchant, r.ID} },
		func(r refundRow) GivenRefund { return GivenRefund{r.Refund, r.fingerprint} })
	parts := overlaid(g.RefundParts, c.l.refunds.parts, keyOfPart, func(p payment.RefundPart) payment.RefundPart { return p })
	return refunds, parts
}
