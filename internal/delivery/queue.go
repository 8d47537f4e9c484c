package delivery

import (
	"slices"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// claimedPerMerchant is the largest number of deliveries of one merchant that a process claims at
// once: waiting for a slot at their receiver, in flight, or waiting for the commit of their end.
// See [Queue.share].
const claimedPerMerchant = sendSlots / 2

// pending is a claimed delivery with the data to send it.
type pending struct {
	store.Delivery

	endpoint string // the receiver, see [webhook.EndpointKey]
	secrets  []webhook.Secret
	// release releases its slot at the endpoint; nil until it has one.
	release func(healthy bool)
}

// oneAtATime reports whether no other delivery to the endpoint may be in flight: missed events must
// arrive in order.
func (d *pending) oneAtATime() bool { return d.InOrder || d.Down }

// Queue tracks the deliveries that this process has claimed: their number per
// merchant, those claimed on insert and not yet started, and those that wait for a
// slot at their receiver. A delivery that this process creates is claimed in the same
// commit if its merchant has capacity and no older delivery is due.
type Queue struct {
	node  *cluster.Node
	waker *worker.Waker

	free func() int // slots to send

	mu       sync.Mutex
	claimed  map[payment.ID]int
	sending  map[payment.ID]int // attempts in flight, of those claimed
	backlogs map[payment.ID]*worker.Backlog
	fresh    []store.Delivery     // claimed when they were created
	waiting  map[string][]pending // by endpoint, oldest first
	alone    map[payment.ID]bool  // endpoints that get one at a time and have an attempt in flight
	starved  bool                 // due deliveries were not polled, as no slot was free
}

// NewQueue returns an empty queue of a node, which wakes the worker that sends
// deliveries.
func NewQueue(node *cluster.Node, waker *worker.Waker) *Queue {
	return &Queue{
		node: node, waker: waker, free: func() int { return sendSlots },
		claimed: map[payment.ID]int{}, sending: map[payment.ID]int{}, backlogs: map[payment.ID]*worker.Backlog{}, waiting: map[string][]pending{}, alone: map[payment.ID]bool{},
	}
}

var _ write.Deliveries = (*Queue)(nil)

// share is how many deliveries of a merchant may be claimed: half of the slots that other merchants
// leave free, but at least one. So a merchant whose receivers all hang delays no other. The caller
// holds the lock.
func (q *Queue) share(merchant payment.ID) int {
	return max(1, min(claimedPerMerchant, (q.free()+q.sending[merchant])/2))
}

// Reserve implements [write.Deliveries].
func (q *Queue) Reserve(wanted map[payment.ID]int) map[payment.ID]int {
	if !q.node.Lease.Valid() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	reserved := make(map[payment.ID]int, len(wanted))
	for merchant, n := range wanted {
		if b := q.backlogs[merchant]; q.starved || b != nil && b.More {
			continue // new deliveries must not overtake older ones
		}
		if n = min(n, q.share(merchant)-q.claimed[merchant]); n > 0 {
			q.claimed[merchant] += n
			reserved[merchant] = n
		}
	}
	return reserved
}

// Accept implements [write.Deliveries].
func (q *Queue) Accept(reserved map[payment.ID]int, claimed []store.Delivery, due map[payment.ID]int) {
	unused := reserved
	for i := range claimed {
		unused[claimed[i].Merchant]--
	}
	poll := len(claimed)+len(due) > 0
	q.mu.Lock()
	q.fresh = append(q.fresh, claimed...)
	for merchant := range due {
		q.backlog(merchant).More = true
	}
	for merchant, n := range unused {
		b := q.backlogs[merchant]
		poll = poll || n > 0 && b != nil && b.More // they may have waited for this capacity
		for range n {
			q.remove(merchant)
		}
	}
	q.mu.Unlock()
	if poll {
		q.waker.Wake()
	}
}

// backlog is a merchant's backlog; the caller holds the lock.
func (q *Queue) backlog(merchant payment.ID) *worker.Backlog {
	b := q.backlogs[merchant]
	if b == nil {
		b = &worker.Backlog{}
		q.backlogs[merchant] = b
	}
	return b
}

// takeFresh takes up to limit of the deliveries that were claimed when they were
// created, oldest first, grouped by merchant.
func (q *Queue) takeFresh(limit int) []store.Delivery {
	q.mu.Lock()
	n := min(limit, len(q.fresh))
	list := slices.Clone(q.fresh[:n])
	if q.fresh = q.fresh[n:]; len(q.fresh) == 0 {
		q.fresh = nil
	}
	q.mu.Unlock()
	slices.SortStableFunc(list, func(a, b store.Delivery) int { return payment.CompareIDs(a.Merchant, b.Merchant) })
	return list
}

// returnUnstarted returns deliveries that were taken fresh and not started.
func (q *Queue) returnUnstarted(list []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fresh = slices.Concat(list, q.fresh)
}

// worthClaiming returns how many deliveries of a merchant to claim, with so many slots
// free; 0 if a claim is not worth its commit.
func (q *Queue) worthClaiming(merchant payment.ID, free int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	share := q.share(merchant)
	n := min(share-q.claimed[merchant], free)
	if n <= 0 {
		q.backlog(merchant).More = true
		return 0
	}
	b := worker.Backlog{}
	if known := q.backlogs[merchant]; known != nil {
		b = *known
	}
	if !b.Worth(n, share) {
		return 0
	}
	return n
}

// addClaimed counts the deliveries that a claim requested and got.
func (q *Queue) addClaimed(merchant payment.ID, requested, got int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.claimed[merchant] += got
	if q.claimed[merchant] > 0 {
		q.backlog(merchant).Claimed(requested, got)
	} else {
		q.drop(merchant)
	}
}

// done counts a delivery as no longer claimed, and returns whether the worker should poll now. It
// should if more deliveries are due than were claimed, and either enough slots are free for a claim
// or nothing is claimed any more.
func (q *Queue) done(merchant payment.ID) (poll bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(merchant)
}

// remove is done for a caller that holds the lock.
func (q *Queue) remove(merchant payment.ID) (poll bool) {
	q.claimed[merchant]--
	if q.claimed[merchant] <= 0 {
		q.drop(merchant)
		return true
	}
	b := q.backlogs[merchant]
	share := q.share(merchant)
	return b != nil && b.More && b.Worth(share-q.claimed[merchant], share)
}

func (q *Queue) drop(merchant payment.ID) {
	delete(q.claimed, merchant)
	delete(q.backlogs, merchant)
}

// setStarved records whether due deliveries were not polled, as no slot was free.
func (q *Queue) setStarved(starved bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.starved = starved
}

// shouldPoll reports whether the worker should poll again with these free slots: a
// fresh delivery needs one, a claim a quarter of all.
func (q *Queue) shouldPoll(free, all int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.fresh) > 0 || q.starved && free*4 >= all
}

// wait queues a delivery for a slot at its endpoint.
func (q *Queue) wait(d pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[d.endpoint] = append(q.waiting[d.endpoint], d)
}

// first is the index of the delivery that is the next one of a list. The caller holds the lock.
func (q *Queue) first(list []pending) int {
	at := 0
	for at < len(list) && list[at].oneAtATime() && q.alone[list[at].Endpoint] {
		at++
	}
	return at
}

// takeOutdated takes the deliveries that would be next and are outdated.
func (q *Queue) takeOutdated(endpoint string, outdated func(*pending) bool) (taken []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		list := q.waiting[endpoint]
		at := q.first(list)
		if at == len(list) || !outdated(&list[at]) {
			return taken
		}
		taken = append(taken, list[at].Delivery)
		q.setWaiting(endpoint, without(list, at))
	}
}

// without is a list without one of its deliveries.
func without(list []pending, at int) []pending {
	if at == 0 {
		return list[1:]
	}
	return slices.Concat(list[:at], list[at+1:])
}

// next takes the delivery that has waited longest for an endpoint, with a slot. ok is false if none
// waits, or no slot is free. A merchant's endpoint that is down or catches up has one slot. pause
// is that of [webhook.Limiter.Acquire].
func (q *Queue) next(endpoint string, receivers *webhook.Limiter) (d pending, pause time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.waiting[endpoint]
	at := q.first(list)
	if at == len(list) {
		return pending{}, 0, false
	}
	release, pause, ok := receivers.Acquire(endpoint, !list[at].Down) // the claim keeps the pauses of one that is down
	if !ok {
		return pending{}, pause, false
	}
	d = list[at]
	q.sending[d.Merchant]++
	if d.oneAtATime() {
		q.alone[d.Endpoint] = true
	}
	d.release = func(healthy bool) {
		release(healthy)
		q.sent(&d)
	}
	q.setWaiting(endpoint, without(list, at))
	return d, 0, true
}

// sent counts an attempt as ended.
func (q *Queue) sent(d *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sending[d.Merchant]--; q.sending[d.Merchant] <= 0 {
		delete(q.sending, d.Merchant)
	}
	if d.oneAtATime() {
		delete(q.alone, d.Endpoint)
	}
}

// takeWaiting takes the deliveries that wait for an endpoint and match; all of them if
// match is nil.
func (q *Queue) takeWaiting(endpoint string, match func(*pending) bool) (taken []store.Delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var left []pending
	for i := range q.waiting[endpoint] {
		if d := &q.waiting[endpoint][i]; match == nil || match(d) {
			taken = append(taken, d.Delivery)
		} else {
			left = append(left, *d)
		}
	}
	q.setWaiting(endpoint, left)
	return taken
}

// setWaiting sets the deliveries that wait for an endpoint; the caller holds the lock.
func (q *Queue) setWaiting(endpoint string, list []pending) {
	if len(list) == 0 {
		delete(q.waiting, endpoint)
		return
	}
	q.waiting[endpoint] = list
}
