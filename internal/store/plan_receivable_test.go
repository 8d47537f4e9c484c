package store_test

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// settle adds receivables to the pay-ins of the last batch, parks some and settles the others.
func (v *exercise) settle(count int) {
	v.t.Helper()
	m, at := v.merchants[0].ID, time.Now()
	var added, parked []payment.ID
	v.commit(store.Capacity{}, func(*store.Needs) {}, func(l *store.Loaded, c *store.Changes) {
		for i := range count {
			for range 2 {
				c.AddReceivable(store.Receivable{Merchant: m, Payin: v.last.payins[i].Payin.ID, Installment: 1, Gross: 2, SettlesAt: at})
			}
			list := l.ReceivablesOf(m, v.last.payins[i].Payin.ID)
			added, parked = append(added, list[0].ID), append(parked, list[1].ID)
		}
	})
	v.commit(store.Capacity{}, func(n *store.Needs) {
		for i := range count {
			n.PayinByExternalID(m, v.last.payins[i].Payin.ExternalID)
			n.ReceivablesByExternalID(m, v.last.payins[i].Payin.ExternalID)
			n.ReceivablesOf(m, v.last.payins[i].Payin.ID)
			n.Receivable(m, added[i])
		}
	}, func(l *store.Loaded, c *store.Changes) {
		for i := range count {
			r, ok := l.Receivable(m, added[i])
			if list := l.ReceivablesOf(m, r.Payin); !ok || len(list) != 2 {
				v.t.Errorf("receivables %+v, %v", list, ok)
			}
			r.State, r.SettledAt = store.ReceivableSettled, l.Now()
			c.SetReceivable(r)
			c.Park(store.DamagedCase(m, parked[i], "receivables"), 0)
		}
	})
}

// readReceivables reads due receivables, and those of a date.
func (v *exercise) readReceivables() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	_, err := s.ReceivablesDue(ctx, v.far, 5)
	must(t, err)
	days, err := s.ReceivableDays(ctx, m, time.Time{}, v.far)
	if err != nil || len(days) == 0 || int64(days[0].Amount) != 2*days[0].Count {
		t.Fatalf("%+v, %v", days, err)
	}
	list, err := s.ReceivablesAt(ctx, m, days[0].SettlesAt, payment.ID{}, 5)
	if err != nil || len(list) < 2 || list[0].ReferenceID == "" {
		t.Fatalf("%+v, %v", list, err)
	}
}
