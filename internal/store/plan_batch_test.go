package store_test

import (
	"fmt"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// batchPayouts adds batches, and records their end.
func (v *exercise) batchPayouts(count int) {
	v.t.Helper()
	m := v.merchants[0].ID
	name := func(i int) string { return fmt.Sprintf("batch %d of %d", i, count) }
	var ids []payment.ID
	v.commit(store.Capacity{}, func(n *store.Needs) {
		for i := range count {
			n.PayoutBatchByExternalID(m, name(i))
		}
	}, func(_ *store.Loaded, c *store.Changes) {
		for i := range count {
			b := payment.PayoutBatch{Merchant: m, ID: v.id(), ExternalID: name(i), Count: 1, Amount: 1, First: payment.ID{1}, Last: payment.ID{2}, Version: 1}
			c.AddPayoutBatch(b, []byte{1})
			ids = append(ids, b.ID)
		}
	})
	v.commit(store.Capacity{}, func(n *store.Needs) {
		for _, id := range ids {
			n.PayoutBatch(m, id)
		}
	}, func(l *store.Loaded, c *store.Changes) {
		for i, id := range ids {
			b, ok := l.PayoutBatch(m, id)
			if !ok || b.Counts[payment.PayoutCompleted] != 1 {
				v.t.Errorf("batch %d of %d is %+v", i, count, b)
			}
			b.Version++
			b.CompletedAt = l.Now() // now only the payouts that are not completed are read
			c.SetPayoutBatch(b)
		}
	})
	v.commit(store.Capacity{}, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) {
		for i := range count {
			c.AddSearchTerm(m, v.last.payins[i].Payin.ID, payment.ID{1})
		}
		c.SetSearchPosition(m, payment.OperationPayin, payment.ID{1})
		c.IndexAgain(m, payment.OperationPayin, payment.ID{1})
	})
}

// readBatches reads batches, and finds orders with each filter.
func (v *exercise) readBatches() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	list, err := s.PayoutBatches(ctx, m, store.Filter{Limit: 5})
	if err != nil || len(list) == 0 {
		t.Fatalf("batches %v, %v", list, err)
	}
	_, err = s.PayoutBatches(ctx, m, store.Filter{ExternalID: "x", Before: list[0].ID, Limit: 5})
	must(t, err)
	_, err = s.PayoutBatch(ctx, m, list[0].ID)
	must(t, err)
	_, _, err = s.PayoutBatchByExternalID(ctx, m, list[0].ExternalID)
	must(t, err)
	var payouts []payment.Payout
	var ids []store.ExternalRef
	for i := range 3 { // PostgreSQL has a text for one row, and one for many
		p := payment.Payout{Merchant: m, Counters: payment.CounterKey, KeyHash: payment.ID{byte(i + 1)}}
		payouts, ids = append(payouts, p), append(ids, store.ExternalRef{Merchant: m, ExternalID: fmt.Sprint(i)})
		_, err = s.CountersUsed(ctx, payouts)
		must(t, err)
		_, err = s.PayoutsTaken(ctx, ids)
		must(t, err)
	}
	_, err = s.OpenPayoutBatches(ctx, payment.ID{}, 5)
	must(t, err)
	_, err = s.SearchPosition(ctx, m, payment.OperationPayin)
	must(t, err)
	one, two := []store.SearchTerm{{1}}, []store.SearchTerm{{1}, {2}}
	for _, op := range []payment.Operation{payment.OperationPayin, payment.OperationPayout} {
		_, err = s.SearchedOrders(ctx, m, op, payment.ID{}, payment.ID{0xff}, 5)
		must(t, err)
		for _, f := range []store.Filter{
			{EndToEndID: "E"}, {Identified: "x"}, {MinAmount: 1}, {MinAmount: 1, MaxAmount: 2, Before: list[0].ID}, {MaxAmount: 2, CreatedFrom: v.far, CreatedTo: v.far},
			{Terms: [][]store.SearchTerm{one}}, {Terms: [][]store.SearchTerm{two}, Before: list[0].ID}, {Terms: [][]store.SearchTerm{one, two}},
			{Terms: [][]store.SearchTerm{one}, Status: "PENDING", CreatedFrom: v.far}, {Terms: [][]store.SearchTerm{one}, EndToEndID: "E"},
			{Terms: [][]store.SearchTerm{two}, MinAmount: 1, CreatedTo: v.far},
		} {
			v.list(op, f)
		}
	}
	_, err = s.Payouts(ctx, m, store.Filter{Batch: list[0].ID, First: list[0].First, Last: list[0].Last, Terms: [][]store.SearchTerm{one}, MinAmount: 1, Limit: 5})
	must(t, err)
}
