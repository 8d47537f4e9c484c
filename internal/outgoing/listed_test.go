package outgoing_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A payout that the list shows as paid, and that was canceled or failed here, contradicts:
// its money left, and is the merchant's again. A copy of the disk shows no sign of it.
func TestListedTransferOfACanceledPayout(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.ReadFeeds()
		p := g.Payout("sent before the copy was started", 900_00)
		pay(g, p, processor.TransferPaid)
		_, err := g.Payouts.Cancel(t.Context(), g.Merchant.ID, p.ID)
		g.Must(err)
		for range 3 {
			g.Pass(time.Minute)
			g.ReadFeeds()
		}
		g.WantCases(store.CaseContradiction)
		g.WantReason(store.CaseContradiction, store.ReasonPaidAfterRelease)
		wantRequest(g, "next", 10_00, problem.Unavailable)
		g.WantProven()
	})
}
