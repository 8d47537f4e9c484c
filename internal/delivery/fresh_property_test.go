package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// noticeSlots is how many notices of an account a process claims at once.
const noticeSlots = 128

// creations is a process in which new deliveries and notices, failures and restarts of
// its identity follow each other in any order.
type creations struct {
	*coretest.Gateway

	cuts   atomic.Int64  // commits whose outcome will be unknown
	when   env.Failpoint // they are cut off
	orders int
	open   []payment.Payin // of one sequence
	before int64           // the number of the last event before it
}

func newCreations(t *testing.T) *creations {
	v := &creations{when: env.BeforeCommit}
	v.Gateway = coretest.New(t, "sqlite", func(e *env.Env) {
		e.OnFailpoint = func(f env.Failpoint) error {
			if f == v.when && v.cuts.Add(-1) >= 0 {
				return errors.New("the connection broke")
			}
			return nil
		}
	})
	v.Concurrent()
	return v
}

// try runs a step, which may fail: the result is checked at the end.
func (v *creations) try(step func(ctx context.Context) (int, error)) {
	v.Until(func() { _, _ = step(v.T.Context()) })
}

func (v *creations) pay(r *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(r, "orders") {
		v.orders++
		p := v.order(fmt.Sprint(v.orders), fmt.Sprintf("https://%d.example/hook", v.orders%2))
		v.Bank.Receive(p.ExternalID, fmt.Sprint("pay ", v.orders), 100_00)
		v.open = append(v.open, p)
	}
}

// order creates an order, whose request is repeated until it has its charge: a process that
// was declared dead gets none before its next heartbeat.
func (v *creations) order(reference, url string) (p payment.Payin) {
	var err error
	for range 30 {
		v.Until(func() { p, _, err = v.Payins.Create(v.T.Context(), v.Merchant, coretest.PayinRequest(reference, url)) })
		if err == nil {
			return p
		}
		v.try(v.Cluster.KeepAlive)
		v.Clock.Advance(time.Second)
	}
	v.T.Fatal(err)
	return p
}

// report sends a notice of each payment, of some of them twice.
func (v *creations) report(r *rapid.T) {
	for i := range v.open {
		id := v.open[i].ExternalID
		for range rapid.IntRange(0, 2).Draw(r, "times") {
			v.Until(func() { _ = v.Notices.Record(v.T.Context(), coretest.BankName, "of "+id, "", []byte("charge "+id)) })
		}
	}
}

func (v *creations) cut(r *rapid.T) {
	v.WaitIdle()
	v.when = rapid.SampledFrom([]env.Failpoint{env.BeforeCommit, env.AfterCommit}).Draw(r, "when")
	v.cuts.Store(rapid.Int64Range(1, 3).Draw(r, "cuts"))
}

// die makes other processes declare this one dead.
func (v *creations) die(*rapid.T) {
	nodes, err := v.Store.Nodes(v.T.Context())
	v.Must(err)
	for _, n := range nodes {
		if n.ID == v.Node.ID() {
			v.Until(func() { _, _ = v.Cluster.Release(v.T.Context(), n) })
		}
	}
}

func (v *creations) setDown(down bool) {
	v.Bank.Mu.Lock()
	defer v.Bank.Mu.Unlock()
	v.Bank.Down = down
}

// heal ends all failures, and waits for what was rescheduled.
func (v *creations) heal() {
	v.WaitIdle()
	v.cuts.Store(0)
	v.setDown(false)
	v.Receivers.Always(200)
	for i := range v.open { // those whose notice was not stored
		v.Until(func() { v.Notify("at last "+v.open[i].ExternalID, "charge "+v.open[i].ExternalID) })
	}
	for range 12 {
		v.Clock.Advance(20 * time.Minute)
		v.Until(v.Heartbeat)
		for range 3 {
			v.try(v.Notices.Apply)
			v.try(v.Deliveries.Send)
			v.WaitIdle()
		}
	}
}

// wantAll checks the result of the sequence.
func (v *creations) wantAll(r *rapid.T) {
	if n := v.Deliveries.Taken(); n != 0 {
		r.Errorf("%d slots and claims are taken", n)
	}
	arrived := map[string]bool{}
	for _, got := range v.Receivers.Requests() {
		arrived[got.ID] = true
	}
	list, err := v.Store.Events(v.T.Context(), v.Merchant.ID, v.before, 1000)
	v.Must(err)
	paid := 0
	for i := range list {
		v.before = list[i].Number
		switch list[i].Type {
		case payment.EventPayinPaid:
			paid++
		case payment.EventPayinUpdated: // a repeated request got its charge
		default:
			r.Errorf("event %s", list[i].Type)
		}
		if !arrived[payment.PublicEventID(list[i].ID)] {
			r.Errorf("event %d was never delivered", list[i].Number)
		}
	}
	if paid != len(v.open) {
		r.Errorf("%d of %d orders are paid", paid, len(v.open))
	}
}

// sequences is how many are tried: each takes a tenth of a second.
const sequences = 40

// Any sequence of new deliveries and notices, failures and restarts: when all failures
// have ended each notice is applied, each event delivered, and no slot is taken.
func TestSlotsAreReleased(t *testing.T) {
	v, left := newCreations(t), sequences
	rapid.Check(t, func(r *rapid.T) {
		if left--; left < 0 {
			return
		}
		v.open = nil
		r.Repeat(map[string]func(*rapid.T){
			"orders are paid":      v.pay,
			"notices arrive":       v.report,
			"notices are applied":  func(*rapid.T) { v.try(v.Notices.Apply) },
			"events are delivered": func(*rapid.T) { v.try(v.Deliveries.Send) },
			"a heartbeat":          func(*rapid.T) { v.try(v.Cluster.KeepAlive) },
			"time passes": func(r *rapid.T) {
				v.Clock.Advance(time.Duration(rapid.IntRange(1, 4000).Draw(r, "ms")) * time.Millisecond)
			},
			"commits are cut off": v.cut,
			"it is declared dead": v.die,
			"the bank changes":    func(r *rapid.T) { v.setDown(rapid.Bool().Draw(r, "down")) },
			"receivers change":    func(r *rapid.T) { v.Receivers.Always(rapid.SampledFrom([]int{200, 200, 500}).Draw(r, "status")) },
		})
		v.heal()
		v.wantAll(r)
	})
	v.wantFreeNoticeSlots()
}

// wantFreeNoticeSlots checks that no slot for notices was lost: as many new notices as an
// account may have are all claimed when they are stored, and none is left for another process.
func (v *creations) wantFreeNoticeSlots() {
	p := v.Payin(v.Merchant, "last", "")
	for i := range noticeSlots {
		v.Until(func() { v.Notify(fmt.Sprint("last ", i), "charge "+p.ExternalID) })
	}
	other := v.Second()
	did, err := other.Notices.Apply(v.T.Context())
	v.Must(err)
	if did != 0 {
		v.T.Errorf("%d of %d notices found no slot", did, noticeSlots)
	}
	v.try(v.Notices.Apply)
	v.WaitIdle()
	if free := v.Notices.Queue.Free(coretest.BankName); free != noticeSlots {
		v.T.Errorf("%d of %d slots are free", free, noticeSlots)
	}
}
