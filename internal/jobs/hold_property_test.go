package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/world"
)

// However births, failures and ends follow each other: when all is well again
// each notice is applied, each event delivered, and no place is taken.
func TestPlacesComeBack(t *testing.T) {
	w, clock := world.Virtual(start, 1)
	var cuts atomic.Int64
	when := world.BeforeCommit
	w.OnMoment = func(m world.Moment) error {
		if m == when && cuts.Add(-1) >= 0 {
			return errors.New("the connection broke")
		}
		return nil
	}
	w.Webhooks = &receivers{clock: clock}
	g := newGateway(t, storetest.Prepare(t, "sqlite", w), w, clock, newBank(), &memoryMarker{})
	g.besides()
	var err error
	g.merchant, err = g.flow.CreateMerchant(t.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Processor: bankName}, "")
	g.must(err)

	// Steps may fail: what they leave undone is what is looked at in the end.
	try := func(step func(ctx context.Context) (int, error)) {
		g.until(func() { _, _ = step(t.Context()) })
	}
	orders := 0
	rapid.Check(t, func(r *rapid.T) {
		var open []payment.Payin
		pay := func(r *rapid.T) {
			for range rapid.IntRange(1, 4).Draw(r, "orders") {
				orders++
				var p payment.Payin
				g.until(func() { p = g.order(g.merchant, fmt.Sprint(orders), fmt.Sprintf("https://%d.example/hook", orders%2)) })
				g.bank.receive(p.ExternalID, fmt.Sprint("pay ", orders), 100_00)
				open = append(open, p)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"orders are paid": pay,
			"notices come": func(r *rapid.T) {
				for i := range open {
					for range rapid.IntRange(0, 2).Draw(r, "times") {
						g.until(func() {
							_ = g.flow.RecordNotice(t.Context(), bankName, "of "+open[i].ExternalID, "", []byte("charge "+open[i].ExternalID))
						})
					}
				}
			},
			"notices are applied":  func(*rapid.T) { try(g.jobs.ApplyNotices) },
			"events are delivered": func(*rapid.T) { try(g.jobs.DeliverWebhooks) },
			"a beat":               func(*rapid.T) { try(g.jobs.KeepAlive) },
			"time passes": func(r *rapid.T) {
				g.clock.Advance(time.Duration(rapid.IntRange(1, 4000).Draw(r, "ms")) * time.Millisecond)
			},
			"commits are cut": func(r *rapid.T) {
				g.settled()
				when = rapid.SampledFrom([]world.Moment{world.BeforeCommit, world.AfterCommit}).Draw(r, "when")
				cuts.Store(rapid.Int64Range(1, 3).Draw(r, "cuts"))
			},
			"others give the process up": func(*rapid.T) {
				nodes, err := g.store.Nodes(t.Context())
				g.must(err)
				for _, n := range nodes {
					if n.ID == g.flow.Node() {
						g.until(func() { _, _ = g.flow.Release(t.Context(), n) })
					}
				}
			},
			"the bank changes": func(r *rapid.T) {
				g.bank.mu.Lock()
				defer g.bank.mu.Unlock()
				g.bank.down = rapid.Bool().Draw(r, "down")
			},
			"receivers change": func(r *rapid.T) { g.web.always(rapid.SampledFrom([]int{200, 200, 500}).Draw(r, "status")) },
		})

		g.settled()
		cuts.Store(0)
		g.bank.mu.Lock()
		g.bank.down = false
		g.bank.mu.Unlock()
		g.web.always(200)
		for i := range open { // those whose notice never came
			g.notify("at last "+open[i].ExternalID, "charge "+open[i].ExternalID)
		}
		for range 12 {
			g.clock.Advance(20 * time.Minute)
			g.until(func() { g.beat() })
			for range 3 {
				try(g.jobs.ApplyNotices)
				try(g.jobs.DeliverWebhooks)
				g.settled()
			}
		}
		if n := g.jobs.Places(); n != 0 {
			r.Errorf("%d places are taken", n)
		}
		seen := map[string]int{}
		for _, v := range g.web.requests() {
			seen[v.id]++
		}
		list, err := g.store.Events(t.Context(), g.merchant.ID, int64(orders-len(open)), 1000)
		g.must(err)
		if len(list) != len(open) {
			r.Errorf("%d events of %d orders", len(list), len(open))
		}
		for i := range list {
			if seen[payment.PublicEventID(list[i].ID)] == 0 {
				r.Errorf("event %d was never delivered", list[i].Number)
			}
		}
	})
}
