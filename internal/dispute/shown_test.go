package dispute_test

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

const (
	live = processor.DisputeOpen
	lose = processor.DisputeLost
	win  = processor.DisputeWon
)

// infraction is a dispute of 60.00 that led to a return, or to none yet.
func infraction(state processor.DisputeState, returnID string, lost money.Cents) processor.Dispute {
	return processor.Dispute{ID: "infraction", PaymentID: "A", Amount: 60_00, State: state, ReturnID: returnID, Lost: lost}
}

// returned is a return that the processor shows without the dispute that led to it.
func returned(id string, state processor.DisputeState, amount money.Cents) processor.Dispute {
	return processor.Dispute{ID: id, PaymentID: "A", Amount: amount, State: state, ReturnID: id}
}

// Money that the payer's bank took leaves the merchant once, and completely, even if the processor
// no longer shows the disputes that led to it, as without a permission, or shows a return of a
// dispute that was decided.
func TestReturnsLeaveOnce(t *testing.T) {
	type reports [][]processor.Dispute
	cases := map[string]struct {
		reports reports
		gone    money.Cents
	}{
		"a dispute that was lost in part is not shown any more": {
			reports{{infraction(lose, "r", 30_00)}, {returned("r", lose, 30_00)}}, 30_00,
		},
		"an open dispute is not shown any more, and its money is returned": {
			reports{{infraction(live, "", 0)}, {returned("r", lose, 30_00)}}, 30_00,
		},
		"the same, and it is shown again": {
			reports{{infraction(live, "", 0)}, {returned("r", lose, 30_00)}, {infraction(lose, "r", 30_00)}}, 30_00,
		},
		"the same, and there was another return": {
			reports{{infraction(live, "", 0)}, {returned("r", live, 30_00)}, {returned("r", lose, 30_00), returned("s", lose, 20_00)}, {infraction(lose, "r", 30_00), returned("s", lose, 20_00)}}, 50_00,
		},
		"two returns, listed the other way around": {
			reports{{infraction(lose, "r", 20_00)}, {infraction(lose, "s", 20_00), returned("r", lose, 20_00)}}, 40_00,
		},
		"two returns that were booked, listed the other way around": {
			reports{{infraction(lose, "r", 20_00), returned("s", lose, 30_00)}, {infraction(lose, "s", 30_00), returned("r", lose, 20_00)}}, 50_00,
		},
		"a return of a dispute that was won": {
			reports{{infraction(live, "", 0)}, {infraction(win, "", 0)}, {infraction(lose, "r", 60_00)}}, 60_00,
		},
		"more than was disputed": {
			reports{{infraction(live, "", 0)}, {infraction(lose, "r", 80_00)}}, 80_00,
		},
		"more than was disputed, at once": {
			reports{{infraction(lose, "r", 80_00)}}, 80_00,
		},
		"more than was reported before": {
			reports{{infraction(lose, "r", 30_00)}, {infraction(lose, "r", 50_00)}}, 50_00,
		},
		"the return was found first, and the dispute was open": {
			reports{{infraction(live, "", 0), returned("r", lose, 60_00)}, {infraction(lose, "r", 60_00)}}, 60_00,
		},
	}
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		left := coretest.Opening
		for name, c := range cases {
			p := g.Payin(g.Merchant, name, "")
			g.Bank.Receive(p.ExternalID, "A"+p.ExternalID, 100_00)
			g.ReadFeeds()
			for _, list := range c.reports {
				g.Bank.Charges[p.ExternalID].Disputes = nil
				for _, d := range list { // ids are unique at the processor
					d.ID, d.PaymentID = d.ID+p.ExternalID, d.PaymentID+p.ExternalID
					d.ReturnID = strings.TrimPrefix(d.ReturnID+p.ExternalID, p.ExternalID)
					g.Bank.Disputes(p.ExternalID, d)
				}
				for range 14 { // until what is not confirmed is given up
					g.ReadFeeds()
					g.Apply()
					g.Jump(30 * time.Minute)
				}
			}
			if got := g.ReadPayin(p); got.DisputedAmount != c.gone || got.Status != payment.PayinChargeback {
				t.Errorf("%s: %s, disputed %d, want %d", name, got.Status, got.DisputedAmount, c.gone)
			}
			left += 100_00 - c.gone
			g.WantBalances(left, 0)
			g.WantCases()
		}
		g.WantProven()
	})
}

// A merchant gave a dispute up, the processor rejected it nevertheless, and then money was returned:
// the list alone shows that.
func TestReturnOfADisputeThatWasReversed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "A", 100_00)
		for _, d := range []processor.Dispute{infraction(lose, "", 0), infraction(processor.DisputeReversed, "", 0), infraction(lose, "r", 60_00)} {
			g.Bank.Disputes(p.ExternalID, d)
			g.ReadFeeds()
			g.Apply()
			g.Jump(time.Hour)
		}
		g.WantBalances(coretest.Opening+40_00, 0)
		g.WantPayin(p, payment.PayinChargeback, 100_00, 1)
		g.WantCases()
		g.WantProven()
	})
}
