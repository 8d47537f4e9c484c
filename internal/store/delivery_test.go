package store_test

import (
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// Earlier versions wrote the row of an attempt when it began. An attempt that
// one of them began is listed once, and ends or is cut off in its row.
func TestAttemptsWrittenAtTheirBeginning(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s := storetest.Open(t, storetest.Prepare(t, engine, env.System(env.OutboundOptions{})))
			node := payment.ID{7}
			var m store.Merchant
			var list []store.Delivery
			write := func(work func(tx *store.Tx) error) {
				t.Helper()
				first(t, s.Write(ctx, work))
			}
			write(func(tx *store.Tx) (err error) {
				first(t, tx.RegisterNode(ctx, node))
				m, err = tx.CreateMerchant(ctx, store.Merchant{Name: "m", Processor: "bank"}, "")
				for range 2 {
					tx.Announce(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: tx.NewID()}, []byte(`{}`), "https://a.example")
				}
				return err
			})
			write(func(tx *store.Tx) (err error) {
				if list, err = tx.ClaimDeliveries(ctx, m.ID, node, 2); err != nil || len(list) != 2 {
					t.Fatalf("%v, %v", list, err)
				}
				_, err = tx.Exec(ctx, `INSERT INTO delivery_attempts (merchant_id, delivery_id, number, status, latency, error, response, created_at, ended_at)
					SELECT merchant_id, id, attempts, 0, 0, '', '', updated_at, 0 FROM deliveries WHERE merchant_id = $1`, m.ID[:])
				return err
			})
			want := func(d store.Delivery, status int, ended bool) {
				t.Helper()
				attempts, err := s.Attempts(ctx, m.ID, d.EventNumber)
				first(t, err)
				if len(attempts) != 1 || attempts[0].Number != 1 || attempts[0].Status != status || attempts[0].EndedAt.IsZero() == ended {
					t.Errorf("on record: %+v", attempts)
				}
			}
			want(list[0], 0, false)
			list[0].State = store.DeliveryDone
			write(func(tx *store.Tx) error {
				if _, err := tx.FinishDelivery(ctx, list[0], store.Attempt{Status: 200}, node); err != nil {
					return err
				}
				_, err := tx.ReleaseNode(ctx, store.Node{ID: node, Beat: 1})
				return err
			})
			want(list[0], 200, true)
			want(list[1], 0, false)
		})
	}
}
