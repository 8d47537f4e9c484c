package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/delivery"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// The ends of several deliveries in one commit store the same rows as each in its own
// commit: ends of claimed deliveries, of those lost to another process, returned,
// disabled or finished, repeated ends, ends of an earlier attempt, and of one that
// was recorded as cut off.
func TestDeliveriesFinishTogether(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e, _ := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
			s := storetest.Open(t, storetest.Prepare(t, engine, e))
			serial := 0
			rapid.Check(t, func(r *rapid.T) {
				states := rapid.SliceOfN(rapid.SampledFrom(deliveryStates), 1, 5).Draw(r, "states")
				ends := rapid.SliceOfN(rapid.Custom(drawEnd(len(states))), 0, 8).Draw(r, "ends")
				serial++
				together := newFinishing(t, s, e.Clock.Now(), fmt.Sprint("together ", serial), states)
				single := newFinishing(t, s, e.Clock.Now(), fmt.Sprint("single ", serial), states)
				together.commit(together.ends(ends)...)
				for _, end := range single.ends(ends) {
					single.commit(end)
				}
				if a, b := together.rows(), single.rows(); a != b {
					r.Errorf("together:\n%s\none by one:\n%s", a, b)
				}
			})
		})
	}
}

// deliveryStates are the possible histories of a delivery since it was claimed.
var deliveryStates = []string{"nothing", "disabled", "lost", "returned", "finished", "has a case", "recorded", "due"}

// drawnEnd is the end of an attempt of one of some deliveries.
type drawnEnd struct {
	of      int
	state   store.DeliveryState
	again   time.Duration
	attempt int  // less than that of the claim
	foreign bool // of another process
	status  int
}

func drawEnd(n int) func(r *rapid.T) drawnEnd {
	return func(r *rapid.T) drawnEnd {
		return drawnEnd{
			of: rapid.IntRange(0, n-1).Draw(r, "of"),
			state: rapid.SampledFrom([]store.DeliveryState{
				store.DeliveryPending, store.DeliveryDone, store.DeliveryExhausted, store.DeliveryDisabled,
			}).Draw(r, "state"),
			again:   time.Duration(rapid.IntRange(0, 60).Draw(r, "again")) * time.Second,
			attempt: rapid.IntRange(0, 1).Draw(r, "attempt"),
			foreign: rapid.IntRange(0, 4).Draw(r, "foreign") == 0,
			status:  rapid.IntRange(200, 599).Draw(r, "status"),
		}
	}
}

// finishing is a merchant with deliveries in some states, each claimed twice. Two
// deliveries each are of one order.
type finishing struct {
	*testing.T

	s    *store.Store
	now  time.Time
	m    store.Merchant
	list []store.Delivery
}

var thisNode, otherNode = payment.ID{1}, payment.ID{2}

const receiver = "https://a.example"

func newFinishing(t *testing.T, s *store.Store, now time.Time, name string, states []string) *finishing {
	v := &finishing{T: t, s: s, now: now, m: createMerchant(t, s, name)}
	var payins []*store.NewPayin
	for i := range (len(states) + 1) / 2 {
		var id payment.ID
		write(t, s, func(tx *store.AdminTx) error { id = tx.NewID(); return nil })
		p := newPayin(t, s, &v.m, id, fmt.Sprint(i)).Payin
		p.WebhookURL = receiver
		payins = append(payins, s.NewPayin(p, payment.PersonalData{}, nil))
	}
	must(t, commit(t, s, func(n *store.Needs) {
		for _, p := range payins {
			n.InsertPayin(p)
		}
	}, func(_ *store.Loaded, c *store.Changes) error {
		for i := range states {
			c.AddEvent(payment.Event{Merchant: v.m.ID, Type: payment.EventPayinPaid, Subject: payins[i/2].Payin.ID}, []byte(`{}`), receiver)
		}
		return nil
	}))
	for _, d := range v.claim(thisNode) {
		v.makeDue(d)
	}
	v.list = v.claim(thisNode)
	for i, state := range states {
		v.happen(state, v.list[i])
	}
	return v
}

// claim claims all due deliveries for a node, and returns them by their events.
func (v *finishing) claim(node payment.ID) (list []store.Delivery) {
	must(v.T, commit(v.T, v.s, func(n *store.Needs) { n.DueDeliveries(v.m.ID, 10) }, func(l *store.Loaded, c *store.Changes) error {
		list = nil
		for _, d := range l.DueDeliveries(v.m.ID) {
			d.Claim(node, l.Now())
			c.SetDelivery(d)
			list = append(list, d)
		}
		return nil
	}))
	slices.SortFunc(list, func(a, b store.Delivery) int { return int(a.EventNumber - b.EventNumber) })
	return list
}

func (v *finishing) exec(text string, args ...any) {
	write(v.T, v.s, func(tx *store.AdminTx) error { return tx.ExecOne(v.Context(), text, args...) })
}

func (v *finishing) makeDue(d store.Delivery) {
	v.exec("UPDATE deliveries SET next_at = $1, claimed_by = $2 WHERE merchant_id = $3 AND id = $4", store.Micros(v.now), []byte{}, v.m.ID[:], d.ID[:])
}

// happen puts a claimed delivery into one of deliveryStates.
func (v *finishing) happen(state string, d store.Delivery) {
	switch state {
	case "disabled":
		v.exec("UPDATE deliveries SET state = 'disabled' WHERE merchant_id = $1 AND id = $2", v.m.ID[:], d.ID[:])
	case "lost":
		v.makeDue(d)
		v.claim(otherNode)
	case "returned":
		v.exec("UPDATE deliveries SET attempts = attempts - 1, next_at = $1, claimed_by = $2 WHERE merchant_id = $3 AND id = $4",
			store.Micros(v.now.Add(time.Hour)), []byte{}, v.m.ID[:], d.ID[:])
	case "finished":
		v.commit(&delivery.End{Delivery: d, State: store.DeliveryDone, Attempt: attemptOf(d, 200)})
	case "has a case":
		must(v.T, commit(v.T, v.s, func(n *store.Needs) { n.Delivery(d.Merchant, d.ID) }, func(l *store.Loaded, c *store.Changes) error {
			d, _ := l.Delivery(d.Merchant, d.ID)
			d.Case = c.OpenCase(store.Case{Merchant: d.Merchant, Kind: store.CaseWebhook, Subject: d.Subject})
			c.SetDelivery(d)
			return nil
		}))
	case "recorded":
		v.exec(`INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at)
			VALUES ($1, $2, $3, 0, 0, '', '', 1, 0)`, v.m.ID[:], d.ID[:], int64(d.Attempts))
	case "due":
		v.makeDue(d)
	}
}

func attemptOf(d store.Delivery, status int) store.Attempt {
	return store.Attempt{
		Merchant: d.Merchant, Delivery: d.ID, Number: d.Attempts, Status: status, Latency: time.Millisecond, Error: "e", Response: "r", CreatedAt: d.UpdatedAt,
	}
}

// ends are the drawn ones, of this merchant's deliveries.
func (v *finishing) ends(drawn []drawnEnd) (list []*delivery.End) {
	for _, e := range drawn {
		d := v.list[e.of]
		d.Attempts -= e.attempt
		if e.foreign {
			d.ClaimedBy = otherNode
		}
		end := &delivery.End{Delivery: d, State: e.state, Attempt: attemptOf(d, e.status)}
		if e.state == store.DeliveryPending {
			end.NextAt = v.now.Add(e.again)
		}
		list = append(list, end)
	}
	return list
}

// commit commits ends together.
func (v *finishing) commit(ends ...*delivery.End) {
	v.Helper()
	must(v.T, commit(v.T, v.s, func(n *store.Needs) {
		for _, end := range ends {
			end.Needs(n)
		}
	}, func(l *store.Loaded, c *store.Changes) error {
		for _, end := range ends {
			if err := end.Decide(l, c); err != nil {
				return err
			}
		}
		return nil
	}))
}

// rows are the merchant's deliveries, attempts, cases and pay-ins, without ids.
func (v *finishing) rows() string {
	var all []string
	for _, text := range []string{
		`SELECT event_number || ' ' || state || ' ' || attempts || ' ' || schedule_step || ' ' || length(claimed_by) || ' ' || length(case_id)
			|| ' ' || next_at || ' ' || updated_at FROM deliveries WHERE merchant_id = $1 ORDER BY event_number`,
		`SELECT d.event_number || ' ' || a.number || ' ' || a.status || ' ' || a.latency || ' ' || a.error || a.response || ' ' || a.ended_at
			FROM deliveries d JOIN delivery_attempts a ON a.merchant_id = d.merchant_id AND a.delivery_id = d.id
			WHERE d.merchant_id = $1 ORDER BY d.event_number, a.number`,
		`SELECT p.reference_id || ' ' || p.webhook_disabled || ' ' || p.version FROM payins p WHERE p.merchant_id = $1 ORDER BY p.reference_id`,
		`SELECT p.reference_id || ' ' || c.kind || ' ' || c.resolution || ' ' || c.closed_at FROM cases c
			JOIN payins p ON p.merchant_id = c.merchant_id AND p.id = c.subject_id WHERE c.merchant_id = $1 ORDER BY p.reference_id, c.resolution`,
		`SELECT d.event_number || ' ' || c.kind FROM deliveries d JOIN cases c ON c.merchant_id = d.merchant_id AND c.id = d.case_id
			WHERE d.merchant_id = $1 ORDER BY d.event_number`,
	} {
		all = append(all, query[string](v.T, v.s, text, v.m.ID[:])...)
	}
	return strings.Join(all, "\n")
}
