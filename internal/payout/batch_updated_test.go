package payout_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// wantUpdated reads a batch alone, in a list, and by its reference: each says that it was changed
// at a time.
func wantUpdated(g *coretest.Gateway, b payment.PayoutBatch, version int64, at time.Time) {
	g.T.Helper()
	one, err := g.Store.PayoutBatch(g.T.Context(), b.Merchant, b.ID)
	g.Must(err)
	same, _, err := g.Store.PayoutBatchByExternalID(g.T.Context(), b.Merchant, b.ExternalID)
	g.Must(err)
	list, err := g.Store.PayoutBatches(g.T.Context(), b.Merchant, store.Filter{Limit: 5})
	g.Must(err)
	for _, got := range append(list, one, same) {
		if !got.UpdatedAt.Equal(at) || got.Version != version {
			g.T.Errorf("batch is %s, version %d, updated at %s, want %d at %s", got.Status(), got.Version, got.UpdatedAt, version, at)
		}
	}
}

// The counts and status of a batch change with its payouts, and updatedAt is the time of the last
// change, although no payout writes the row of its batch.
func TestBatchUpdatedAt(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		b := requestBatch(g, batchOf("b", 10_00, 20_00, 30_00))
		wantUpdated(g, b, 1, b.UpdatedAt)
		payouts, err := g.Store.Payouts(t.Context(), g.Merchant.ID, store.Filter{Limit: 10})
		g.Must(err)
		later := func() time.Time {
			t.Helper()
			before, err := g.Store.PayoutBatch(t.Context(), b.Merchant, b.ID)
			g.Must(err)
			g.Clock.Advance(time.Second)
			g.Heartbeat()
			wantUpdated(g, b, before.Version, before.UpdatedAt) // not by time alone
			return g.Clock.Now()
		}
		at := later()
		_, err = g.Payouts.Cancel(t.Context(), g.Merchant.ID, payouts[0].ID)
		g.Must(err)
		wantUpdated(g, b, 1, at)
		later()
		g.Send()
		wantBatch(g, b, payment.BatchProcessing, "COMPLETED 2, CANCELED 1")
		ended := lastChange(g)
		if !ended.After(at) {
			t.Errorf("the payouts ended at %s, the batch was changed at %s", ended, at)
		}
		wantUpdated(g, b, 1, ended)
		at = later()
		complete(g)
		done := wantBatch(g, b, payment.BatchCompleted, "COMPLETED 2, CANCELED 1")
		wantUpdated(g, b, 2, done.CompletedAt)
		if done.CompletedAt.Before(at) {
			t.Errorf("completed at %s, want %s", done.CompletedAt, at)
		}
		later()
		g.Bank.Return(payouts[1].ExternalID, payouts[1].Amount)
		g.Notify("return", payouts[1].ExternalID)
		g.Apply()
		wantBatch(g, b, payment.BatchCompleted, "COMPLETED 1, CANCELED 1, RETURNED 1")
		if returned := lastChange(g); !returned.After(done.CompletedAt) {
			t.Errorf("returned at %s", returned)
		}
		wantUpdated(g, b, 2, lastChange(g))
		if n := batchEvents(g); n != 1 {
			t.Errorf("%d events", n)
		}
		g.WantProven()
	})
}

// lastChange is when the last payout of the merchant was changed.
func lastChange(g *coretest.Gateway) (last time.Time) {
	g.T.Helper()
	payouts, err := g.Store.Payouts(g.T.Context(), g.Merchant.ID, store.Filter{Limit: 10})
	g.Must(err)
	for i := range payouts {
		if payouts[i].UpdatedAt.After(last) {
			last = payouts[i].UpdatedAt
		}
	}
	return last
}
