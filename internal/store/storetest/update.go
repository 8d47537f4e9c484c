package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var updateTests = []test{
	{"a pay-in changes from the version that was read", payinVersionGuard},
	{"a payout changes from the version that was read", payoutVersionGuard},
	{"of many changes at once each counts", changesAtOnce},
	{"sums that cannot be are refused", impossibleSums},
	{"expired pay-ins are due once", payinsDue},
}

func payinVersionGuard(b *bench) {
	m := b.merchant()
	p := b.payin(m, "r")
	b.storePayins(p)
	change := func(was int64, status payment.PayinStatus) error {
		q := p.Payin
		q.Status, q.Version, q.PaidAmount, q.PaidAt, q.Late, q.EndToEndID = status, was+1, 1000, b.now(), true, "E"
		return b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.UpdatePayin(b.Context(), &q, was) })
	}
	b.must(change(1, payment.PayinPaid))
	b.wantError(change(1, payment.PayinFailed), store.ErrConflict)
	b.wantError(change(3, payment.PayinFailed), store.ErrConflict)
	got, err := b.s.Payin(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "status", got.Status, payment.PayinPaid)
	equal(b, "version", got.Version, 2)
	equal(b, "paid", got.PaidAmount, cents(1000))
	equal(b, "late", got.Late, true)
	if got.UpdatedAt.Before(p.CreatedAt) {
		b.Error("updatedAt goes back")
	}
}

func payoutVersionGuard(b *bench) {
	m := b.merchant()
	p := b.payout(m, "r")
	b.storePayouts(p)
	change := func(was int64, step payment.PayoutStep) error {
		q := p.Payout
		q.Step, q.Version, q.NextAt, q.ClaimedBy = step, was+1, time.Time{}, b.id()
		return b.s.Write(b.Context(), func(tx *store.Tx) error { return tx.UpdatePayout(b.Context(), &q, was) })
	}
	b.must(change(1, payment.StepIntent))
	b.wantError(change(1, payment.StepDone), store.ErrConflict)
	b.wantError(change(3, payment.StepDone), store.ErrConflict)
	got, err := b.s.Payout(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "step", got.Step, payment.StepIntent)
	equal(b, "is due", got.NextAt.IsZero(), true)
}

// Every writer reads, adds and writes: a lost change would show in the sum.
func changesAtOnce(b *bench) {
	const writers, rounds = 8, 10
	m := b.merchant()
	p := b.payin(m, "r")
	b.storePayins(p)
	var conflicts atomic.Int32
	b.together(writers, func(ctx context.Context, _ int) error {
		for range rounds {
			err := b.s.Write(ctx, func(tx *store.Tx) error {
				q, err := tx.Payin(ctx, m.ID, p.ID)
				if err != nil {
					return err
				}
				q.PaidAmount++
				q.Version++
				return tx.UpdatePayin(ctx, &q, q.Version-1)
			})
			if errors.Is(err, store.ErrConflict) {
				conflicts.Add(1)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	got, err := b.s.Payin(b.Context(), m.ID, p.ID)
	b.must(err)
	equal(b, "conflicts of locked reads", conflicts.Load(), 0)
	equal(b, "paid", got.PaidAmount, cents(writers*rounds))
	equal(b, "version", got.Version, 1+writers*rounds)
}

func impossibleSums(b *bench) {
	m := b.merchant()
	p, q := b.payin(m, "r"), b.payout(m, "r")
	b.storePayins(p)
	b.storePayouts(q)
	for what, change := range map[string]func(p *payment.Payin, q *payment.Payout){
		"paid beyond the amount":       func(p *payment.Payin, _ *payment.Payout) { p.PaidAmount = p.Amount + 1 },
		"paid below zero":              func(p *payment.Payin, _ *payment.Payout) { p.PaidAmount = -1 },
		"refunded beyond what is paid": func(p *payment.Payin, _ *payment.Payout) { p.PaidAmount, p.RefundedAmount = 5, 6 },
		"refunded below zero":          func(p *payment.Payin, _ *payment.Payout) { p.RefundedAmount = -1 },
		"returned beyond the amount":   func(_ *payment.Payin, q *payment.Payout) { q.ReturnedAmount = q.Amount + 1 },
		"returned below zero":          func(_ *payment.Payin, q *payment.Payout) { q.ReturnedAmount = -1 },
	} {
		x, y := p.Payin, q.Payout
		change(&x, &y)
		err := b.s.Write(b.Context(), func(tx *store.Tx) error {
			if err := tx.UpdatePayin(b.Context(), &x, 1); err != nil {
				return err
			}
			return tx.UpdatePayout(b.Context(), &y, 1)
		})
		b.refused(what, err)
	}
	nothing := b.payin(m, "of nothing")
	nothing.Amount = 0
	b.refused("an order of nothing", b.s.Write(b.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertPayins(b.Context(), []*store.NewPayin{nothing})
		return err
	}))
}

// refused wants an error of the database itself, not one that says to try again.
func (b *bench) refused(what string, err error) {
	b.Helper()
	if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrCommitUnknown) {
		b.Errorf("%s: %v, want it refused", what, err)
	}
}

func payinsDue(b *bench) {
	m := b.merchant()
	now := b.now()
	late, later, future, paid := b.payin(m, "late"), b.payin(m, "later"), b.payin(m, "future"), b.payin(m, "paid")
	late.ExpiresAt, later.ExpiresAt, future.ExpiresAt, paid.ExpiresAt = now.Add(-time.Hour), now, now.Add(time.Microsecond), now.Add(-time.Hour)
	paid.Status = payment.PayinPaid
	b.storePayins(late, later, future, paid)
	due := func() []store.Ref {
		list, err := b.s.PayinsDue(b.Context(), now, 10)
		b.must(err)
		return list
	}
	list := due()
	if len(list) != 2 || list[0] != (store.Ref{Merchant: m.ID, ID: late.ID}) || list[1].ID != later.ID {
		b.Fatalf("due are %v", list)
	}
	late.Status, late.Version = payment.PayinExpired, 2
	b.write(func(tx *store.Tx) error { return tx.UpdatePayin(b.Context(), &late.Payin, 1) })
	equal(b, "due after one expired", len(due()), 1)
}
