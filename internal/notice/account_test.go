package notice_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
)

// A process leaves the notices of a processor that it does not have to the processes that
// have it, as during a rolling upgrade.
func TestNoticeWaitsForAProcessThatHasItsProcessor(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		added := coretest.NewBank()
		g.Processor("added", added)
		m := g.Merchant
		m.Routes = payment.AllRoutes("added")
		p, _, err := g.Payins.Create(t.Context(), m, coretest.PayinRequest("order", ""))
		g.Must(err)
		added.Receive(p.ExternalID, "pay-1", 100_00)
		added.Down = true
		g.Must(g.Notices.Record(t.Context(), "added", "n-1", "", []byte("charge "+p.ExternalID)))
		g.Apply()
		g.NoProcessor("added")
		g.Jump(time.Hour)
		g.Apply()
		g.WantCases()
		added.Down = false
		g.Processor("added", added)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
	})
}

// A claim takes an equal share of each processor's notices: a backlog of one delays no
// other.
func TestBacklogOfNoticesDelaysNoOtherProcessor(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		busy := coretest.NewBank()
		busy.Down, g.Bank.Down = true, true
		g.Processor("busy", busy)
		for i := range 20 {
			g.Must(g.Notices.Record(t.Context(), "busy", fmt.Sprint(i), "", []byte("charge x")))
		}
		g.Apply()
		g.Notify("late", "charge x")
		g.Apply()
		g.Jump(time.Hour) // all are due, those of the other processor first
		op, claimed := notice.NewClaim(g.Node.ID(), 4, coretest.BankName, "busy")
		g.Must(g.Writer.Do(t.Context(), op))
		count := map[string]int{}
		for _, n := range claimed() {
			count[n.Processor]++
		}
		if count[coretest.BankName] != 1 || count["busy"] != 2 {
			t.Errorf("claimed %v", count)
		}
	})
}

// Notices of a processor that hangs take half of the slots, and delay none of another: it is
// claimed, queried and applied meanwhile.
func TestHangingProcessorDelaysNoNoticeOfAnother(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		slow := coretest.NewHanging(t)
		g.Processor("slow", slow)
		g.Concurrent()
		t.Cleanup(slow.Release) // before the calls are awaited
		apply := func() {
			t.Helper()
			for did := 1; did > 0; {
				var err error
				did, err = g.Notices.Apply(t.Context())
				g.Must(err)
			}
		}
		reach := func(what string, reached func() bool) {
			t.Helper()
			for !reached() {
				if t.Context().Err() != nil {
					t.Fatal("not reached: " + what)
				}
				runtime.Gosched()
			}
		}
		for i := range 300 {
			g.Must(g.Notices.Record(t.Context(), "slow", fmt.Sprint(i), "", []byte("charge x")))
		}
		apply()
		reach("all queries of the hanging processor", func() bool { return slow.Waiting() == 64 })
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Notify("healthy", "charge "+p.ExternalID)
		apply()
		reach("the other's notice is applied", func() bool {
			now, err := g.Store.Payin(t.Context(), p.Merchant, p.ID)
			g.Must(err)
			return now.Status == payment.PayinPaid
		})
		if slow.Waiting() != 64 {
			t.Errorf("%d queries hang", slow.Waiting())
		}
	})
}
