package store_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// claimed is a merchant with deliveries that a node has claimed.
type claimed struct {
	*testing.T

	s    *store.Store
	m    store.Merchant
	node payment.ID
	list []store.Delivery
}

func newClaimed(t *testing.T, s *store.Store, count int) *claimed {
	t.Helper()
	v := &claimed{T: t, s: s, m: createMerchant(t, s, "m"), node: payment.ID{7}}
	write(t, s, func(tx *store.AdminTx) error { return tx.RegisterNode(t.Context(), v.node) })
	var n store.Needs
	out, err := s.Commit(t.Context(), &n, store.Capacity{Node: v.node, Deliveries: map[payment.ID]int{v.m.ID: count}}, func(_ *store.Loaded, c *store.Changes) error {
		for range count {
			c.AddEvent(payment.Event{Merchant: v.m.ID, Type: payment.EventPayinPaid, Subject: c.NewID()}, []byte(`{}`), "https://a.example")
		}
		return nil
	})
	must(t, err)
	if v.list = out.Claimed.Deliveries; len(v.list) != count {
		t.Fatalf("claimed %+v", out.Claimed)
	}
	return v
}

// end records the end of the first attempt of a delivery.
func (v *claimed) end(d store.Delivery, status int) {
	v.Helper()
	must(v.T, commit(v.T, v.s, func(*store.Needs) {}, func(_ *store.Loaded, c *store.Changes) error {
		c.AddAttempt(store.Attempt{Merchant: v.m.ID, Delivery: d.ID, Number: 1, Status: status, Latency: 3 * time.Millisecond, Response: "r", CreatedAt: d.UpdatedAt})
		return nil
	}))
}

// want compares the one attempt of a delivery that is listed.
func (v *claimed) want(d store.Delivery, status int, ended bool) {
	v.Helper()
	list, err := v.s.Attempts(v.Context(), v.m.ID, d.EventNumber)
	must(v.T, err)
	if len(list) != 1 || list[0].Delivery != d.ID || list[0].Number != 1 || list[0].Status != status || list[0].EndedAt.IsZero() == ended ||
		list[0].URL != "https://a.example" || !list[0].CreatedAt.Equal(d.UpdatedAt) {
		v.Errorf("attempts of event %d: %+v", d.EventNumber, list)
	}
}

func (v *claimed) release() {
	v.Helper()
	write(v.T, v.s, func(tx *store.AdminTx) error {
		n, err := tx.ReleaseNode(v.Context(), store.Node{ID: v.node, Heartbeat: 1})
		if err == nil && n != int64(len(v.list)) {
			v.Errorf("released %d", n)
		}
		return err
	})
}

// An attempt is listed once, while it is under way and after its end.
func TestAttemptIsListedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newClaimed(t, s, 2)
		v.want(v.list[0], 0, false)
		v.end(v.list[0], 200)
		v.want(v.list[0], 200, true) // the delivery is still claimed: its result is written in the same commit
		v.want(v.list[1], 0, false)
	})
}

// The attempts that a dead node had under way are recorded without an end. If the
// node lives after all, an attempt ends in its row, and its first end stays.
func TestAttemptsOfADeadNode(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newClaimed(t, s, 2)
		v.release()
		v.want(v.list[0], 0, false)
		v.want(v.list[1], 0, false)
		v.end(v.list[0], 200)
		v.want(v.list[0], 200, true)
		v.end(v.list[0], 500)
		v.want(v.list[0], 200, true)
		v.want(v.list[1], 0, false)
		if n := query[int](t, s, "SELECT count(*) FROM delivery_attempts")[0]; n != 2 {
			t.Errorf("%d attempts are stored, want 2", n)
		}
	})
}

// An attempt that was recorded before its node died is not recorded as cut off.
func TestReleaseKeepsRecordedAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newClaimed(t, s, 2)
		v.end(v.list[0], 200)
		v.release()
		v.want(v.list[0], 200, true)
		v.want(v.list[1], 0, false)
	})
}

// Of an event that was sent again without end, the last attempts are listed.
func TestAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		v := newClaimed(t, s, 1)
		d, last := v.list[0], 2*store.AttemptsMax+5
		must(t, commit(t, s, func(n *store.Needs) { n.Delivery(d.Merchant, d.ID) }, func(l *store.Loaded, c *store.Changes) error {
			now, _ := l.Delivery(d.Merchant, d.ID)
			for i := range last {
				c.AddAttempt(store.Attempt{Merchant: d.Merchant, Delivery: d.ID, Number: i + 1, Status: 500, CreatedAt: d.UpdatedAt.Add(time.Duration(i) * time.Second)})
			}
			now.Attempts = last
			c.SetDelivery(now)
			return nil
		}))
		list, err := s.Attempts(t.Context(), d.Merchant, d.EventNumber)
		must(t, err)
		if len(list) != store.AttemptsMax {
			t.Fatalf("%d attempts", len(list))
		}
		for i, a := range list {
			if want := last - store.AttemptsMax + 1 + i; a.Number != want {
				t.Errorf("attempt %d is listed as the one with number %d", want, a.Number)
			}
		}
	})
}
