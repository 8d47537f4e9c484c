package jobs

import (
	"sync"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// handed is a delivery in hand, with the secret that signs it.
type handed struct {
	store.Delivery
	secret webhook.Secret
}

// deliveryQueue holds the deliveries in hand: how many a merchant has, and
// which wait for a place at their receiver. Its size is bounded by what the
// duty claims.
type deliveryQueue struct {
	mu      sync.Mutex
	count   map[payment.ID]int
	waiting map[string][]handed // by endpoint, oldest first
}

func newDeliveryQueue() *deliveryQueue {
	return &deliveryQueue{count: map[payment.ID]int{}, waiting: map[string][]handed{}}
}

// inHand is how many deliveries of a merchant wait or are under way.
func (q *deliveryQueue) inHand(merchant payment.ID) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count[merchant]
}

// add takes a delivery in hand; it waits for its endpoint.
func (q *deliveryQueue) add(key string, d handed) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.count[d.Merchant]++
	q.waiting[key] = append(q.waiting[key], d)
}

// remove lets go of a delivery that next has given out.
func (q *deliveryQueue) remove(merchant payment.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count[merchant]--; q.count[merchant] <= 0 {
		delete(q.count, merchant)
	}
}

// waitsFor says whether a delivery waits for the endpoint.
func (q *deliveryQueue) waitsFor(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting[key]) > 0
}

// next takes the delivery that has waited longest for the endpoint.
func (q *deliveryQueue) next(key string) (d handed, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[key]
	if len(list) == 0 {
		return handed{}, false
	}
	d = list[0]
	if len(list) == 1 {
		delete(q.waiting, key)
	} else {
		q.waiting[key] = list[1:]
	}
	return d, true
}
