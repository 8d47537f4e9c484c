package review_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// given is a payout of 10.00 of a merchant that had 14.00, at a step, with one send that ended long
// ago, and a case about it.
func given(t *testing.T, kind store.CaseKind, reason store.CaseReason, status payment.PayoutStatus, step payment.PayoutStep) (*desk, payment.Payout, store.Case) {
	t.Helper()
	d := newDesk(coretest.NewWith(t, 14_00))
	p := d.Payout("r", 10_00)
	c := store.Case{Merchant: p.Merchant, ID: payment.ID{3}, Kind: kind, Subject: p.ID, Amount: p.Amount, Params: reason.With(nil)}
	d.change(p, func(l *store.Loaded, changes *store.Changes) error {
		stored, _ := l.Payout(p.Merchant, p.ID)
		stored.Status, stored.Step, stored.NextAt = status, step, time.Time{}
		changes.SetPayout(stored)
		changes.AddSend(store.Send{Merchant: p.Merchant, Payout: p.ID, Number: 1, Processor: p.Processor, Outcome: store.SendUnknown, Deadline: coretest.Start.Add(-time.Hour)})
		changes.OpenCase(c)
		switch status {
		case payment.PayoutFailed, payment.PayoutCanceled, payment.PayoutReturned:
			return changes.Post(p.Merchant, p.ID, ledger.ReleasePayout(p.Amount, p.Fee))
		case payment.PayoutCompleted:
			return changes.Post(p.Merchant, p.ID, ledger.PayPayout(p.Processor, p.Amount, p.Fee))
		default:
			return nil
		}
	})
	return d, p, c
}

// change makes changes of a payout that no operation makes.
func (d *desk) change(p payment.Payout, change func(l *store.Loaded, c *store.Changes) error) {
	d.T.Helper()
	var n store.Needs
	n.Payout(p.Merchant, p.ID)
	n.Balances(p.Merchant)
	d.Must(d.Store.Transact(d.T.Context(), func(tx *store.Tx) error { return tx.Apply(d.T.Context(), &n, change) }))
}

// Each resolution of a payout's case by each state of the payout, confirmed by the second
// person if it takes two.
func TestDecideAboutPayouts(t *testing.T) {
	const (
		unknown, contradiction = store.CasePayoutUnknown, store.CaseContradiction
		processing, failed     = payment.PayoutProcessing, payment.PayoutFailed
		inReview, done         = payment.StepReview, payment.StepDone
		refused                = "refused"
	)
	for _, row := range []struct {
		kind   store.CaseKind
		reason store.CaseReason
		status payment.PayoutStatus
		step   payment.PayoutStep
		how    store.Resolution
		want   string // status, step, outcome of the send, available, owed, held in cents
	}{
		{unknown, store.ReasonNoAnswer, processing, payment.StepUnknown, store.ResolvedPaid, "COMPLETED done paid 400 0 0"},
		{unknown, store.ReasonNoAnswer, processing, payment.StepAccepted, store.ResolvedRelease, "FAILED done failed 1400 0 0"},
		{unknown, store.ReasonNotIdempotent, processing, inReview, store.ResolvedResend, "PROCESSING queued not_found 400 0 1000"},
		{unknown, store.ReasonOtherContents, processing, inReview, store.ResolvedPaid, "COMPLETED done paid 400 0 0"},
		{unknown, store.ReasonNoAnswer, processing, payment.StepQueued, store.ResolvedPaid, refused},
		{unknown, store.ReasonNoAnswer, processing, payment.StepIntent, store.ResolvedRelease, refused},
		{unknown, store.ReasonNoAnswer, payment.PayoutPending, payment.StepQueued, store.ResolvedRelease, refused},
		{unknown, store.ReasonNoAnswer, payment.PayoutCompleted, done, store.ResolvedRelease, refused},
		{unknown, store.ReasonNoAnswer, failed, done, store.ResolvedPaid, refused},
		{contradiction, store.ReasonOtherAmount, processing, inReview, store.ResolvedPaid, "COMPLETED done paid 400 0 0"},
		{contradiction, store.ReasonOtherAmount, processing, inReview, store.ResolvedRelease, "FAILED done failed 1400 0 0"},
		{contradiction, store.ReasonOtherAmount, processing, inReview, store.ResolvedDismiss, refused},
		{contradiction, store.ReasonOtherAmount, payment.PayoutCompleted, done, store.ResolvedDismiss, "COMPLETED done unknown 400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, failed, done, store.ResolvedPaid, "FAILED paid_late unknown 400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, payment.PayoutCanceled, done, store.ResolvedWriteOff, "CANCELED paid_late unknown 1400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, failed, done, store.ResolvedDismiss, "FAILED done unknown 1400 0 0"},
		{contradiction, store.ReasonPaidAfterRelease, failed, payment.StepPaidLate, store.ResolvedPaid, refused},
		{contradiction, store.ReasonFailedAfterPaid, payment.PayoutCompleted, done, store.ResolvedRelease, "RETURNED done unknown 1400 0 0"},
		{contradiction, store.ReasonFailedAfterPaid, payment.PayoutReturned, done, store.ResolvedRelease, refused},
	} {
		t.Run(fmt.Sprintf("%s %s %s %s", row.reason, row.status, row.step, row.how), func(t *testing.T) {
			d, p, c := given(t, row.kind, row.reason, row.status, row.step)
			changes := d.Changes(func() {
				for _, by := range []actor.Actor{"operator:ana", "operator:bia"} {
					r := request(&c, row.how)
					r.Actor = by
					_, err := d.reviews.Resolve(t.Context(), r)
					if (err != nil) != (row.want == refused) {
						t.Fatalf("%s: %v, want %s", by, err, row.want)
					}
					var open store.Case
					if open, err = d.Store.FindCase(t.Context(), c.ID); err != nil || !open.ClosedAt.IsZero() {
						break
					}
				}
			})
			if row.want != refused {
				d.wantAfter(p, c, row.how, row.want)
			} else if changes != "" {
				t.Errorf("the refused decision changed %s", changes)
			}
		})
	}
}

func (d *desk) wantAfter(p payment.Payout, c store.Case, how store.Resolution, want string) {
	d.T.Helper()
	p, b := d.ReadPayout(p), d.Balances()
	sends, err := d.Store.Sends(d.T.Context(), p.Merchant, p.ID)
	d.Must(err)
	if got := fmt.Sprint(p.Status, " ", p.Step, " ", sends[0].Outcome, " ", int64(b[ledger.Available]), " ", int64(b[ledger.Owed]), " ", int64(b[ledger.Held])); got != want {
		d.T.Errorf("it is %s, want %s", got, want)
	}
	closed, err := d.Store.FindCase(d.T.Context(), c.ID)
	d.Must(err)
	if closed.Resolution != how {
		d.T.Errorf("the case is closed with %q", closed.Resolution)
	}
	if n := d.Count("decisions", fmt.Sprintf("resolution = '%s' AND action IN ('resolved', 'confirmed')", how)); n != 1 {
		d.T.Errorf("%d decisions close it", n)
	}
}

// A send whose last byte may still be leaving delays the decision.
func TestDecideWaitsForTheDeadline(t *testing.T) {
	d, p, c := given(t, store.CasePayoutUnknown, store.ReasonNoAnswer, payment.PayoutProcessing, payment.StepUnknown)
	for _, row := range []struct {
		deadline time.Duration
		decided  bool
	}{{time.Second, false}, {2 * time.Minute, false}, {0, true}} { // a clock may be ahead by a minute
		d.Execute(fmt.Sprintf("UPDATE payout_sends SET deadline = %d WHERE payout_id = x'%x'", d.Clock.Now().Add(row.deadline).UnixMicro(), p.ID[:]))
		if _, err := d.reviews.Resolve(t.Context(), request(&c, store.ResolvedRelease)); (err == nil) != row.decided {
			t.Errorf("%v before the deadline: %v", row.deadline, err)
		}
	}
}
