package outgoing_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A list that was read by a clock that ran ahead is read again once the clock is right: its cursor
// may be later than transfers that were made since.
func TestListIsReadAgainAfterAClockRanAhead(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.ReadFeeds()
		p := g.Payout("sent while the clock ran ahead", 900_00)
		pay(g, p, processor.TransferPaid)
		_, err := g.Payouts.Cancel(g.T.Context(), g.Merchant.ID, p.ID)
		g.Must(err)
		ahead := g.Clock.Now().Add(26 * time.Hour).UnixMicro()
		g.Execute(fmt.Sprintf("UPDATE feeds SET cursor = '1', through = %d WHERE feed = 'transfers'", ahead))
		for range 3 {
			g.Pass(time.Minute)
			g.ReadFeeds()
		}
		g.WantReason(store.CaseContradiction, store.ReasonPaidAfterRelease)
		g.WantProven()
	})
}

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
