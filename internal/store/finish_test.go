package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// To finish deliveries together does what it does to finish them one by one:
// those in hand, lost to another, given back, ended, told twice, of an attempt
// that is over, and with the record of an earlier version.
func TestDeliveriesFinishTogether(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, storetest.Prepare(t, engine, env.System(env.OutboundOptions{})))
			serial := 0
			rapid.Check(t, func(r *rapid.T) {
				states := rapid.SliceOfN(rapid.SampledFrom(deliveryStates), 1, 5).Draw(r, "states")
				ends := rapid.SliceOfN(rapid.Custom(drawEnd(len(states))), 0, 8).Draw(r, "ends")
				serial++
				together := newFinishing(t, s, fmt.Sprint("together ", serial), states)
				single := newFinishing(t, s, fmt.Sprint("single ", serial), states)
				var one, other []store.Finished
				var now time.Time
				first(t, s.Write(t.Context(), func(tx *store.Tx) (err error) {
					now = tx.Now
					one, err = tx.FinishDeliveries(t.Context(), together.ends(tx.Now, ends))
					if err != nil {
						return err
					}
					for _, e := range single.ends(tx.Now, ends) {
						f, err := tx.FinishDelivery(t.Context(), e.Delivery, e.Attempt, e.Delivery.ClaimedBy)
						if err != nil {
							return err
						}
						other = append(other, f)
					}
					return nil
				}))
				if !slices.Equal(one, other) {
					r.Errorf("together %+v, one by one %+v", one, other)
				}
				if a, b := together.rows(now), single.rows(now); a != b {
					r.Errorf("together:\n%s\none by one:\n%s", a, b)
				}
			})
		})
	}
}

// deliveryStates are what may have become of a delivery since it was claimed.
var deliveryStates = []string{"in hand", "ended", "lost", "given back", "finished", "told of", "recorded", "waiting"}

// drawnEnd is the end of an attempt of one of some deliveries.
type drawnEnd struct {
	of      int
	state   string
	again   time.Duration
	attempt int64 // less than that in hand
	foreign bool  // told by another process
	status  int
}

func drawEnd(n int) func(r *rapid.T) drawnEnd {
	return func(r *rapid.T) drawnEnd {
		return drawnEnd{
			of:      rapid.IntRange(0, n-1).Draw(r, "of"),
			state:   rapid.SampledFrom([]string{store.DeliveryPending, store.DeliveryDone, store.DeliveryExhausted, store.DeliveryEnded}).Draw(r, "state"),
			again:   time.Duration(rapid.IntRange(0, 60).Draw(r, "again")) * time.Second,
			attempt: rapid.Int64Range(0, 1).Draw(r, "attempt"),
			foreign: rapid.IntRange(0, 4).Draw(r, "foreign") == 0,
			status:  rapid.IntRange(200, 599).Draw(r, "status"),
		}
	}
}

// finishing is a merchant with deliveries in some states, each twice claimed.
type finishing struct {
	*testing.T

	s        *store.Store
	merchant payment.ID
	list     []store.Delivery
}

var thisNode, otherNode, told = payment.ID{1}, payment.ID{2}, payment.ID{3}

func newFinishing(t *testing.T, s *store.Store, name string, states []string) *finishing {
	ctx := t.Context()
	v := &finishing{T: t, s: s}
	subjects := make([]payment.ID, len(states))
	first(t, s.Write(ctx, func(tx *store.Tx) error {
		m, err := tx.CreateMerchant(ctx, store.Merchant{Name: name, Processor: "bank"}, "")
		v.merchant = m.ID
		for i := range states {
			subjects[i] = tx.NewID()
			tx.Announce(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: subjects[i]}, []byte(`{}`), "https://a.example")
		}
		return err
	}))
	claim := func(tx *store.Tx, node payment.ID) []store.Delivery {
		list, err := tx.ClaimDeliveries(ctx, v.merchant, node, 10)
		first(t, err)
		for i := range list {
			list[i].ClaimedBy = node
		}
		slices.SortFunc(list, func(a, b store.Delivery) int { return int(a.EventNumber - b.EventNumber) })
		return list
	}
	again := func(tx *store.Tx, d store.Delivery) {
		_, err := tx.Exec(ctx, "UPDATE deliveries SET next_at = $1, claimed_by = $2 WHERE merchant_id = $3 AND id = $4",
			store.Micros(tx.Now), []byte{}, v.merchant[:], d.ID[:])
		first(t, err)
	}
	first(t, s.Write(ctx, func(tx *store.Tx) error {
		for _, d := range claim(tx, thisNode) {
			again(tx, d)
		}
		v.list = claim(tx, thisNode)
		return nil
	}))
	first(t, s.Write(ctx, func(tx *store.Tx) error {
		for i, d := range v.list {
			var err error
			switch states[i] {
			case "ended":
				err = tx.EndDeliveries(ctx, v.merchant, subjects[i], d.URL)
			case "lost":
				again(tx, d)
				claim(tx, otherNode)
			case "given back":
				err = tx.ReturnDelivery(ctx, d, tx.Now.Add(time.Hour), thisNode)
			case "finished":
				d.State = store.DeliveryDone
				_, err = tx.FinishDelivery(ctx, d, store.Attempt{Status: 200}, thisNode)
			case "told of":
				_, err = tx.Exec(ctx, "UPDATE deliveries SET exception_id = $1 WHERE merchant_id = $2 AND id = $3", told[:], v.merchant[:], d.ID[:])
			case "recorded":
				_, err = tx.Exec(ctx, `INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at)
					VALUES ($1, $2, $3, 0, 0, '', '', 1, 0)`, v.merchant[:], d.ID[:], int64(d.Attempts))
			case "waiting":
				again(tx, d)
			}
			first(t, err)
		}
		return nil
	}))
	return v
}

// ends are what was drawn, of this merchant's deliveries.
func (v *finishing) ends(now time.Time, drawn []drawnEnd) (list []store.End) {
	for _, e := range drawn {
		d := v.list[e.of]
		d.State, d.Attempts = e.state, d.Attempts-int(e.attempt)
		d.TakenAt = now.Add(-time.Second)
		if e.state == store.DeliveryPending {
			d.NextAt = now.Add(e.again)
		}
		if e.foreign {
			d.ClaimedBy = otherNode
		}
		list = append(list, store.End{Delivery: d, Attempt: store.Attempt{Status: e.status, Latency: time.Millisecond, Error: "e", Response: "r"}})
	}
	return list
}

// rows are the merchant's deliveries and attempts, without their ids and times,
// other than how long after now they are due again.
func (v *finishing) rows(now time.Time) string {
	var all []string
	for _, text := range []string{
		`SELECT event_number || ' ' || state || ' ' || attempts || ' ' || tries || ' ' || length(claimed_by) || ' ' || length(exception_id)
			|| CASE WHEN next_at = 0 THEN '' WHEN updated_at = $2 THEN ' in ' || (next_at - updated_at) ELSE ' due' END FROM deliveries WHERE merchant_id = $1 ORDER BY event_number`,
		`SELECT d.event_number || ' ' || a.number || ' ' || a.status || ' ' || a.latency || ' ' || a.error || a.response
			|| CASE WHEN a.ended_at = $2 THEN ' now' WHEN a.ended_at > 0 THEN ' before' ELSE '' END FROM deliveries d
			JOIN delivery_attempts a ON a.merchant_id = d.merchant_id AND a.delivery_id = d.id
			WHERE d.merchant_id = $1 ORDER BY d.event_number, a.number`,
	} {
		rows, err := v.s.Reader().QueryContext(v.Context(), text, v.merchant[:], store.Micros(now))
		first(v.T, err)
		for rows.Next() {
			var line string
			first(v.T, rows.Scan(&line))
			all = append(all, line)
		}
		first(v.T, rows.Err())
		first(v.T, rows.Close())
	}
	return strings.Join(all, "\n")
}
