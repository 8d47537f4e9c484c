package jobs_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// paidOut is a payout that its processor has paid.
func (g *gateway) paidOut(reference string, amount int64) payment.Payout {
	g.t.Helper()
	p := g.payout(reference, amount)
	g.submit()
	g.want(p, payment.PayoutCompleted, payment.StepDone)
	return p
}

// What comes back of a payout is found in the bank's list when no notice
// tells of it, a part first and then the rest, and booked once.
func TestLostNoticeOfReturn(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.paidOut("r", 10_00)
		g.bank.sendBack(p.ExternalID, 4_00)
		g.collect()
		g.wantBalances(opening-6_00, 0)
		g.want(p, payment.PayoutCompleted, payment.StepDone)
		g.bank.sendBack(p.ExternalID, 10_00)
		g.notify("n", p.ExternalID) // this one is told of as well
		g.apply()
		asked := g.bank.questions
		g.collect()
		if g.bank.questions != asked {
			t.Error("what is known is asked about")
		}
		g.want(p, payment.PayoutReturned, payment.StepDone)
		g.wantBalances(opening, 0)
		g.wantExceptions()
	})
}

// An answer that is older than the list changes nothing, and is not the last.
func TestStaleAnswerToReturn(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.paidOut("r", 10_00)
		before := g.bank.look(p.ExternalID)
		g.bank.sendBack(p.ExternalID, 10_00)
		g.bank.query = func(*bank, string) processor.TransferReport { return before }
		for range 3 {
			if _, err := g.jobs.CollectPayments(t.Context()); err == nil {
				t.Fatal("a return that is not confirmed is passed over")
			}
		}
		g.wantBalances(opening-10_00, 0)
		g.bank.query = nil
		g.collect()
		g.want(p, payment.PayoutReturned, payment.StepDone)
		g.wantBalances(opening, 0)
		g.wantExceptions()
	})
}

// A return that the bank lists and never confirms is for a person, and holds up
// no other.
func TestReturnNeverConfirmed(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		odd, other, even := g.paidOut("odd", 10_00), g.paidOut("other", 10_00), g.paidOut("even", 5_00)
		g.bank.sendBack(odd.ExternalID, 10_00) // on one page with the next
		g.bank.sendBack(other.ExternalID, 10_00)
		g.bank.sendBack(even.ExternalID, 5_00)
		g.bank.transfers[odd.ExternalID].back, g.bank.transfers[other.ExternalID].back = 0, 0
		for range 245 {
			_, _ = g.jobs.CollectPayments(t.Context())
			g.pass(5 * time.Second)
		}
		g.want(odd, payment.PayoutCompleted, payment.StepDone)
		g.want(even, payment.PayoutReturned, payment.StepDone)
		g.wantExceptions(store.ExceptionContradiction, store.ExceptionContradiction)
	})
}

// A dispute of an order that cannot be disputed now is a person's, and asked
// about once.
func TestListedDisputeForAPerson(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.bank.receive(p.ExternalID, "pay-2", 100_00)
		g.collect()
		g.bank.contest(p.ExternalID, "d-1", 100_00, processor.DisputeOpen)
		g.bank.contest(p.ExternalID, "d-2", 100_00, processor.DisputeOpen)
		g.bank.contest(p.ExternalID, "d-2", 100_00, processor.DisputeWon)
		asked := g.bank.questions
		g.collect()
		if n := g.bank.questions - asked; n > 2 {
			t.Errorf("asked %d times about two disputes", n)
		}
		g.wantPayin(p, payment.PayinDisputed, 100_00, 2)
		g.wantExceptions(store.ExceptionOverpaid, store.ExceptionDispute)
	})
}

// A dispute that no notice tells of is found, and so is its end.
func TestLostNoticeOfDispute(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.collect()
		for _, move := range []struct {
			state processor.DisputeState
			want  payment.PayinStatus
		}{
			{processor.DisputeOpen, payment.PayinDisputed},
			{processor.DisputeLost, payment.PayinChargeback},
			{processor.DisputeReversed, payment.PayinPaid},
		} {
			g.bank.contest(p.ExternalID, "d-1", 100_00, move.state)
			g.collect()
			g.wantPayin(p, move.want, 100_00, 1)
		}
		g.wantBalances(opening+100_00, 0)
		asked := g.bank.questions
		g.must(g.flow.SaveChanges(t.Context(), bankName, "")) // the crash before the cursor was saved
		g.collect()
		if g.bank.questions != asked {
			t.Error("what is known is asked about")
		}
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
	})
}
