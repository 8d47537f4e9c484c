package flow_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
	"github.com/porteira/porteira/internal/wire"
)

// set writes a setting, by which a test sees whether a work was committed.
func (v *teller) set(name string) flow.Work {
	return flow.Work{Run: func(tx *store.Tx) error { return tx.SetSetting(v.t.Context(), name, "done") }}
}

func (v *teller) setting(name string) string {
	v.t.Helper()
	value, err := v.s.Setting(v.t.Context(), name)
	v.must(err)
	return value
}

// A request that fails, in whatever way, is answered so; those that were to be
// committed with it are not.
func TestNeighboursDoNotFail(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v := newTeller(t, storetest.Open(t, o), w, clock)
		broken := errors.New("broken")
		for name, fails := range map[string]func(tx *store.Tx) error{
			"error": func(*store.Tx) error { return broken },
			"known": func(*store.Tx) error { return problem.New(problem.InvalidState, "not now") },
			"panic": func(*store.Tx) error { panic("a bug") },
			"conflict": func(tx *store.Tx) error { // which a server tells of at the end
				stale := v.p
				stale.Version = 8
				return tx.UpdatePayin(t.Context(), &stale, 7)
			},
			"conflict behind what is known": func(tx *store.Tx) error {
				stale := v.p
				stale.Version = 8
				if err := tx.UpdatePayin(t.Context(), &stale, 7); err != nil {
					return err
				}
				_, err := tx.Payin(t.Context(), payment.ID{1}, payment.ID{1})
				return err
			},
		} {
			errs := v.f.Together(t.Context(), v.set(name+" first"), flow.Work{Run: func(tx *store.Tx) error {
				if err := tx.SetSetting(t.Context(), name+" failed", "done"); err != nil {
					return err
				}
				return fails(tx)
			}}, v.set(name+" last"))
			if errs[0] != nil || errs[1] == nil || errs[2] != nil {
				t.Errorf("%s: answered %v", name, errs)
			}
			if v.setting(name+" first") != "done" || v.setting(name+" last") != "done" {
				t.Errorf("%s: a neighbour's work is not there", name)
			}
			if name != "known" && v.setting(name+" failed") != "" {
				t.Errorf("%s: what failed left something", name)
			}
		}
	})
}

// Batches lock merchants in one order, whatever the order of requests: two that
// take them in opposite order would wait for each other. Of one merchant,
// requests are decided as they came.
func TestBatchesLockInOrder(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	v := newTeller(t, storetest.Open(t, storetest.Prepare(t, "sqlite", w)), w, clock)
	var ran []int
	work := func(merchant byte, number int) flow.Work {
		return flow.Work{Merchant: payment.ID{merchant}, Run: func(*store.Tx) error {
			ran = append(ran, number)
			return nil
		}}
	}
	v.must(errors.Join(v.f.Together(t.Context(), work(9, 4), work(1, 0), work(5, 3), work(1, 1), work(9, 5), work(1, 2))...))
	if want := []int{0, 1, 2, 3, 4, 5}; !slices.Equal(ran, want) {
		t.Errorf("ran in the order %v, want %v", ran, want)
	}
}

// cutCommits breaks the connection at as many of the next commits as it is told
// to, before or after they take place.
func cutCommits(w *env.Env, when env.Failpoint) (next *int) {
	next = new(int)
	w.OnFailpoint = func(m env.Failpoint) error {
		if m != when || *next == 0 {
			return nil
		}
		*next--
		return errors.New("the connection broke")
	}
	return next
}

// A COMMIT of which nobody knows whether it took place is run again, with the
// same ids: the request is answered as if nothing had been, and its effect is
// there once.
func TestUnknownCommitIsRunAgain(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			w := env.System(env.OutboundOptions{})
			cuts := cutCommits(&w, when)
			storetest.Each(t, w, func(t *testing.T, o store.Options) {
				v := newTeller(t, storetest.Open(t, o), w, nil)
				v.must(v.f.Fund(t.Context(), v.m, 1000))
				var held money.Cents
				for _, amount := range []money.Cents{300, 600} { // of 1000 and of 700: the one would fit twice, the other not
					*cuts = 2
					reference := amount.String()
					p, replayed, err := v.f.RequestPayout(t.Context(), v.m, &wire.PayoutRequest{
						Amount: wire.Some(int64(amount)), PIXKey: wire.Some("k"), PIXKeyType: wire.Some("EVP"), ReferenceID: wire.Some(reference), NormalKey: "k",
					})
					v.must(err)
					held += amount
					b, err := v.s.Balances(t.Context(), v.m.ID)
					v.must(err)
					if replayed || p.Status != payment.PayoutPending || b[ledger.Available] != 1000-held || b[ledger.Held] != held || *cuts != 0 {
						t.Errorf("%s: payout is %s, replayed %v, balances %v, %d cuts left", reference, p.Status, replayed, b, *cuts)
					}
					if _, err := v.s.Payout(t.Context(), v.m.ID, p.ID); err != nil {
						t.Errorf("%s: the payout that was answered: %v", reference, err)
					}
				}
				*cuts = 2
				in, replayed, err := v.f.CreatePayin(t.Context(), v.m, &wire.PayinRequest{
					Method: wire.Some("PIX"), Amount: wire.Some(int64(100)), ReferenceID: wire.Some("r"), ExpiresIn: wire.Some(int64(3600)),
				})
				v.must(err)
				if got, err := v.s.Payin(t.Context(), v.m.ID, in.ID); err != nil || replayed || got.ReferenceID != "r" || *cuts != 0 {
					t.Errorf("pay-in is %+v, %v, replayed %v, %d cuts left", got, err, replayed, *cuts)
				}
			})
		})
	}
}

// One burst is no crowd, nor are the few that come while a batch is committed.
func TestCrowded(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name    string
		waiting []int
		want    bool
	}{
		{"nobody", []int{0}, false},
		{"a burst", []int{200}, false},
		{"a few each time", slices.Repeat([]int{31}, 1000), false},
		{"dozens each time", slices.Repeat([]int{48}, 20), true},
		{"dozens, and nobody between", slices.Repeat([]int{48, 0}, 100), false},
		{"dozens a while ago", append(slices.Repeat([]int{64}, 100), slices.Repeat([]int{1}, 10)...), false},
	} {
		if got := flow.CrowdedAfter(v.waiting...); got != v.want {
			t.Errorf("%s: %v", v.name, got)
		}
	}
}
