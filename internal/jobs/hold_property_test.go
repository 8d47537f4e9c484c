package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// births is a process whose births, failures and ends follow each other in any
// order.
type births struct {
	*gateway
	cuts   atomic.Int64  // commits whose outcome will be unknown
	when   env.Failpoint // they are cut
	orders int
	open   []payment.Payin // of one sequence
}

func newBirths(t *testing.T) *births {
	v := &births{when: env.BeforeCommit}
	w, clock := env.Virtual(start, 1)
	w.OnFailpoint = func(m env.Failpoint) error {
		if m == v.when && v.cuts.Add(-1) >= 0 {
			return errors.New("the connection broke")
		}
		return nil
	}
	w.Webhooks = &receivers{clock: clock}
	v.gateway = newGateway(t, storetest.Prepare(t, "sqlite", w), w, clock, newBank(), &memoryMarker{})
	v.besides()
	var err error
	v.merchant, err = v.flow.CreateMerchant(t.Context(), store.Merchant{Name: "Loja", City: "SAO PAULO", Processor: bankName}, "")
	v.must(err)
	return v
}

// try runs a step, which may fail: what it leaves undone is what is looked at in
// the end.
func (v *births) try(step func(ctx context.Context) (int, error)) {
	v.until(func() { _, _ = step(v.t.Context()) })
}

func (v *births) pay(r *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(r, "orders") {
		v.orders++
		var p payment.Payin
		v.until(func() {
			p = v.order(v.merchant, fmt.Sprint(v.orders), fmt.Sprintf("https://%d.example/hook", v.orders%2))
		})
		v.bank.receive(p.ExternalID, fmt.Sprint("pay ", v.orders), 100_00)
		v.open = append(v.open, p)
	}
}

// tell has the bank tell of each payment, some of them twice.
func (v *births) tell(r *rapid.T) {
	for i := range v.open {
		id := v.open[i].ExternalID
		for range rapid.IntRange(0, 2).Draw(r, "times") {
			v.until(func() { _ = v.flow.RecordNotice(v.t.Context(), bankName, "of "+id, "", []byte("charge "+id)) })
		}
	}
}

func (v *births) cut(r *rapid.T) {
	v.settled()
	v.when = rapid.SampledFrom([]env.Failpoint{env.BeforeCommit, env.AfterCommit}).Draw(r, "when")
	v.cuts.Store(rapid.Int64Range(1, 3).Draw(r, "cuts"))
}

// giveUp has others take the process for dead.
func (v *births) giveUp(*rapid.T) {
	nodes, err := v.store.Nodes(v.t.Context())
	v.must(err)
	for _, n := range nodes {
		if n.ID == v.flow.Node() {
			v.until(func() { _, _ = v.flow.Release(v.t.Context(), n) })
		}
	}
}

func (v *births) askable(down bool) {
	v.bank.mu.Lock()
	defer v.bank.mu.Unlock()
	v.bank.down = down
}

// heal ends all trouble, and waits for what was put off.
func (v *births) heal() {
	v.settled()
	v.cuts.Store(0)
	v.askable(false)
	v.web.always(200)
	for i := range v.open { // those whose notice never came
		v.notify("at last "+v.open[i].ExternalID, "charge "+v.open[i].ExternalID)
	}
	for range 12 {
		v.clock.Advance(20 * time.Minute)
		v.until(v.beat)
		for range 3 {
			v.try(v.jobs.ApplyNotices)
			v.try(v.jobs.DeliverWebhooks)
			v.settled()
		}
	}
}

// wantAll compares what has come of the sequence with what had to.
func (v *births) wantAll(r *rapid.T) {
	if n := v.jobs.Places(); n != 0 {
		r.Errorf("%d places are taken", n)
	}
	arrived := map[string]bool{}
	for _, got := range v.web.requests() {
		arrived[got.id] = true
	}
	list, err := v.store.Events(v.t.Context(), v.merchant.ID, int64(v.orders-len(v.open)), 1000)
	v.must(err)
	if len(list) != len(v.open) {
		r.Errorf("%d events of %d orders", len(list), len(v.open))
	}
	for i := range list {
		if !arrived[payment.PublicEventID(list[i].ID)] {
			r.Errorf("event %d was never delivered", list[i].Number)
		}
	}
}

// However births, failures and ends follow each other: when all is well again
// each notice is applied, each event delivered, and no place is taken.
func TestPlacesComeBack(t *testing.T) {
	v := newBirths(t)
	rapid.Check(t, func(r *rapid.T) {
		v.open = nil
		r.Repeat(map[string]func(*rapid.T){
			"orders are paid":      v.pay,
			"notices come":         v.tell,
			"notices are applied":  func(*rapid.T) { v.try(v.jobs.ApplyNotices) },
			"events are delivered": func(*rapid.T) { v.try(v.jobs.DeliverWebhooks) },
			"a beat":               func(*rapid.T) { v.try(v.jobs.KeepAlive) },
			"time passes": func(r *rapid.T) {
				v.clock.Advance(time.Duration(rapid.IntRange(1, 4000).Draw(r, "ms")) * time.Millisecond)
			},
			"commits are cut":            v.cut,
			"others give the process up": v.giveUp,
			"the bank changes":           func(r *rapid.T) { v.askable(rapid.Bool().Draw(r, "down")) },
			"receivers change":           func(r *rapid.T) { v.web.always(rapid.SampledFrom([]int{200, 200, 500}).Draw(r, "status")) },
		})
		v.heal()
		v.wantAll(r)
	})
}
