package sandboxbank

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// timer fires once: it moves an order, ends a card's analysis, or sends a
// notice.
type timer struct {
	due    time.Time // by the bank's clock
	serial uint64    // order among timers that are due at once
	order  orderKey
	charge string // its card is in analysis
	notice string
	tries  int // how often the notice was refused, or the question asked
}

// timerHeap holds timers, the next one first.
type timerHeap []timer

// Len implements [heap.Interface].
func (h timerHeap) Len() int { return len(h) }

// Less implements [heap.Interface].
func (h timerHeap) Less(i, j int) bool {
	if c := h[i].due.Compare(h[j].due); c != 0 {
		return c < 0
	}
	return h[i].serial < h[j].serial
}

// Swap implements [heap.Interface].
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *timerHeap) Push(t any) { *h = append(*h, t.(timer)) }

// Pop implements [heap.Interface].
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = timer{}
	*h = (*h)[:last]
	return t
}

// push adds a timer; the bank's lock is held.
func (b *Bank) push(h *timerHeap, t timer) {
	b.serial++
	t.serial = b.serial
	heap.Push(h, t)
}

// popDue removes the next timer that is due by now; the bank's lock is held.
func popDue(h *timerHeap, now time.Time) (timer, bool) {
	if len(*h) == 0 || (*h)[0].due.After(now) {
		return timer{}, false
	}
	return heap.Pop(h).(timer), true
}

// startTimer starts the timers of a change; the lock is held.
func (b *Bank) startTimer(r *record) {
	switch {
	case r.Order != nil && r.Order.Refusal == "":
		b.startOrder(b.ledger.orders[r.Order.key()])
	case r.Approval != nil:
		b.startOrder(b.ledger.orders[r.Approval.key()])
	case r.Delayed != nil:
		b.push(&b.timers, timer{due: r.Delayed.Due, order: r.Delayed.Order.key()})
	case r.Analysis != nil:
		b.push(&b.timers, timer{due: r.At.Add(analysisAfter), charge: r.Analysis.ExternalID})
	case r.Listener != nil:
		b.notifier.resume()
	}
	if n := b.ledger.notices[r.Notice]; n != nil {
		b.push(&b.noticeTimers, timer{due: n.firstDue(), notice: n.id})
	}
	b.runAgain()
}

// startOrder starts the timer of an order in process; the lock is held.
func (b *Bank) startOrder(o *order) {
	switch {
	case !b.asksConsent(o.Subject):
		b.push(&b.timers, timer{due: o.createdAt.Add(completeAfter), order: o.key()})
	case o.approvedAt.IsZero():
		b.push(&b.questions, timer{due: o.createdAt.Add(completeAfter), order: o.key()})
	default:
		b.push(&b.timers, timer{due: o.approvedAt.Add(completeAfter), order: o.key()})
	}
}

// startTimers starts the timers of a ledger that was read from its journal.
func (b *Bank) startTimers() {
	for _, key := range sortedKeys(b.ledger.orders, orderKey.compare) {
		if o := b.ledger.orders[key]; o.state == bankapi.OrderProcessing {
			b.startOrder(o)
		}
	}
	for _, key := range sortedKeys(b.ledger.delayed, orderKey.compare) {
		b.push(&b.timers, timer{due: b.ledger.delayed[key].Due, order: key})
	}
	for _, id := range sortedKeys(b.ledger.charges, strings.Compare) {
		if c := b.ledger.charges[id]; c.analysis != nil {
			b.push(&b.timers, timer{due: c.analyzedAt.Add(analysisAfter), charge: id})
		}
	}
	for _, id := range sortedKeys(b.ledger.notices, strings.Compare) {
		b.push(&b.noticeTimers, timer{due: b.ledger.notices[id].firstDue(), notice: id})
	}
}

// compare orders keys, so that a map is read in a fixed order.
func (k orderKey) compare(other orderKey) int {
	return cmp.Or(strings.Compare(string(k.subject), string(other.subject)), strings.Compare(k.externalID, other.externalID), cmp.Compare(k.copy, other.copy))
}

func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	return keys
}
