package worker

import "slices"

// Turn is a round robin of items over runs of a step: if there are not enough slots, the
// next run begins with the items that got none.
type Turn[K comparable] struct{ last K }

// Order rotates a sorted list so that it begins after the item served last.
func Order[T any, K comparable](t *Turn[K], list []T, key func(T) K, compare func(a, b K) int) []T {
	first := slices.IndexFunc(list, func(v T) bool { return compare(key(v), t.last) > 0 })
	if first <= 0 {
		return list
	}
	return slices.Concat(list[first:], list[:first])
}

// Served records the item served last.
func (t *Turn[K]) Served(key K) { t.last = key }

// Backlog decides whether a claim is worth its commit, which costs the same for one row as
// for many: if there is a backlog, a quarter of the slots must be free.
type Backlog struct{ More bool }

// Worth reports whether free of all slots are enough for a claim.
func (b *Backlog) Worth(free, all int) bool { return free > 0 && (!b.More || free*4 >= all) }

// Claimed records the number of rows that a claim requested and got.
func (b *Backlog) Claimed(requested, got int) { b.More = got == requested }
