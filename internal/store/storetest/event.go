package storetest

import (
	"errors"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var eventTests = []test{
	{"an event keeps all its fields", func(s *suite) {
		m, subject := s.merchant(), s.id()
		s.commit(addEvents(m, subject, 3, ""))
		e := s.events(m)[1]
		body, err := e.Envelope([]byte(`{"n":1}`))
		s.must(err)
		s.equal("event", e, payment.Event{
			Merchant: m.ID, Number: 2, ID: e.ID, Type: payment.EventPayinPaid, Subject: subject, Version: 2, CreatedAt: e.CreatedAt, Body: body,
		})
		s.equal("by id", must(s.store.Event(s.Context(), m.ID, e.ID)), e)
		s.equal("time in the id", e.ID.String()[:13], payment.MinIDAt(e.CreatedAt).String()[:13])
		s.equal("one after the first", must(s.store.Events(s.Context(), m.ID, 1, 1)), []payment.Event{e})
		s.wantError(s.try(addEvents(m, subject, 1, ""), does(nil, func(_ *loaded, c *changes) {
			c.AddEvent(payment.Event{Merchant: m.ID, Subject: subject}, []byte(`[]`), "")
		})), payment.ErrEventData)
		s.equal("events after a malformed one", len(s.events(m)), 3)
	}},
	{"numbers have no gaps, with concurrent and with failed commits", func(s *suite) {
		const writers, rounds = 8, 12
		one, two := s.merchant(), s.merchant()
		s.concurrently(writers, func(w int) error {
			for i := range rounds {
				var end error
				if i%3 == w%3 {
					end = errOnPurpose
				}
				s.wantError(s.try(addEvents(one, s.id(), 1, ""), addEvents(two, s.id(), 1, ""), addEvents(one, s.id(), 1, ""), fail(end)), end)
			}
			return nil
		})
		s.equal("events of each", values(len(s.events(one)), len(s.events(two))), values(writers*rounds*2*2/3, writers*rounds*2/3))
	}},
	// Numbers become visible in their order: a reader with a cursor would skip one that
	// became visible after a higher one.
	{"a reader that continues from the last number misses nothing", func(s *suite) {
		const writers, rounds = 4, 25
		m := s.merchant()
		stop, seen := make(chan struct{}), make(chan int64)
		go func() {
			var last int64
			defer func() { seen <- last }()
			for ended := false; ; {
				select {
				case <-stop:
					ended = true
				default:
				}
				list, err := s.store.Events(s.Context(), m.ID, last, 3)
				for i := range list {
					s.equal("the next number", list[i].Number, last+1)
					last = list[i].Number
				}
				if err != nil || ended && len(list) == 0 {
					s.wantError(err, nil)
					return
				}
			}
		}()
		s.concurrently(writers, func(int) (err error) {
			for i := 0; i < rounds && err == nil; i++ {
				err = s.try(addEvents(m, s.id(), 1, ""))
			}
			return err
		})
		close(stop)
		s.equal("events read", <-seen, writers*rounds)
	}},
	{"merchants have separate numbers, in the order of the operations", func(s *suite) {
		one, two := s.merchant(), s.merchant()
		a, b := s.id(), s.id()
		s.commit(addEvents(two, a, 2, ""), addEvents(one, a, 1, ""), addEvents(two, b, 1, ""), addEvents(one, b, 2, ""))
		for m, want := range map[payment.ID][]payment.ID{one.ID: {a, b, b}, two.ID: {a, a, b}} {
			for after, subjects := range [][]payment.ID{want, want[1:], want[2:], nil} {
				list, last, err := s.store.SubjectsAfter(s.Context(), m, int64(after), 10)
				s.must(err)
				s.equal("subjects, and the last number", values(list, last), values(subjects, 3))
			}
			list, last, err := s.store.SubjectsAfter(s.Context(), m, 1, 1)
			s.must(err)
			s.equal("one subject, and its number", values(list, last), values(want[1:2], 2))
		}
		s.equal("events of a new merchant", len(s.events(s.merchant())), 0)
	}},
}

var errOnPurpose = errors.New("on purpose")

// fail makes a commit fail.
func fail(err error) operation {
	return operation{decide: func(*loaded, *changes) error { return err }}
}

// addEvents adds n events of an order, to be delivered to url unless that is empty.
func addEvents(m store.Merchant, subject payment.ID, n int, url string) operation {
	return does(nil, func(_ *loaded, c *changes) {
		for i := range n {
			c.AddEvent(payment.Event{Merchant: m.ID, Type: payment.EventPayinPaid, Subject: subject, Version: int64(i + 1)}, []byte(`{"n":1}`), url)
		}
	})
}

// events reads all events of a merchant, which must be numbered from 1.
func (s *suite) events(m store.Merchant) []payment.Event {
	s.Helper()
	list := must(s.store.Events(s.Context(), m.ID, 0, 10_000))
	for i := range list {
		if list[i].Number != int64(i+1) {
			s.Fatalf("event %d has number %d", i+1, list[i].Number)
		}
	}
	s.equal("last number", must(s.store.LastEvent(s.Context(), m.ID)), len(list))
	return list
}
