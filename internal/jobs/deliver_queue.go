package jobs

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// handed is a delivery in hand, with the secret that signs it.
type handed struct {
	store.Delivery
	endpoint string
	secret   webhook.Secret
	// release gives its place at the endpoint back; nil while it waits for one.
	release func(healthy bool)
}

// deliveryQueue holds the deliveries in hand: how many a merchant has, and
// which wait for a place at their receiver. Its size is bounded by what the
// duty claims.
type deliveryQueue struct {
	mu      sync.Mutex
	count   map[payment.ID]int
	more    map[payment.ID]*backlog
	waiting map[string][]handed // by endpoint, oldest first
	born    []store.Delivery    // came into being in this process's hand
	short   bool                // what is due was not looked at for want of places
}

func newDeliveryQueue() *deliveryQueue {
	return &deliveryQueue{count: map[payment.ID]int{}, more: map[payment.ID]*backlog{}, waiting: map[string][]handed{}}
}

// inHand is how many deliveries of a merchant wait or are under way.
func (q *deliveryQueue) inHand(merchant payment.ID) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count[merchant]
}

// keep counts claimed deliveries of a merchant as in hand, of which more were
// asked for if more were due.
func (q *deliveryQueue) keep(merchant payment.ID, asked, got int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count[merchant] += got
	switch b := q.more[merchant]; {
	case b != nil:
		b.note(asked, got)
	case q.count[merchant] > 0:
		b = &backlog{}
		b.note(asked, got)
		q.more[merchant] = b
	}
}

// worth says whether n free places are worth a claim of a merchant's deliveries.
func (q *deliveryQueue) worth(merchant payment.ID, n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.more[merchant]
	if b == nil {
		b = &backlog{}
	}
	return b.worth(n, deliveriesInHand)
}

// reserve keeps a place for a delivery that comes into being; none where older
// ones, of the merchant or of whoever waits for its turn, wait to be claimed.
func (q *deliveryQueue) reserve(merchant payment.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b := q.more[merchant]; q.short || b != nil && b.more {
		return false
	}
	if q.count[merchant] >= deliveriesInHand {
		q.more[merchant] = &backlog{more: true}
		return false
	}
	q.count[merchant]++
	return true
}

// bear takes those that came into being and had a place kept.
func (q *deliveryQueue) bear(list []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.born = append(q.born, list...)
}

// takeBorn takes up to most of the deliveries that came into being in this
// process's hand, oldest first, in the order of merchants.
func (q *deliveryQueue) takeBorn(most int) []store.Delivery {
	q.mu.Lock()
	n := min(most, len(q.born))
	list := slices.Clone(q.born[:n])
	if q.born = q.born[n:]; len(q.born) == 0 {
		q.born = nil
	}
	q.mu.Unlock()
	slices.SortStableFunc(list, func(a, b store.Delivery) int { return bytes.Compare(a.Merchant[:], b.Merchant[:]) })
	return list
}

// lack notes whether what is due waits unseen, for want of places.
func (q *deliveryQueue) lack(short bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.short = short
}

// lacked says whether the duty should look again now that places are free:
// for those that are in hand one will do, a claim asks for a quarter.
func (q *deliveryQueue) lacked(free int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.born) > 0 || q.short && free*4 >= deliverPlaces
}

// add has a delivery in hand wait for its endpoint.
func (q *deliveryQueue) add(d handed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[d.endpoint] = append(q.waiting[d.endpoint], d)
}

// remove lets go of a delivery that waits no more, and says whether the duty
// should look for others now: where more are due than were taken, and enough
// places are free for a claim, or nothing is left in hand.
func (q *deliveryQueue) remove(merchant payment.ID) (look bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count[merchant]--
	if q.count[merchant] <= 0 {
		delete(q.count, merchant)
		delete(q.more, merchant)
		return true
	}
	b := q.more[merchant]
	return b != nil && b.more && b.worth(deliveriesInHand-q.count[merchant], deliveriesInHand)
}

// start takes the delivery that has waited longest for an endpoint, and a
// place there for it. ok is false where none waits, or no place is free; wait
// then is that of [webhook.Limiter.Acquire].
func (q *deliveryQueue) start(endpoint string, receivers *webhook.Limiter) (d handed, wait time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[endpoint]
	if len(list) == 0 {
		return handed{}, 0, false
	}
	release, wait, ok := receivers.Acquire(endpoint)
	if !ok {
		return handed{}, wait, false
	}
	d = list[0]
	d.release = release
	q.wait(endpoint, list[1:])
	return d, 0, true
}

// take takes those that wait for an endpoint and are meant, all of them if
// meant is nil.
func (q *deliveryQueue) take(endpoint string, meant func(handed) bool) (taken []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []handed
	for _, d := range q.waiting[endpoint] {
		if meant == nil || meant(d) {
			taken = append(taken, d.Delivery)
		} else {
			left = append(left, d)
		}
	}
	q.wait(endpoint, left)
	return taken
}

// wait sets who waits for an endpoint; the caller holds the lock.
func (q *deliveryQueue) wait(endpoint string, list []handed) {
	if len(list) == 0 {
		delete(q.waiting, endpoint)
		return
	}
	q.waiting[endpoint] = list
}
