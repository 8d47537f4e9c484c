package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// The effect of the answer to the first send.
func TestDecideRecordSend(t *testing.T) {
	const processing = payment.PayoutProcessing
	none, paid, underWay, failure := processor.TransferAnswer{}, done(processor.TransferPaid), done(processor.TransferProcessing), done(processor.TransferFailed)
	const s = time.Second
	isAccepted := wanted{processing, payment.StepAccepted, outcomes(store.SendAccepted), held, 5 * s, ""}
	review := wanted{processing, payment.StepReview, outcomes(store.SendIntent), held, 0, ""}
	type row struct {
		name   string
		given  given
		answer processor.TransferAnswer
		want   wanted
	}
	rows := []row{
		{"refused", intent, refused, hasFailed(store.SendRefused)},
		{"not sent", intent, notSent, stays(payment.StepQueued, s, store.SendNotSent)},
		{"no answer", intent, none, stays(payment.StepUnknown, s, store.SendUnknown)},
		{"paid", intent, paid, isPaid(store.SendPaid)},
		{"accepted", intent, underWay, isAccepted},
		{"failed", intent, failure, hasFailed(store.SendFailed)},
		{"another amount", intent, doneOther, review.contradicted("other_amount")},

		{"refused", released, refused, hasFailed(store.SendRefused)},
		{"not sent: proof, as it is the last send", released, notSent, stays(payment.StepQueued, s, store.SendNotSent)},
		{"no answer: another process looks it up", released, none, stays(payment.StepUnknown, 1, store.SendUnknown)},
		{"paid", released, paid, isPaid(store.SendPaid)},
		{"accepted", released, underWay, isAccepted},
		{"failed", released, failure, hasFailed(store.SendFailed)},

		{"refused: says nothing about the second send", sentAgain, refused, stays(payment.StepIntent, 0, store.SendNotSent, store.SendIntent)},
		{"not sent: says nothing about the second send", sentAgain, notSent, stays(payment.StepIntent, 0, store.SendNotSent, store.SendIntent)},
		{"no answer: says nothing about the second send", sentAgain, none, stays(payment.StepIntent, 0, store.SendNotSent, store.SendIntent)},
		{"paid", sentAgain, paid, isPaid(store.SendNotSent, store.SendPaid)},

		{"refused", unknown, refused, hasFailed(store.SendRefused)},
		{"not sent", unknown, notSent, stays(payment.StepQueued, s, store.SendNotSent)},
		{"not sent", accepted, notSent, isAccepted},
		{"refused: the processor has reported that it has the transfer", accepted, refused, isAccepted},
		{"paid", unknown, paid, isPaid(store.SendPaid)},
		{"paid", accepted, paid, isPaid(store.SendPaid)},
		{"no answer", accepted, none, isAccepted},

		{"paid: known", completed, paid, isPaid(store.SendPaid)},
		{"accepted: known", completed, underWay, isPaid(store.SendPaid)},
		{"not sent: known", completed, notSent, isPaid(store.SendPaid)},
		{"refused after it was paid", completed, refused, isPaid(store.SendPaid).contradicted("failed_after_paid")},
		{"failed after it was paid", completed, failure, isPaid(store.SendPaid).contradicted("failed_after_paid")},
		{"another amount", completed, doneOther, isPaid(store.SendPaid).contradicted("other_amount")},

		{"refused: known", failed, refused, hasFailed(store.SendRefused)},
		{"failed: known", failed, failure, hasFailed(store.SendRefused)},
		{"accepted after it was refused", failed, underWay, hasFailed(store.SendRefused)},
		{"paid after it was refused", failed, paid, hasFailed(store.SendRefused).contradicted("paid_after_release")},

		{"paid", inReview, paid, isPaid(store.SendPaid).contradicted("other_amount")},
		{"refused", inReview, refused, hasFailed(store.SendRefused).contradicted("other_amount")},
		{"no answer", inReview, none, review.contradicted("other_amount")},
	}
	eachRow(t, rows, func(r row) string { return string(r.given) + ", " + r.name }, func(g *coretest.Gateway, r row) {
		before := balancesOf(g)
		p, send := give(g, r.given)
		op := g.Outgoing.NewRecordSendOp(send, r.answer)
		g.Must(decide(g, op, p, func() any {
			after, contradiction := op.Result()
			return []any{after, contradiction}
		}, func() { wantState(g, p, before, r.want) }))
		if after, _ := op.Result(); after.Step != r.want.step {
			g.T.Errorf("the operation leaves it at step %s, want %s", after.Step, r.want.step)
		}
	})
}

// An answer about a payout that does not exist is refused.
func TestDecideRecordSendOfNoPayout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, send := give(g, intent)
		send.Payout.ID[15]++
		op := g.Outgoing.NewRecordSendOp(send, refused)
		if err := decide(g, op, p, func() any { return nil }, func() {}); !problem.Is(err, problem.NotFound) {
			t.Errorf("%v, want not_found", err)
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepIntent)
	})
}

// The waits before a payout that was not sent is sent again grow.
func TestDecideRecordSendSchedule(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p, send := give(g, intent)
		for _, wait := range []time.Duration{1, 2, 5, 15, 60, 300, 300} {
			record(g, send, notSent)
			got := g.ReadPayout(p).NextAt.Sub(g.Clock.Now())
			if wait *= time.Second; got < wait*9/10 || got > wait*11/10 {
				g.T.Errorf("sent again after %v, want about %v", got, wait)
			}
			g.Jump(got)
			send = claimOf(g, p)
		}
		if first := g.ReadPayout(p).SentAt; !first.Equal(coretest.Start) {
			g.T.Errorf("first sent at %v, want %v", first, coretest.Start)
		}
	})
}
