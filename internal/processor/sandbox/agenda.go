package sandbox

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"
)

// duty is one thing to do at a time: move an order, or send a notice.
type duty struct {
	due    time.Time // by the bank's clock
	serial uint64    // order of filing among those due at once
	order  orderKey
	charge string // whose card is in analysis
	notice string
	tries  int // how often the notice was refused
}

// agenda is a heap of duties, the next one first.
type agenda []duty

// Len implements [heap.Interface].
func (a agenda) Len() int { return len(a) }

// Less implements [heap.Interface].
func (a agenda) Less(i, j int) bool {
	if c := a[i].due.Compare(a[j].due); c != 0 {
		return c < 0
	}
	return a[i].serial < a[j].serial
}

// Swap implements [heap.Interface].
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements [heap.Interface].
func (a *agenda) Push(d any) { *a = append(*a, d.(duty)) }

// Pop implements [heap.Interface].
func (a *agenda) Pop() any {
	last := len(*a) - 1
	d := (*a)[last]
	(*a)[last] = duty{}
	*a = (*a)[:last]
	return d
}

// push files a duty; the bank's lock is held.
func (b *Bank) push(a *agenda, d duty) {
	b.serial++
	d.serial = b.serial
	heap.Push(a, d)
}

// popDue takes the next duty that is due by now; the bank's lock is held.
func popDue(a *agenda, now time.Time) (duty, bool) {
	if len(*a) == 0 || (*a)[0].due.After(now) {
		return duty{}, false
	}
	return heap.Pop(a).(duty), true
}

// compare orders keys, so that what is read from a map comes in one order.
func (k orderKey) compare(other orderKey) int {
	return cmp.Or(strings.Compare(string(k.kind), string(other.kind)), strings.Compare(k.externalID, other.externalID))
}

func compareStrings(a, b string) int { return strings.Compare(a, b) }

func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compare)
	return keys
}
