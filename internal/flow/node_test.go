package flow_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// After a claim whose COMMIT is unknown a process does not keep what it may
// have taken in hand: with the next beat it is free again, and a payout that
// may have been sent is unknown.
func TestUnknownClaimIsDisowned(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		v := newTeller(t, s, w, clock)
		v.must(v.f.Fund(t.Context(), v.m, 1000))
		p, _, err := v.f.RequestPayout(t.Context(), v.m, &wire.PayoutRequest{
			Amount: wire.Some(int64(1000)), PIXKey: wire.Some("k"), PIXKeyType: wire.Some("EVP"), ReferenceID: wire.Some("r"), NormalKey: "k",
		})
		v.must(err)
		sends, _, err := v.f.BeginSends(t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
		v.must(err)
		before := v.f.Node()
		v.f.Doubt()
		_, err = v.f.Beat(t.Context())
		v.must(err)
		got, err := s.Payout(t.Context(), p.Merchant, p.ID)
		v.must(err)
		if v.f.Node() == before || got.Step != payment.StepUnknown || !got.ClaimedBy.IsZero() || got.NextAt.IsZero() {
			t.Fatalf("node %s after %s, payout %s claimed by %s", v.f.Node(), before, got.Step, got.ClaimedBy)
		}
		// What the old id still has under way ends without harm.
		v.must(v.f.EndSend(t.Context(), sends[0], processor.TransferAnswer{Outcome: processor.NotSent}))
		if got, err = s.Payout(t.Context(), p.Merchant, p.ID); err != nil || got.Step != payment.StepUnknown {
			t.Fatalf("payout is %s, %v", got.Step, err)
		}
	})
}

// A claim whose COMMIT took place, and nobody knows it, is run again and finds
// nothing: what it took is not in hand, and given back with the next beat.
func TestClaimOfUnknownCommit(t *testing.T) {
	w := env.System(env.OutboundOptions{})
	cuts := cutCommits(&w, env.AfterCommit)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		v := newTeller(t, s, w, nil)
		v.must(v.f.Fund(t.Context(), v.m, 1000))
		p, _, err := v.f.RequestPayout(t.Context(), v.m, &wire.PayoutRequest{
			Amount: wire.Some(int64(1000)), PIXKey: wire.Some("k"), PIXKeyType: wire.Some("EVP"), ReferenceID: wire.Some("r"), NormalKey: "k",
		})
		v.must(err)
		before := v.f.Node()
		*cuts = 1
		sends, taken, err := v.f.BeginSends(t.Context(), store.Due{Merchant: v.m.ID, Processor: "fake"}, 10)
		if err != nil || len(sends) != 0 || taken != 0 || *cuts != 0 {
			t.Fatalf("claimed %v, %d, %v; %d cuts are left", sends, taken, err, *cuts)
		}
		_, err = v.f.Beat(t.Context())
		v.must(err)
		got, err := s.Payout(t.Context(), p.Merchant, p.ID)
		v.must(err)
		if v.f.Node() == before || got.Step != payment.StepUnknown || !got.ClaimedBy.IsZero() || got.NextAt.IsZero() {
			t.Errorf("node %s after %s, payout %s claimed by %s", v.f.Node(), before, got.Step, got.ClaimedBy)
		}
	})
}

// A payment that cannot be told from another is not booked as if it could.
func TestPaymentWithoutAnIDIsNotBooked(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v := newTeller(t, storetest.Open(t, o), w, clock)
		for _, pay := range []processor.Payment{{Amount: 100}, {ID: "E", Amount: 0}, {ID: "E", Amount: -5}} {
			report := processor.ChargeReport{Lookup: processor.Found, Payments: []processor.Payment{pay}}
			if err := v.f.ApplyCharge(t.Context(), "fake", v.p.ExternalID, report, nil); err == nil {
				t.Errorf("%+v was booked", pay)
			}
		}
		p, err := v.s.Payin(t.Context(), v.m.ID, v.p.ID)
		v.must(err)
		if p.Status != payment.PayinPending || p.PaidAmount != 0 {
			t.Errorf("order is %s with %d paid", p.Status, p.PaidAmount)
		}
	})
}
