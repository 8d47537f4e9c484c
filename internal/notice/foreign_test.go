package notice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/review"
	"github.com/porteira/porteira/internal/store"
)

// A listed transfer under the external id of a pay-in takes no money from the merchant and
// begins no history: it opens one case, however often it is listed.
func TestListedTransferWithTheIDOfAPayin(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.ReadFeeds()
		p := g.Payin(g.Merchant, "in", "")
		g.Bank.Mu.Lock()
		g.Bank.Pay(processor.TransferRequest{ExternalID: p.ExternalID, Amount: 100_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		wantForeign(g)
		if g.Node.Frozen(coretest.BankName) {
			t.Error("payouts wait")
		}
		g.WantProven()
	})
}

// A listed transfer of a merchant that the database lacks, because a backup was restored, is
// nobody's payout: it opens one case. One of another installation opens none.
func TestListedTransferOfALostMerchant(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		lost := store.Merchant{ID: payment.ID{7}, Number: 77}
		foreign := payment.ExternalIDs{Installation: payment.ID{9}}
		for _, id := range []string{
			g.Store.ExternalID(&lost, payment.OperationPayout, "lost"), foreign.New(lost.Number, lost.ID, payment.OperationPayout, "foreign"),
		} {
			g.Bank.Mu.Lock()
			g.Bank.Pay(processor.TransferRequest{ExternalID: id, Amount: 100_00}, processor.TransferPaid)
			g.Bank.Mu.Unlock()
		}
		wantForeign(g)
		g.WantProven()
	})
}

// A gateway that knew the merchant before its PostgreSQL went back books nothing to it either.
func TestListedTransferOfAMerchantThatWasLostMeanwhile(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		lost := g.For(t).Merchant
		id := g.Store.ExternalID(&lost, payment.OperationPayout, "lost")
		if found, err := g.Store.MerchantOf(t.Context(), id); err != nil || found != lost.ID {
			t.Fatalf("merchant %s, %v", found, err)
		}
		for _, table := range []string{"balances", "postings", "routes"} {
			g.Execute(fmt.Sprintf("DELETE FROM %s WHERE merchant_id IN (SELECT id FROM merchants WHERE number = %d)", table, lost.Number))
		}
		g.Execute(fmt.Sprintf("DELETE FROM merchants WHERE number = %d", lost.Number))
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		g.Bank.Mu.Lock()
		g.Bank.Pay(processor.TransferRequest{ExternalID: id, Amount: 100_00}, processor.TransferPaid)
		g.Bank.Mu.Unlock()
		wantForeign(g)
	})
}

// A listed payment that names no order at all, as one to the account's key, is the platform's:
// it has one case, however often it is listed.
func TestListedPaymentWithoutAnOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Receive("", "nobody's", 5_00)
		readTwice(g)
		g.WantBalances(coretest.Opening, 0)
		g.WantCases(store.CaseUnmatchedReceipt)
		g.WantProven()
	})
}

// wantForeign reads the lists twice, and wants one case about a transfer, and no money moved.
func wantForeign(g *coretest.Gateway) {
	g.T.Helper()
	readTwice(g)
	g.WantBalances(coretest.Opening, 0)
	g.WantCases(store.CaseNotice)
	g.WantReason(store.CaseNotice, store.ReasonUnknownTransfer)
	cases, err := g.Store.OpenCases(g.T.Context(), 2)
	g.Must(err)
	for _, o := range review.Possible(&cases[0]) {
		if o.How == store.ResolvedRetry {
			g.T.Error("a case without a notice offers to apply it again")
		}
	}
}

// readTwice reads the lists twice, from their beginning.
func readTwice(g *coretest.Gateway) {
	g.T.Helper()
	for range 2 {
		g.Pass(time.Minute)
		g.ReadFeeds()
		g.Execute("UPDATE feeds SET cursor = ''")
	}
}
