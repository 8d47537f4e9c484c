package flow_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// hands count the places that they keep, and note what they get.
type hands struct {
	notices, deliveries int // places kept
	taken               []store.Held
}

func (h *hands) RoomForNotice() bool {
	h.notices++
	return true
}

func (h *hands) RoomForDelivery(payment.ID) bool {
	h.deliveries++
	return true
}

func (h *hands) Take(held store.Held) { h.taken = append(h.taken, held) }

func (h *hands) GiveBack(held store.Held) {
	h.notices -= held.NoticePlaces
	h.deliveries -= len(held.Deliveries)
}

// wantTaken says how much was handed over, which is all that places are kept for.
func (h *hands) wantTaken(t *testing.T, notices, deliveries int) {
	t.Helper()
	places, gotNotices, gotDeliveries := 0, 0, 0
	for i := range h.taken {
		places += h.taken[i].NoticePlaces
		gotNotices += len(h.taken[i].Notices)
		gotDeliveries += len(h.taken[i].Deliveries)
	}
	if gotNotices != notices || gotDeliveries != deliveries {
		t.Errorf("got %d notices and %d deliveries, want %d and %d", gotNotices, gotDeliveries, notices, deliveries)
	}
	if h.notices != places || h.deliveries != gotDeliveries {
		t.Errorf("%d and %d places are kept, for %d and %d", h.notices, h.deliveries, places, gotDeliveries)
	}
}

// birth makes a notice and a delivery of the merchant's due, and then comes to
// the end that it is told.
func (v *teller) birth(name string, end func() error) flow.Work {
	return flow.Work{Merchant: v.m.ID, Run: func(tx *store.Tx) error {
		if _, err := tx.RecordNotice(v.t.Context(), store.Notice{Processor: v.t.Name(), ID: name, Body: []byte(name)}); err != nil {
			return err
		}
		e := payment.Event{Merchant: v.m.ID, Type: payment.EventPayinUnderpaid, Subject: v.p.ID, Version: 2}
		tx.Announce(e, []byte("{}"), "https://shop.example/hook")
		return end()
	}}
}

func fine() error { return nil }

// due counts what others could claim.
func (v *teller) due() (notices, deliveries int) {
	v.t.Helper()
	none := errors.New("nothing is to be changed")
	err := v.s.Write(v.t.Context(), func(tx *store.Tx) error {
		list, err := tx.ClaimNotices(v.t.Context(), payment.ID{1}, 1000)
		v.must(err)
		for i := range list {
			if list[i].Processor == v.t.Name() {
				notices++
			}
		}
		news, err := tx.ClaimDeliveries(v.t.Context(), v.m.ID, payment.ID{1}, 1000)
		v.must(err)
		deliveries = len(news)
		return none
	})
	if !errors.Is(err, none) {
		v.t.Fatal(err)
	}
	return notices, deliveries
}

// Hands get what was committed, and only that; places of what was not are given
// back, once.
func TestHandsGetWhatIsCommitted(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v, h := newTeller(t, storetest.Open(t, o), w, clock), &hands{}
		v.f.HandTo(h)
		v.must(errors.Join(v.f.Together(t.Context(), v.birth("a", fine), v.birth("b", fine))...))
		h.wantTaken(t, 2, 2)

		broken := func() error { return errors.New("broken") }
		panics := func() error { panic("a bug") }
		errs := v.f.Together(t.Context(), v.birth("c", fine), v.birth("broken", broken), v.birth("d", fine), v.birth("panics", panics))
		if errs[0] != nil || errs[1] == nil || errs[2] != nil || errs[3] == nil {
			t.Errorf("answered %v", errs)
		}
		h.wantTaken(t, 4, 4)
		if notices, deliveries := v.due(); notices+deliveries > 0 {
			t.Errorf("%d notices and %d deliveries are due as well", notices, deliveries)
		}

		// One that is known already is nobody's to apply, and its place goes with the rest.
		v.must(errors.Join(v.f.Together(t.Context(), v.birth("a", fine))...))
		h.wantTaken(t, 4, 5)
		if last := h.taken[len(h.taken)-1]; last.NoticePlaces != 1 || len(last.Notices) != 0 || last.Node != v.f.Node() {
			t.Errorf("handed over %+v", last)
		}
	})
}

// A transaction that the engine has run again holds what its last run made.
func TestRunAgainHoldsOnce(t *testing.T) {
	w := env.System(env.OutboundOptions{})
	v, h := newTeller(t, storetest.Open(t, storetest.Prepare(t, "postgres", w)), w, nil), &hands{}
	v.f.HandTo(h)
	runs := 0
	v.must(errors.Join(v.f.Together(t.Context(), v.birth("a", func() error {
		if runs++; runs < 3 {
			return &pgconn.PgError{Code: "40001"} // lost a race
		}
		return nil
	}))...))
	if runs != 3 {
		t.Errorf("ran %d times", runs)
	}
	h.wantTaken(t, 1, 1)
}

// What a process took in hand by a COMMIT of which nobody knows is doubted: the
// batch is run again, and with the next beat all of it is free.
func TestBirthsOfUnknownCommit(t *testing.T) {
	for _, when := range []env.Failpoint{env.BeforeCommit, env.AfterCommit} {
		t.Run(string(when), func(t *testing.T) {
			w := env.System(env.OutboundOptions{})
			cuts := cutCommits(&w, when)
			storetest.Each(t, w, func(t *testing.T, o store.Options) {
				v, h := newTeller(t, storetest.Open(t, o), w, nil), &hands{}
				v.f.HandTo(h)
				before := v.f.Node()
				*cuts = 2
				v.must(v.f.RecordNotice(t.Context(), t.Name(), "n", "", []byte("n")))
				if *cuts != 0 {
					t.Fatalf("%d cuts are left", *cuts)
				}
				if when == env.AfterCommit {
					h.wantTaken(t, 0, 0) // it is known by now, and nobody's
					h.taken = nil
				} else {
					h.wantTaken(t, 1, 0)
				}
				if notices, _ := v.due(); notices != 0 {
					t.Errorf("%d notices are due", notices)
				}
				_, err := v.f.Beat(t.Context())
				v.must(err)
				if notices, _ := v.due(); notices != 1 || v.f.Node() == before {
					t.Errorf("after a beat %d notices are due, node %s after %s", notices, v.f.Node(), before)
				}
				// An unknown COMMIT by which nothing came into hand is no reason to doubt.
				before, *cuts = v.f.Node(), 2
				v.must(errors.Join(v.f.Together(t.Context(), v.set("x"))...))
				_, err = v.f.Beat(t.Context())
				v.must(err)
				if v.f.Node() != before {
					t.Error("joined anew for nothing")
				}
			})
		})
	}
}

// A bug in what is told of a commit leaves nothing in the hand of nobody.
func TestPanicBehindCommit(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		s := storetest.Open(t, o)
		v, h := newTeller(t, s, w, clock), &hands{}
		armed := true
		f := flow.New(flow.Options{Store: s, Env: w, Wake: func(flow.Wake) {
			if armed {
				armed = false
				panic("a bug")
			}
		}})
		v.must(f.Join(t.Context(), 0, false))
		f.HandTo(h)
		before := f.Node()
		v.f = f
		if errs := f.Together(t.Context(), v.birth("a", fine)); errs[0] == nil {
			t.Error("a panic was answered as if nothing had been")
		}
		h.wantTaken(t, 0, 0)
		_, err := f.Beat(t.Context())
		v.must(err)
		if notices, deliveries := v.due(); notices != 1 || deliveries != 1 || f.Node() == before {
			t.Errorf("%d notices and %d deliveries are due, node %s after %s", notices, deliveries, f.Node(), before)
		}
	})
}

// A process that is on no list, or was given up, holds nothing.
func TestGivenUpProcessHoldsNothing(t *testing.T) {
	w, clock := env.Virtual(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 1)
	storetest.Each(t, w, func(t *testing.T, o store.Options) {
		v, h := newTeller(t, storetest.Open(t, o), w, clock), &hands{}
		v.f.HandTo(h)
		v.must(v.f.Leave(context.Background()))
		v.must(errors.Join(v.f.Together(t.Context(), v.birth("a", fine))...))
		h.wantTaken(t, 0, 0)
		if notices, deliveries := v.due(); notices != 1 || deliveries != 1 {
			t.Errorf("%d notices and %d deliveries are due", notices, deliveries)
		}
	})
}
