package jobs_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

func refused(*bank, processor.TransferRequest) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.NotSent, Cause: errDown}
}

// Once a processor is known to be out of reach, payouts wait as they came:
// PENDING, untouched, and can be taken back. When it is back they go.
func TestUnreachableProcessorLeavesPayoutsPending(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = refused
		var tried, waiting []payment.Payout
		for i := range 3 { // it takes three to know
			tried = append(tried, g.payout(fmt.Sprint("tried ", i), 10_00))
			g.submit()
		}
		for i := range 5 {
			waiting = append(waiting, g.payout(fmt.Sprint("waiting ", i), 10_00))
		}
		g.submit()
		g.wantPaid(3, 0)
		for _, p := range tried {
			g.want(p, payment.PayoutProcessing, payment.StepQueued)
		}
		for _, p := range waiting {
			g.want(p, payment.PayoutPending, payment.StepQueued)
			g.wantSends(p)
		}
		g.wantBalances(opening-80_00, 80_00)

		canceled, err := g.flow.CancelPayout(t.Context(), g.merchant.ID, waiting[4].ID)
		g.must(err)
		if canceled.Status != payment.PayoutCanceled {
			t.Errorf("canceled: %s", canceled.Status)
		}
		g.wantBalances(opening-70_00, 70_00)

		g.bank.transfer = nil
		for range 30 {
			g.pass(time.Second)
			g.submit()
		}
		for _, p := range append(tried, waiting[:4]...) {
			g.want(p, payment.PayoutCompleted, payment.StepDone)
		}
		g.want(canceled, payment.PayoutCanceled, payment.StepDone)
		g.wantBalances(opening-70_00, 0)
		g.wantPaid(3+7, 7)
	})
}

// A processor that stays away is tried less and less, once at a time.
func TestUnreachableProcessorIsTriedLessAndLess(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = refused
		for i := range 20 {
			g.payout(fmt.Sprint("r-", i), 10_00)
			if i < 3 {
				g.submit()
			}
		}
		last := len(g.bank.calls)
		for range 5 * 60 {
			g.pass(time.Second)
			g.submit()
			if now := len(g.bank.calls); now > last+1 {
				t.Fatalf("tried %d times within a second, after %d", now-last, last)
			}
			last = len(g.bank.calls)
		}
		// After 2, 4, 8, 16, 32 and then every 60 s.
		if last < 3+7 || last > 3+10 {
			t.Errorf("tried %d times in five minutes", last)
		}
	})
}

// An answer, whatever it says, shows that the processor can be reached.
func TestAnswersDoNotTripTheBreaker(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		g.bank.transfer = func(*bank, processor.TransferRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused, Evidence: "AC03"}
		}
		for i := range 5 {
			p := g.payout(fmt.Sprint("r-", i), 10_00)
			g.submit()
			g.want(p, payment.PayoutFailed, payment.StepDone)
			g.wantSends(p, store.SendRefused)
		}
		g.wantBalances(opening, 0)
	})
}
