package jobs

import "github.com/porteira/porteira/internal/payment"

// Places counts the places that are taken in pools, and by deliveries in hand.
func (j *Jobs) Places() (taken int) {
	for _, p := range []*pool{j.submitting, j.resolving, j.noticing, j.delivering} {
		taken += len(p.places)
	}
	j.queue.mu.Lock()
	defer j.queue.mu.Unlock()
	for _, n := range j.queue.count {
		taken += n
	}
	return taken + len(j.queue.born) + len(j.queue.waiting)
}

// Sending is how many deliveries are in flight.
func (j *Jobs) Sending() int { return len(j.delivering.places) }

// InHand is how many deliveries of a merchant are in hand.
func (j *Jobs) InHand(merchant payment.ID) int { return j.queue.inHand(merchant) }
