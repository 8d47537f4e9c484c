package flow_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// A processor may speak only of orders that it was given: another one's word
// moves no order. Money that it says came in is kept, and a person is told.
func TestAnotherProcessorsWordMovesNoOrder(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		v := newTeller(t, s, w, clock)
		v.must(v.f.Fund(t.Context(), v.m, 1000))
		v.must(v.f.ApplyCharge(t.Context(), "other", v.p.ExternalID, processor.ChargeReport{
			Lookup: processor.Found, State: processor.ChargeFailed, Payments: []processor.Payment{{ID: "E1", Amount: 100}},
		}, nil))
		p, err := s.Payin(t.Context(), v.m.ID, v.p.ID)
		v.must(err)
		b, err := s.Balances(t.Context(), v.m.ID)
		v.must(err)
		if p.Status != payment.PayinPending || b[ledger.Unapplied] != 100 || b[ledger.Available] != 1000 {
			t.Errorf("order is %s, unapplied %d, available %d", p.Status, b[ledger.Unapplied], b[ledger.Available])
		}

		q, _, err := v.f.RequestPayout(t.Context(), v.m, &wire.PayoutRequest{
			Amount: wire.Some(int64(1000)), PIXKey: wire.Some("k"), PIXKeyType: wire.Some("EVP"), ReferenceID: wire.Some("r"), NormalKey: "k",
		})
		v.must(err)
		_, _, err = v.f.BeginSends(t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
		v.must(err)
		v.must(v.f.ApplyTransferNotice(t.Context(), "other", q.ExternalID, processor.TransferReport{
			Lookup: processor.Found, State: processor.TransferFailed,
		}, &store.Notice{Processor: "other", ID: "n"}))
		got, err := s.Payout(t.Context(), v.m.ID, q.ID)
		v.must(err)
		if got.Status != payment.PayoutProcessing || got.Step != payment.StepIntent {
			t.Errorf("payout is %s/%s", got.Status, got.Step)
		}
		open, err := s.OpenExceptions(t.Context(), 10)
		v.must(err)
		if len(open) != 2 || open[0].Kind != store.ExceptionUnmatched || open[1].Kind != store.ExceptionNotice {
			t.Errorf("exceptions: %+v", open)
		}
	})
}
