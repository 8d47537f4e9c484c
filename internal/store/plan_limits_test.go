package store_test

import (
	"time"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// countPayouts counts payouts: with counters that are new, that exist, and that are not
// loaded; one of each, and several.
func (v *exercise) countPayouts() {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	old := payment.Payout{Merchant: m, Amount: 5, Counters: payment.CounterDay, CreatedAt: time.Unix(0, 0)}
	all := payment.Payout{Merchant: m, Amount: 5, Counters: payment.CounterDay | payment.ByKey, KeyHash: payment.ID{1}, CreatedAt: v.far}
	for _, p := range []payment.Payout{old, all} {
		for range 2 {
			v.commit(store.Capacity{}, func(n *store.Needs) {
				n.Balances(m)
				n.Counters(&p)
			}, func(l *store.Loaded, c *store.Changes) {
				if used := l.Usage(&p); used.Day.Payouts < 0 {
					t.Errorf("%+v", used)
				}
				c.CountPayout(&p)
			})
		}
		v.commit(store.Capacity{}, func(n *store.Needs) { n.Balances(m) }, func(_ *store.Loaded, c *store.Changes) { c.UncountPayout(&p) })
	}
	moved := all
	moved.CountedAt = v.far.Add(24 * time.Hour)
	for _, to := range [][2]payment.Payout{{all, moved}, {moved, all}} {
		v.commit(store.Capacity{}, func(n *store.Needs) {
			n.Balances(m)
			n.Counters(&to[1])
		}, func(_ *store.Loaded, c *store.Changes) { c.MovePayout(&to[0], &to[1]) })
	}
	used, err := s.LimitsUsed(ctx, m, v.far)
	must(t, err)
	if want := (limits.Count{Amount: 5, Payouts: 1}); used.Day != want || used.Night.Payouts != 0 {
		t.Errorf("used %+v, want %+v", used, want)
	}
	if old, err := s.HasOldCounters(ctx, m, v.far); err != nil || !old {
		t.Errorf("old counters: %v, %v", old, err)
	}
	write(t, s, func(tx *store.AdminTx) error {
		n, err := tx.RemoveCounters(ctx, m, 5)
		if n != 1 {
			t.Errorf("removed %d counters, want that of 1970", n)
		}
		must(t, err)
		l, err := tx.Limits(ctx, m)
		must(t, err)
		return tx.SetLimits(ctx, m, &l)
	})
}

// approvePayouts adds approvals, reads them, and stops the expiry of payouts.
func (v *exercise) approvePayouts(count int) {
	t, s, ctx, m := v.t, v.s, v.t.Context(), v.merchants[0].ID
	for _, last := range []int64{1, 2} {
		v.commit(store.Capacity{}, func(n *store.Needs) {
			for i := range count {
				n.Payout(m, v.last.payouts[i].Payout.ID)
				n.Approvals(m, v.last.payouts[i].Payout.ID)
			}
		}, func(l *store.Loaded, c *store.Changes) {
			for i := range count {
				id := v.last.payouts[i].Payout.ID
				c.AddApproval(store.Approval{Merchant: m, Payout: id, Action: store.ApprovalGiven})
				if list := l.Approvals(m, id); int64(len(list)) != last || list[last-1].Number != last-1 {
					t.Errorf("approvals %+v", list)
				}
			}
		})
	}
	list, err := s.Approvals(ctx, m, v.last.payouts[0].Payout.ID)
	if err != nil || len(list) != 2 {
		t.Errorf("approvals %+v, %v", list, err)
	}
	_, err = s.ApprovalsOf(ctx, m, []payment.ID{v.last.payouts[0].Payout.ID})
	must(t, err)
	_, err = s.PayoutsUndecided(ctx, v.far, 5)
	must(t, err)
}
