package storetest

import (
	"context"
	"fmt"
	"strings"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var eventTests = []test{
	{"an event keeps all that it has", eventRoundTrips},
	{"numbers have no gaps, whoever writes and whatever fails", numbersHaveNoGaps},
	{"a reader that goes on from the last number misses nothing", readerMissesNothing},
	{"each merchant counts for itself", countersApart},
	{"what events are about is read after a number", subjectsAreRead},
}

func eventRoundTrips(b *bench) {
	m, subject := b.merchant(), b.id()
	b.announce(m, subject, 3, "")
	list, err := b.s.Events(b.Context(), m.ID, 1, 10)
	b.must(err)
	equal(b, "events after the first", len(list), 2)
	e := list[0]
	equal(b, "number", e.Number, 2)
	equal(b, "type", e.Type, payment.EventPayinPaid)
	equal(b, "subject", e.Subject, subject)
	equal(b, "version", e.Version, 2)
	want, err := e.Envelope([]byte(`{"n":1}`))
	b.must(err)
	sameBytes(b, "body", e.Body, want)
	one, err := b.s.Event(b.Context(), m.ID, e.ID)
	b.must(err)
	equal(b, "by id", fmt.Sprintf("%+v", one), fmt.Sprintf("%+v", e))
	if bound := payment.MinIDAt(e.CreatedAt); strings.Compare(e.ID.String()[:13], bound.String()[:13]) != 0 {
		b.Errorf("the id %s is not of the event's time %s", e.ID, e.CreatedAt)
	}
}

func subjectsAreRead(b *bench) {
	m, subject := b.merchant(), b.id()
	last, err := b.s.LastEvent(b.Context(), m.ID)
	b.must(err)
	equal(b, "last number of none", last, 0)
	b.announce(m, subject, 3, "")
	if last, err = b.s.LastEvent(b.Context(), m.ID); err != nil || last != 3 {
		b.Errorf("the last event is %d, %v", last, err)
	}
	list, next, err := b.s.SubjectsAfter(b.Context(), m.ID, 1, 1)
	b.must(err)
	equal(b, "subjects", fmt.Sprint(list, next), fmt.Sprint([]payment.ID{subject}, 2))
	list, next, err = b.s.SubjectsAfter(b.Context(), m.ID, 3, 5)
	b.must(err)
	equal(b, "after the last", fmt.Sprint(len(list), next), "0 3")
}

// gapless wants a merchant's events to be numbered from 1 to n.
func (b *bench) gapless(m store.Merchant, n int) {
	b.Helper()
	list, err := b.s.Events(b.Context(), m.ID, 0, n+10)
	b.must(err)
	equal(b, "events", len(list), n)
	for i := range list {
		if list[i].Number != int64(i+1) {
			b.Fatalf("event %d has number %d", i+1, list[i].Number)
		}
	}
}

func numbersHaveNoGaps(b *bench) {
	const writers, rounds = 8, 12
	one, two := b.merchant(), b.merchant()
	b.together(writers, func(ctx context.Context, w int) error {
		for i := range rounds {
			err := b.s.Write(ctx, func(tx *store.Tx) error {
				tell(tx, one.ID, b.id(), 1, "")
				tell(tx, two.ID, b.id(), 1, "")
				tell(tx, one.ID, b.id(), 1, "")
				if i%3 == w%3 {
					return errOnPurpose
				}
				return nil
			})
			if failed := i%3 == w%3; err != nil && !failed {
				return err
			}
		}
		return nil
	})
	b.gapless(one, writers*rounds*2*2/3)
	b.gapless(two, writers*rounds*2/3)
}

// Numbers become visible in their order: a later one is never seen before an
// earlier one, which a reader with a cursor would then skip.
func readerMissesNothing(b *bench) {
	const writers, rounds = 4, 25
	m := b.merchant()
	stop := make(chan struct{})
	seen := make(chan int64)
	go func() {
		var last int64
		defer func() { seen <- last }()
		for {
			ended := false
			select {
			case <-stop:
				ended = true
			default:
			}
			list, err := b.s.Events(b.Context(), m.ID, last, 3)
			if err != nil {
				b.Error(err)
				return
			}
			for i := range list {
				if list[i].Number != last+1 {
					b.Errorf("event %d follows %d", list[i].Number, last)
				}
				last = list[i].Number
			}
			if ended && len(list) == 0 {
				return
			}
		}
	}()
	b.together(writers, func(ctx context.Context, _ int) error {
		for range rounds {
			if err := b.s.Write(ctx, func(tx *store.Tx) error { tell(tx, m.ID, b.id(), 1, ""); return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	close(stop)
	equal(b, "events read", <-seen, writers*rounds)
}

func countersApart(b *bench) {
	one, two := b.merchant(), b.merchant()
	b.write(func(tx *store.Tx) error {
		for range 3 {
			tell(tx, two.ID, b.id(), 1, "")
			tell(tx, one.ID, b.id(), 1, "")
		}
		return nil
	})
	b.gapless(one, 3)
	b.gapless(two, 3)
}
