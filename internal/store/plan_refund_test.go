package store_test

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// refund refunds the pay-ins of the last batch, and claims and changes the parts.
func (v *exercise) refund(count int) {
	v.t.Helper()
	m := v.merchants[0].ID
	name := func(i int) string { return fmt.Sprintf("refund %d of %d", i, count) }
	var ids []payment.ID
	v.commit(store.Capacity{}, func(n *store.Needs) {
		for i := range count {
			n.RefundsOf(m, v.last.payins[i].Payin.ID)
			n.RefundByExternalID(m, name(i))
		}
	}, func(l *store.Loaded, c *store.Changes) {
		for i := range count {
			r := payment.Refund{Merchant: m, ID: v.id(), Payin: v.last.payins[i].Payin.ID, ExternalID: name(i), Amount: 1, Version: 1, Status: payment.RefundPending}
			var parts []payment.RefundPart
			for j := range count {
				parts = append(parts, payment.RefundPart{
					Merchant: m, Refund: r.ID, Number: int64(j + 1), Payin: r.Payin, Processor: "bank", ExternalID: fmt.Sprint(name(i), " ", j),
					Amount: 1, Effect: effect.Effect{State: effect.Queued, NextAt: l.Now()},
				})
			}
			c.AddRefund(r, nil, parts...)
			ids = append(ids, r.ID)
		}
	})
	due := store.DueRefundParts{Account: "bank", Queue: store.ToSend, Limit: 10, Debts: true}
	v.commit(store.Capacity{}, func(n *store.Needs) {
		n.DueRefundParts(due)
		n.DueRefundParts(store.DueRefundParts{Account: "bank", Queue: store.ToLookUp, Limit: 10})
		for i := range count {
			n.Refund(m, ids[i])
			n.RefundsOf(m, v.last.payins[i].Payin.ID)
			n.RefundByExternalID(m, name(i))
		}
	}, func(l *store.Loaded, c *store.Changes) {
		if list := l.DueRefundParts(due); len(list) < count {
			v.t.Errorf("%d parts are due", len(list))
		}
		for i := range count {
			r, ok := l.Refund(m, ids[i])
			if parts := l.RefundParts(m, ids[i]); !ok || len(parts) != count {
				v.t.Errorf("refund %d of %d has %d parts", i, count, len(parts))
			}
			r.Version++
			c.AdoptRefund(r, []byte{1})
			r.Version++
			c.SetRefund(r)
			for _, p := range l.RefundParts(m, ids[i]) {
				c.Park(store.DamagedCase(m, p.Refund, "refund_parts"), p.Number)
				p.ClaimedBy, p.NextAt = v.node, time.Time{}
				c.SetRefundPart(p)
			}
		}
	})
}

// readRefunds reads refunds one by one, and in lists with each filter.
func (v *exercise) readRefunds() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	payin := v.last.payins[0].Payin.ID
	list, err := s.Refunds(ctx, m, store.Filter{Payin: payin, Limit: 5})
	if err != nil || len(list) == 0 {
		t.Fatalf("refunds %v, %v", list, err)
	}
	for _, f := range []store.Filter{
		{EndToEndID: "D"}, {EndToEndID: "D", Status: string(payment.RefundPending), Before: payin}, {EndToEndID: "D", MinAmount: 1, Payin: payin}, {Identified: "x"},
		{MinAmount: 1}, {MinAmount: 1, MaxAmount: 2, Before: payin}, {MaxAmount: 2, CreatedFrom: v.far, CreatedTo: v.far}, {MinAmount: 1, Payin: payin},
		{MinAmount: 1, Status: string(payment.RefundPending)}, {MinAmount: 1, Status: string(payment.RefundCompleted)},
		{}, {Status: string(payment.RefundPending)}, {Status: string(payment.RefundCompleted)}, {ExternalID: "r"}, {Before: payin}, {CreatedFrom: v.far},
		{CreatedTo: v.far}, {Payin: payin, Status: string(payment.RefundPending)}, {Payin: payin, Status: string(payment.RefundCompleted), Before: payin},
	} {
		v.list(payment.OperationRefund, f)
	}
	_, err = s.Refund(ctx, m, list[0].ID)
	must(t, err)
	_, err = s.FindRefund(ctx, list[0].ID)
	must(t, err)
	_, _, err = s.RefundByExternalID(ctx, m, list[0].ExternalID)
	must(t, err)
	parts, err := s.RefundParts(ctx, m, list[0].ID)
	must(t, err)
	_, err = s.RefundPart(ctx, m, "bank", parts[0].ExternalID)
	must(t, err)
	_, _, err = s.ReceiptClaim(ctx, "bank", "0 of 1")
	must(t, err)
	for _, queue := range []store.PayoutQueue{store.ToSend, store.ToLookUp} {
		_, err = s.AccountsWithRefunds(ctx, v.far, queue)
		must(t, err)
	}
}
