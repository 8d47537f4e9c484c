package jobs

import "testing"

// A claim leaves places for what comes into being while it is written; where
// more waits than was taken, those come first.
func TestClaimOfNoticesLeavesPlaces(t *testing.T) {
	t.Parallel()
	h := &noticeHand{}
	for _, v := range []struct {
		more       bool
		free, want int
	}{
		{false, 0, 0}, {false, 1, 1}, {false, 2, 1}, {false, noticePlaces, noticePlaces / 2},
		{true, noticePlaces/4 - 1, 0}, {true, noticePlaces / 4, noticePlaces / 4}, {true, noticePlaces, noticePlaces},
	} {
		h.more = v.more
		if got := h.wants(v.free); got != v.want {
			t.Errorf("of %d free places %d are kept, want %d (more waits: %v)", v.free, got, v.want, v.more)
		}
	}
}
