package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// paid has an order of a merchant paid, which a lane books: its news is in hand
// from its birth, where there is room.
func (g *gateway) paid(m store.Merchant, reference, url string) payment.Payin {
	g.t.Helper()
	p := g.order(m, reference, url)
	g.bank.receive(p.ExternalID, "pay "+m.Name+" "+reference, 100_00)
	report := g.bank.QueryCharge(g.t.Context(), p.ExternalID)
	g.until(func() { g.must(g.flow.ApplyCharge(g.t.Context(), bankName, p.ExternalID, report, nil)) })
	return p
}

// free takes up to n of a merchant's deliveries that are in nobody's hand.
func (g *gateway) free(m store.Merchant, n int) int {
	g.t.Helper()
	list, err := g.flow.ClaimDeliveries(g.t.Context(), m.ID, n)
	g.must(err)
	return len(list)
}

// wantPlaces compares how many places are taken.
func (g *gateway) wantPlaces(n int) {
	g.t.Helper()
	if got := g.jobs.Places(); got != n {
		g.t.Errorf("%d places are taken, want %d", got, n)
	}
}

// begins runs the duty once, and fails where it waits for a call to end.
func (g *gateway) begins() {
	g.t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := g.jobs.DeliverWebhooks(g.t.Context())
		done <- err
	}()
	select {
	case err := <-done:
		g.must(err)
	case <-time.After(10 * time.Second):
		g.t.Fatal("the duty waits for a place")
	}
}

func TestBornDeliveryNeedsNoClaim(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		other := g.second()
		g.paid(g.merchant, "r", hook)
		other.deliver()
		g.wantRequests(0)
		if list := g.attempts(g.merchant, 1); len(list) != 1 || list[0].Number != 1 || !list[0].EndedAt.IsZero() {
			t.Errorf("on record: %+v", list)
		}
		g.deliver()
		other.deliver()
		g.wantRequests(1)
		if list := g.attempts(g.merchant, 1); len(list) != 1 || list[0].Number != 1 || list[0].Status != 200 {
			t.Errorf("on record: %+v", list)
		}
		g.wantPlaces(0)
	})
}

// A merchant has so many in hand, and the rest waits.
func TestBornDeliveriesAreBounded(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		const most, n = 256, 300
		other := g.second()
		for i := range n {
			g.paid(g.merchant, fmt.Sprint(i), hook)
		}
		if got := g.jobs.InHand(g.merchant.ID); got != most {
			t.Errorf("%d in hand", got)
		}
		if got := other.free(g.merchant, n); got != n-most {
			t.Errorf("%d wait", got)
		}
		g.deliver()
		g.wantRequests(most)
		g.wantPlaces(0)
	})
}

// What comes into being does not overtake what waits to be claimed.
func TestBornDeliveryWaitsBehindOlderOnes(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		other := g.second()
		g.besides()
		hold := g.web.hold(t, "https://alive.example/")
		g.announce(g.merchant, 10, "https://alive.example/hook")
		g.clock.Advance(time.Millisecond)
		g.announce(g.merchant, 290, hook)
		g.step() // has 256 of them in hand, soon 246
		g.until(func() {
			for g.jobs.InHand(g.merchant.ID) > 246 {
				runtime.Gosched()
			}
		})
		neighbour := g.merchantNamed("Vizinha", "")
		g.paid(g.merchant, "r", hook)
		g.paid(neighbour, "r", hook)
		if n := other.free(g.merchant, 300); n != 44+1 {
			t.Errorf("%d wait behind those in hand", n)
		}
		if n := other.free(neighbour, 1); n != 0 {
			t.Error("a merchant waits behind another's backlog")
		}
		hold.let()
		g.settled()
		g.step()
		g.settled()
		g.wantRequests(256 + 1)
		g.wantPlaces(0)
	})
}

// When all places are taken by calls that hang, the duty does not wait for one,
// and what comes into being waits with what is due.
func TestBornDeliveriesDoNotWaitInTheDuty(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		other, neighbour := g.second(), g.merchantNamed("Vizinha", "")
		g.besides()
		hold := g.web.hold(t)
		for i := range 32 { // receivers with eight places each
			g.announce(g.merchant, 8, fmt.Sprintf("https://%d.example/hook", i))
		}
		g.begins()
		for range 256 {
			<-hold.arrived
		}
		g.paid(neighbour, "first", hook) // while there seemed to be room
		g.begins()
		g.paid(neighbour, "second", hook)
		if n := other.free(neighbour, 10); n != 1 {
			t.Errorf("%d deliveries wait to be claimed", n)
		}
		hold.let()
		g.settled()
		g.step()
		g.settled()
		g.wantRequests(256 + 1)
		g.wantPlaces(0)
		g.paid(neighbour, "third", hook) // and there is room again
		if n := other.free(neighbour, 10); n != 0 {
			t.Errorf("%d deliveries wait to be claimed", n)
		}
		g.step()
		g.settled()
		g.wantRequests(256 + 2)
	})
}

// What a process was given up with is others', though it has not begun with it.
func TestGivenUpProcessStartsNothingBorn(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		heir := g.second()
		g.paid(g.merchant, "r", hook)
		_, err := heir.flow.Release(t.Context(), g.nodeOf())
		g.must(err)
		heir.deliver()
		g.wantRequests(1)
		g.beat() // under another id
		g.deliver()
		g.wantRequests(1)
		g.wantPlaces(0)
	})
}

// At a clean end what had only just come into being goes back untried.
func TestLeavingGivesBackWhatIsBorn(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		other := g.second()
		g.paid(g.merchant, "r", hook)
		g.must(g.jobs.Leave(t.Context()))
		if list := g.attempts(g.merchant, 1); len(list) != 0 {
			t.Errorf("on record: %+v", list)
		}
		other.deliver()
		g.wantRequests(1)
		if list := g.attempts(g.merchant, 1); len(list) != 1 || list[0].Number != 1 {
			t.Errorf("on record: %+v", list)
		}
	})
}

// A secret that cannot be used delays its merchant alone.
func TestBornDeliveryWithoutASecret(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		broken := g.merchantNamed("Quebrada", "whsec_not base64")
		g.paid(broken, "r", hook)
		g.paid(g.merchant, "r", hook)
		g.deliver()
		g.wantRequests(1)
		g.wantPlaces(0)
		if list := g.attempts(broken, 1); len(list) != 0 {
			t.Errorf("on record: %+v", list)
		}
	})
}

// What was born while its secret could not be read comes when it can be.
func TestBornDeliveryWaitsForItsSecret(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		o := g.options
		o.Shared = true
		gone, err := store.Open(t.Context(), o)
		g.must(err)
		g.must(gone.Close())
		g.paid(g.merchant, "r", hook)
		g.jobs.Store = gone
		if _, err := g.jobs.DeliverWebhooks(t.Context()); err == nil {
			t.Error("a closed database was read")
		}
		g.jobs.Store = g.store
		g.wantRequests(0)
		g.pass(6 * time.Second)
		g.deliver()
		g.wantRequests(1)
		g.wantPlaces(0)
	})
}

// A claim that is not committed, whatever it read, takes no place.
func TestFailedClaimOfNoticesKeepsNoPlace(t *testing.T) {
	w, clock := env.Virtual(start, 1)
	cut := false
	w.OnFailpoint = func(m env.Failpoint) error {
		if cut && m == env.BeforeCommit {
			return errors.New("the connection broke")
		}
		return nil
	}
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		o.Env.Webhooks = &receivers{clock: clock}
		g := newGateway(t, o, o.Env, clock, newBank(), &memoryMarker{})
		g.must(g.store.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.RecordNotice(t.Context(), store.Notice{Processor: bankName, ID: "n", Body: []byte("?")})
			return err
		}))
		cut = true
		var err error
		g.until(func() { _, err = g.jobs.ApplyNotices(context.Background()) })
		cut = false
		if err == nil {
			t.Error("a claim was taken for committed")
		}
		g.wantPlaces(0)
	})
}
