package outgoing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A copy of the disk, without a marker, shows a payout that was not sent. If a repeat pays
// twice it is looked up before each send, so a transfer of the copy's lost future is found.
func TestLookUpBeforeEachSend(t *testing.T) {
	for name, answer := range map[string]processor.TransferAnswer{"not sent": notSent, "later": later} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
				g.Bank.AnswerTransfer = always(answer)
				p := g.Payout("r", 10_00)
				g.Send()
				g.LookUp()
				g.Send()
				g.WantBank(1, 0)
				g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
				if g.Bank.Queries != 1 {
					t.Fatalf("%d look-ups before the first send", g.Bank.Queries)
				}
				// The copy was made here; after it the payout was paid.
				g.Bank.AnswerTransfer = nil
				g.Bank.Pay(g.Bank.Calls[0], processor.TransferPaid)
				g.Pass(20 * time.Second)
				g.Send()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
				g.LookUp()
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantBank(1, 1)
				g.WantBalances(coretest.Opening-10_00, 0)
				g.WantProven()
			})
		})
	}
}

// A payout that is not found is sent again at once, however often the processor does not take
// it, and its case stays open until it does.
func TestNotFoundBeforeEachSend(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.Repeat, g.Bank.Profiled.Transfer.QuietPeriod = processor.RepeatUnsafe, time.Hour
		g.Bank.AnswerTransfer = always(later)
		p := g.Payout("r", 10_00)
		for n := range 12 {
			g.Send()
			g.LookUp()
			g.Send()
			g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
			g.WantBank(n+1, 0)
			if n >= 7 {
				g.WantCases(store.CasePayoutWaiting)
			}
			g.Jump(g.ReadPayout(p).NextAt.Sub(g.Clock.Now()))
		}
		g.Bank.AnswerTransfer = nil
		g.Send()
		g.LookUp()
		g.Send()
		g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
		g.WantCases()
		g.WantBank(13, 1)
	})
}

// From a processor with lagging lists, "not found" counts only twice, some minutes apart: a
// transfer that the second look-up finds is not sent again.
func TestNotFoundIsConfirmed(t *testing.T) {
	for name, found := range map[string]bool{"the second look-up finds it": true, "nor does the second": false} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				e := &g.Bank.Profiled.Transfer
				e.QuietPeriod, e.Confirm = time.Minute, 5*time.Minute
				g.Bank.AnswerTransfer = always(processor.TransferAnswer{Cause: errors.New("the connection broke")})
				p := g.Payout("r", 10_00)
				g.Send()
				g.Jump(2 * time.Minute)
				g.LookUp()
				first := g.Clock.Now()
				g.WantPayout(p, payment.PayoutProcessing, payment.StepUnknown)
				if next := g.ReadPayout(p).NextAt; next.Before(first.Add(5 * time.Minute)) {
					t.Errorf("looked up again after %v", next.Sub(first))
				}
				g.Send()
				g.WantBank(1, 0)
				g.Bank.AnswerTransfer = nil
				if found {
					g.Bank.Pay(g.Bank.Calls[0], processor.TransferPaid)
				}
				g.Jump(5 * time.Minute)
				g.LookUp()
				if found {
					g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
					g.WantBank(1, 1)
					return
				}
				g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued)
				g.Send()
				g.WantPayout(p, payment.PayoutCompleted, payment.StepDone)
				g.WantBank(2, 1)
				g.WantProven()
			})
		})
	}
}

// The case about a payout of unknown outcome opens later if the look-up that should open it
// says "not found" in the quiet period; it opens once.
func TestSilenceAfterTheQuietPeriodOpensACase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Profiled.Transfer.QuietPeriod = 30 * 24 * time.Hour
		g.Bank.AnswerTransfer = coretest.Unknown
		p := g.Payout("r", 10_00)
		g.Send()
		for g.ReadPayout(p).Lookups < 9 {
			g.Jump(max(0, g.ReadPayout(p).NextAt.Sub(g.Clock.Now())))
			g.LookUp()
		}
		g.WantCases()
		g.Bank.AnswerQuery = noAnswer
		var first store.Case
		for range 3 {
			g.Jump(g.ReadPayout(p).NextAt.Sub(g.Clock.Now()))
			g.LookUp()
			g.WantReason(store.CasePayoutUnknown, store.ReasonNoAnswer)
			list, err := g.Store.OpenCases(t.Context(), 10)
			g.Must(err)
			if first.ID.IsZero() {
				first = list[0]
			}
			if len(list) != 1 || list[0].ID != first.ID {
				t.Errorf("open cases %+v, want the first one", list)
			}
		}
	})
}

// An open breaker lets one payout through at a time. All of a queue are sent, although each is
// looked up first and a look-up soon is too old.
func TestQueueBehindABreaker(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		const queued = 12
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe
		g.Bank.AnswerTransfer = always(notSent)
		for i := range queued {
			g.Payout(fmt.Sprint("r", i), 10_00)
		}
		rounds := 0
		round := func() {
			g.Send()
			g.LookUp()
			g.Send()
			g.Pass(11 * time.Second)
			rounds++
		}
		for rounds < queued { // the breaker opens
			round()
		}
		failed := len(g.Bank.Calls)
		g.Bank.AnswerTransfer = nil
		for rounds < 6*queued && len(g.Bank.Calls) < failed+queued {
			round()
		}
		g.WantBank(failed+queued, queued)
		g.WantBalances(coretest.Opening-queued*10_00, 0)
	})
}

// A payout without an answer has one case, also once it is not found: the later one replaces the earlier.
func TestNotFoundAfterSilenceReplacesTheCase(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.AnswerTransfer, g.Bank.AnswerQuery = coretest.Unknown, noAnswer
		p := g.Payout("r", 10_00)
		g.Send()
		g.Bank.Profiled.Transfer.Repeat = processor.RepeatUnsafe // after the first send, which needs a look-up else
		for g.ReadPayout(p).Lookups < 9 {
			g.Jump(max(0, g.ReadPayout(p).NextAt.Sub(g.Clock.Now())))
			g.LookUp()
		}
		g.WantReason(store.CasePayoutUnknown, store.ReasonNoAnswer)
		g.Bank.AnswerQuery = nil
		g.Jump(g.ReadPayout(p).NextAt.Sub(g.Clock.Now()))
		g.LookUp()
		g.WantPayout(p, payment.PayoutProcessing, payment.StepReview)
		g.WantReason(store.CasePayoutUnknown, store.ReasonNotIdempotent)
		if list, err := g.Store.OpenCases(t.Context(), 10); err != nil || len(list) != 1 {
			t.Errorf("open cases %+v, %v", list, err)
		}
		g.WantProven()
	})
}
