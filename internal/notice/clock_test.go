package notice_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
)

// A notice that was received, or delayed, by a clock some hours ahead is applied once the
// clock is right.
func TestNoticeOfAClockThatWasAhead(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		defer g.Clock.SetOffset(0)
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Bank.Down = true
		g.Notify("before", "charge "+p.ExternalID)
		g.Clock.SetOffset(3 * time.Hour)
		g.Heartbeat()
		g.Apply() // delayed
		g.Bank.Down = false
		g.Clock.SetOffset(0)
		g.Heartbeat()
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
	})
}
