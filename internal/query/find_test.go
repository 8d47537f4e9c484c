package query

import "testing"

// However many merchants there are, a search without an index reads a bounded number of orders.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	for merchants, want := range map[int]int{0: searchedMost, 1: searchedMost, 10: searchedMost, 100: 2_000, 150_000: 1} {
		if got := searchedOf(merchants); got != want {
			t.Errorf("of %d merchants, %d orders are searched each, want %d", merchants, got, want)
		}
	}
}
