package jobs

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/world"
)

func TestPace(t *testing.T) {
	t.Parallel()
	w, clock := world.Virtual(time.Unix(0, 0), 1)
	strained := false
	w.Strained = func() bool { return strained }
	p := &pace{world: w}
	if got := p.allow(64); got != 64 {
		t.Errorf("%d leave where there is time to spare", got)
	}
	strained = true
	clock.Advance(time.Second)
	left := 0
	for range 1000 {
		left += p.allow(64)
	}
	if left != paceRate {
		t.Errorf("%d leave at once, after a second's rest", left)
	}
	for range 10_000 { // ten seconds
		clock.Advance(time.Millisecond)
		n := p.allow(64)
		if n != 0 && n != paceStep {
			t.Fatalf("%d leave at once", n)
		}
		left += n
	}
	if low, high := 10*paceRate, 11*paceRate; left < low || left > high {
		t.Errorf("%d left in ten seconds, not %d to %d", left, low, high)
	}
	if got := p.allow(1); got > 1 {
		t.Errorf("%d leave of one", got)
	}
}
