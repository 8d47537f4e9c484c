package worker_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/worker"
)

func order(t *worker.Turn[int], list []int) []int {
	return worker.Order(t, list, func(v int) int { return v }, cmp.Compare[int])
}

// A list begins after the item served last.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		last       int
		list, want []int
	}{
		{0, nil, nil},
		{0, []int{1, 2, 3}, []int{1, 2, 3}},
		{1, []int{1, 2, 3}, []int{2, 3, 1}},
		{2, []int{1, 2, 3}, []int{3, 1, 2}},
		{3, []int{1, 2, 3}, []int{1, 2, 3}},
		{2, []int{1, 3}, []int{3, 1}}, // the item served last is not in the list
		{9, []int{1, 3}, []int{1, 3}},
	} {
		var turn worker.Turn[int]
		turn.Served(tt.last)
		if got := order(&turn, slices.Clone(tt.list)); !slices.Equal(got, tt.want) {
			t.Errorf("after %d: %v, want %v", tt.last, got, tt.want)
		}
	}
}

// No item waits longer than it takes to serve all others once.
func TestTurnsAreFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.IntRange(1, 12).Draw(t, "items")
		slots := rapid.IntRange(1, 5).Draw(t, "slots")
		waiting := map[int]int{} // runs since an item became due
		var turn worker.Turn[int]
		for range rapid.IntRange(1, 60).Draw(t, "runs") {
			var due []int
			for i := 1; i <= items; i++ {
				if waiting[i] > 0 || rapid.Bool().Draw(t, "due") {
					due = append(due, i)
					waiting[i]++
				}
			}
			for _, v := range order(&turn, due)[:min(slots, len(due))] {
				if most := (items + slots - 1) / slots; waiting[v] > most+1 {
					t.Fatalf("%d waited for %d runs of %d slots, with %d items", v, waiting[v], slots, items)
				}
				delete(waiting, v)
				turn.Served(v)
			}
		}
	})
}

// With a backlog, a claim is worth its commit if a quarter of the slots is free; else if any
// slot is.
func TestBacklog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		more      bool
		free, all int
		want      bool
	}{
		{false, 0, 100, false}, {false, 1, 100, true}, {false, 100, 100, true}, {false, -1, 100, false},
		{true, 0, 100, false}, {true, 24, 100, false}, {true, 25, 100, true}, {true, 100, 100, true}, {true, 1, 3, true},
	} {
		b := worker.Backlog{More: tt.more}
		if got := b.Worth(tt.free, tt.all); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	var b worker.Backlog
	for _, tt := range []struct {
		asked, got int
		more       bool
	}{{10, 10, true}, {10, 9, false}, {10, 10, true}, {10, 0, false}} {
		if b.Claimed(tt.asked, tt.got); b.More != tt.more {
			t.Errorf("%d of %d claimed: more are due: %v", tt.got, tt.asked, b.More)
		}
	}
}
