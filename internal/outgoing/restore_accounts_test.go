package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Rule 12: a payout was canceled in the lost past, and its money left through another account. It is
// not sent until the lists of that account have been read too, and then only if the merchant owes
// nothing.
func TestRule12WaitsForEveryAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := coretest.NewBank()
		other.Now = g.Clock.Now
		g.Processor("other", other)
		p := g.Payout("canceled in the lost past", 950_00)
		other.Mu.Lock()
		other.Pay(processor.TransferRequest{
			ExternalID: g.Store.ExternalID(&g.Merchant, payment.OperationPayout, "lost"), Amount: 900_00,
		}, processor.TransferPaid)
		other.Down = true
		other.Mu.Unlock()
		g.Execute(rewind)
		g.Heartbeat()
		g.Clear()
		before := g.ReadPayout(p)
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(10 * time.Second)
		}
		if _, claimed, err := g.Outgoing.Claim(t.Context(), store.Due{Merchant: p.Merchant, Processor: p.Processor}, 10); claimed != 0 || err != nil {
			t.Errorf("%d claimed, %v", claimed, err)
		}
		if after := g.ReadPayout(p); after.UpdatedAt != before.UpdatedAt {
			t.Error("the payout is written while it waits")
		}
		g.WantPayout(p, payment.PayoutPending, payment.StepQueued)
		g.WantBank(0, 0)

		other.Mu.Lock()
		other.Down = false
		other.Mu.Unlock()
		g.ReadFeeds()
		g.Heartbeat()
		if g.Node.Frozen("other") {
			t.Fatal("the other account still waits")
		}
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(10 * time.Second)
		}
		g.WantPayout(p, payment.PayoutProcessing, payment.StepQueued) // looked up; it waits for the debt
		g.WantBank(0, 0)
		wantOwed(g, 850_00)
		g.WantProven()
	})
}

// refundBesideUnreadAccount returns a refund from before a restore at a compared account, beside
// another account that does not answer.
func refundBesideUnreadAccount(g *coretest.Gateway) (payment.Refund, *coretest.Bank) {
	g.T.Helper()
	other := coretest.NewBank()
	other.Now, other.Down = g.Clock.Now, true
	g.Processor("other", other)
	r := g.Refund(g.PaidPayin("p", 100_00), "r", 60_00)
	g.Execute(rewind)
	g.Heartbeat()
	g.Clear()
	return r, other
}

// Rule 12: a refund was given up in the lost past, and its money left through another account. It is
// looked up, and not sent until the lists of that account have been read too.
func TestRefundsWaitForEveryAccount(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r, other := refundBesideUnreadAccount(g)
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(10 * time.Second)
		}
		if g.Node.Frozen(coretest.BankName) || !g.Node.Frozen("other") {
			t.Fatal("want the other account alone to wait")
		}
		wantSteps(g, r, payment.StepQueued)
		if n := len(g.Bank.Refunds.Made); n != 0 {
			t.Fatalf("the bank made %d refunds", n)
		}

		other.Mu.Lock()
		other.Down = false
		other.Mu.Unlock()
		g.ReadFeeds()
		g.Heartbeat()
		for range 20 {
			g.Send()
			g.LookUp()
			g.Pass(10 * time.Second)
		}
		g.WantRefund(r, payment.RefundCompleted, 60_00, payment.PayinPartiallyRefunded, 60_00)
		wantOneRefund(g)
	})
}

// withLaterAccount are accounts of which one was added after each restore.
type withLaterAccount struct {
	processor.Registry

	later string
}

func (a withLaterAccount) AddedUntil(t time.Time, merchant payment.ID) []string {
	var list []string
	for _, id := range a.Registry.AddedUntil(t, merchant) {
		if id != a.later {
			list = append(list, id)
		}
	}
	return list
}

// No payout waits for an account that was added after the restore.
func TestPayoutsDoNotWaitForALaterAccount(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		later := coretest.NewBank()
		later.Down = true
		g.Restart(func(o *app.CoreOptions) {
			registry := o.Processors.(processor.Registry)
			o.Processors = withLaterAccount{processor.Registry{coretest.BankName: registry[coretest.BankName], "later": later}, "later"}
		})
		before := g.Payout("before the restore", 10_00)
		g.Execute(rewind)
		g.Heartbeat()
		g.Clear()
		after := g.Payout("after the restore", 10_00)
		g.Send()
		g.LookUp()
		g.Send()
		g.WantPayout(before, payment.PayoutCompleted, payment.StepDone)
		g.WantPayout(after, payment.PayoutCompleted, payment.StepDone)
		if !g.Node.Frozen("later") {
			g.T.Error("the later account does not wait")
		}
	})
}
