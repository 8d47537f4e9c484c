package notice_test

import (
	"fmt"
	"runtime"
	"slices"
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

// Notices of processors that hang, however many, delay none of another: it is claimed, queried
// and applied while the clock stands still.
func TestHangingProcessorsDelayNoNoticeOfAnother(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		slow := make([]*coretest.Hanging, 4)
		for n := range slow {
			slow[n] = coretest.NewHanging(t)
			g.Processor(fmt.Sprint("slow", n), slow[n])
		}
		g.Concurrent()
		apply := func() {
			t.Helper()
			for did := 1; did > 0; {
				var err error
				did, err = g.Notices.Apply(t.Context())
				g.Must(err)
			}
		}
		for n := range slow {
			t.Cleanup(slow[n].Release) // before the calls are awaited
			for i := range 300 {
				g.Must(g.Notices.Record(t.Context(), fmt.Sprint("slow", n), fmt.Sprint(i), "", []byte("charge x")))
			}
			apply()
			for slow[n].Waiting() < 64 {
				runtime.Gosched()
			}
			p := g.Payin(g.Merchant, fmt.Sprint("order ", n), "")
			g.Bank.Receive(p.ExternalID, fmt.Sprint("pay-", n), 100_00)
			g.Notify(fmt.Sprint("healthy ", n), "charge "+p.ExternalID)
			apply()
			due, err := g.Store.AccountsWithNotices(t.Context(), g.Clock.Now())
			g.Must(err)
			if slices.Contains(due, coretest.BankName) {
				t.Fatalf("beside %d processors that hang, the notice of another is not claimed", n+1)
			}
			for g.ReadPayin(p).Status != payment.PayinPaid {
				runtime.Gosched()
			}
		}
		for _, v := range slow {
			if v.Waiting() != 64 {
				t.Errorf("%d queries hang", v.Waiting())
			}
		}
	})
}
