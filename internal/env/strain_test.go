package env

import (
	"testing"
	"time"
)

func TestStrained(t *testing.T) {
	t.Parallel()
	_, clock := Virtual(time.Unix(0, 0), 1)
	var counts []uint64
	s := &strain{clock: clock, read: func() ([]uint64, []float64) {
		return counts, []float64{0, 0.000_1, 0.001, 0.01} // below 0.1 ms, 1 ms, 10 ms
	}}
	waited := func(quick, middling, long uint64) {
		counts = []uint64{quick, middling, long}
		clock.Advance(strainWindow)
	}
	for i, step := range []struct {
		counts [3]uint64
		want   bool
	}{
		{[3]uint64{0, 0, 0}, false},
		{[3]uint64{90, 0, 9}, false},
		{[3]uint64{180, 0, 19}, true},  // ten of a hundred
		{[3]uint64{181, 0, 60}, false}, // too few to tell
		{[3]uint64{200, 100, 61}, false},
		{[3]uint64{201, 100, 161}, true},
	} {
		waited(step.counts[0], step.counts[1], step.counts[2])
		if got := s.Strained(); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
		if got := s.Strained(); got != step.want {
			t.Errorf("step %d, asked again: %v", i, got)
		}
	}
	clock.Advance(time.Second)
	waited(202, 100, 1000)
	if s.Strained() {
		t.Error("what was long ago counts")
	}
	var w Env
	if !w.Spare() {
		t.Error("an env without a measure has no time to spare")
	}
}

// The runtime has the histogram that the measure needs.
func TestStrainIsMeasured(t *testing.T) {
	t.Parallel()
	s := newStrain(NewSystemClock())
	if counts, bounds := s.read(); len(counts) < 10 || len(bounds) != len(counts)+1 {
		t.Errorf("%d counts, %d bounds", len(counts), len(bounds))
	}
}
