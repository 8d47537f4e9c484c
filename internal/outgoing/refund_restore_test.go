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

// lostRefund is a pay-in of which a payment and the refund "r" of it are only in the bank's
// records: the database is an older copy. The bank knows an id for each payment apart, so the
// refund could be made of the other payment under the same id.
func lostRefund(g *coretest.Gateway, state processor.TransferState) payment.Payin {
	g.Bank.Refunds.PerPayment = true
	p := g.PaidPayin("p", 100_00)
	g.Bank.Receive(p.ExternalID, "earlier", 100_00)
	g.Bank.Mu.Lock()
	defer g.Bank.Mu.Unlock()
	g.Bank.Incoming[len(g.Bank.Incoming)-1].PaidAt = g.Clock.Now().Add(-time.Hour)
	g.Bank.GiveBack(processor.RefundRequest{
		ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationRefund, "r"), PaymentID: "earlier", Amount: 100_00,
	}, state)
	return p
}

// requested requests the lost refund again.
func requested(g *coretest.Gateway, p payment.Payin) (payment.Refund, error) {
	r, _, err := g.Refunds.Create(g.T.Context(), g.Merchant, p.ID, coretest.RefundRequest("r", 100_00))
	return r, err
}

// wantOneRefund checks that the bank has given the money back once.
func wantOneRefund(g *coretest.Gateway) {
	g.T.Helper()
	if n := len(g.Bank.Refunds.Made); n != 1 {
		g.T.Errorf("the bank made %d refunds, want 1", n)
	}
	g.WantProven()
}

// After a restore refunds are neither accepted nor sent until the lists of payments, of refunds
// and of transfers are read, whichever comes last: a refund that the backup lacks is found before
// it is requested again.
func TestRefundsWaitAfterARestore(t *testing.T) {
	for _, late := range []processor.Feed{processor.FeedPayments, processor.FeedRefunds, processor.FeedTransfers} {
		t.Run(string(late), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				other := g.PaidPayin("other", 100_00)
				queued := g.Refund(other, "queued", 60_00)
				p := lostRefund(g, processor.TransferPaid)
				g.Bank.FeedsDown = map[processor.Feed]bool{late: true}
				g.Execute("UPDATE installation SET epoch = epoch - 3")
				g.Heartbeat()
				for range 3 {
					g.Jump(10 * time.Minute)
					g.ReadFeeds()
					g.Send()
					g.LookUp()
					_, _, err := g.Refunds.Create(t.Context(), g.Merchant, other.ID, coretest.RefundRequest("new", 40_00))
					if !problem.Is(err, problem.Unavailable) {
						t.Fatalf("a refund is answered %v", err)
					}
				}
				wantSteps(g, queued, payment.StepQueued)
				wantOneRefund(g)
				g.Bank.FeedsDown = nil
				g.Jump(10 * time.Minute)
				g.ReadFeeds()
				g.Heartbeat()
				r, err := requested(g, p)
				g.Must(err)
				workForHours(g)
				g.WantRefund(r, payment.RefundCompleted, 100_00, payment.PayinPaid, 0) // it gave back what exceeds the order here
				g.WantRefund(queued, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
				if n := len(g.Bank.Refunds.Made); n != 2 {
					t.Errorf("the bank made %d refunds, want the lost one and the other", n)
				}
				g.WantProven()
			})
		})
	}
}

// An account that sends no transfers waits for its refunds only, and nobody needs to act.
func TestRefundsOfAnAccountWithoutTransfers(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Processor(coretest.BankName, receiver{g.Bank})
		p := lostRefund(g, processor.TransferPaid)
		g.Bank.Unlisted = true
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		if _, err := requested(g, p); !problem.Is(err, problem.Unavailable) {
			t.Fatalf("a refund is answered %v", err)
		}
		g.Jump(10 * time.Minute)
		g.ReadFeeds()
		g.Heartbeat()
		r, err := requested(g, p)
		g.Must(err)
		g.WantRefund(r, payment.RefundCompleted, 100_00, payment.PayinPaid, 0)
		wantOneRefund(g)
	})
}

// receiver is a bank without transfers.
type receiver struct {
	*coretest.Bank
}

// Transfer hides the method of [processor.Transferrer].
func (receiver) Transfer() {}

// A refund that a copy lacks may still be in work at the processor, which lists it later, and
// nothing may show that the database is a copy. Before a part is sent the first time it is looked
// up among the refunds of all payments of its pay-in.
func TestLostRefundOfAnotherPayment(t *testing.T) {
	for name, restored := range map[string]bool{"after a restore": true, "in a copy without a mark": false} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				g.Bank.Profiled.Refund.LookUpFirst = true
				g.Bank.Profiled.Refund.Repeat = processor.RepeatRejected
				p := lostRefund(g, processor.TransferProcessing)
				g.ReadFeeds() // the payment that the copy lacks
				if restored {
					g.Execute("UPDATE installation SET epoch = epoch - 3")
					g.Heartbeat()
					g.Jump(10 * time.Minute)
					g.ReadFeeds()
					g.Heartbeat()
				}
				r, err := requested(g, p)
				g.Must(err)
				if part := wantSteps(g, r, payment.StepQueued)[0]; part.PaymentID != "p 1" {
					t.Fatalf("the refund is of payment %q", part.PaymentID)
				}
				workForHours(g)
				wantSteps(g, r, payment.StepReview)
				list, err := g.Store.OpenCases(t.Context(), 5)
				g.Must(err)
				if len(list) != 2 || list[1].Params["cause"] != string(store.ReasonOtherPayment) || list[1].Params["reported"] != "earlier" {
					t.Errorf("cases %+v", list) // beside that about what exceeds the order
				}
				wantOneRefund(g)
			})
		})
	}
}
