package jobs

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
)

func TestPace(t *testing.T) {
	t.Parallel()
	w, clock := env.Virtual(time.Unix(0, 0), 1)
	strained, crowded := false, false
	w.Strained = func() bool { return strained }
	p := &pace{env: w, crowded: func() bool { return crowded }}
	if got := p.allow(64, 0); got != 64 {
		t.Errorf("%d leave where there is time to spare", got)
	}
	strained = true
	clock.Advance(time.Second)
	left := 0
	for range 1000 {
		left += p.allow(64, 0)
	}
	if left != paceRate {
		t.Errorf("%d leave at once, after a second's rest", left)
	}
	for range 10_000 { // ten seconds
		clock.Advance(time.Millisecond)
		n := p.allow(64, 0)
		if n != 0 && n != paceStep {
			t.Fatalf("%d leave at once", n)
		}
		left += n
	}
	if low, high := 10*paceRate, 11*paceRate; left < low || left > high {
		t.Errorf("%d left in ten seconds, not %d to %d", left, low, high)
	}
	if got := p.allow(1, 0); got > 1 {
		t.Errorf("%d leave of one", got)
	}

	strained = false
	clock.Advance(paceCalm / 2)
	p.allow(64, 0)
	if got := p.allow(64, 0); got != 0 {
		t.Errorf("%d leave after half of the calm that is asked for", got)
	}
	clock.Advance(paceCalm / 2)
	if got := p.allow(64, 0); got != 64 {
		t.Errorf("%d leave when there is time again", got)
	}
	crowded = true
	p.allow(1000, 0)
	if got := p.allow(64, 0); got != 0 {
		t.Errorf("%d leave at once while requests wait in dozens", got)
	}
}

// Whoever has waited long does not wait for the end of the strain.
func TestPaceQuickens(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		waited time.Duration
		want   int // a second
	}{
		{-time.Hour, paceRate}, {0, paceRate}, {paceWait - 1, paceRate}, {paceWait, 2 * paceRate},
		{paceWait + time.Second, 4 * paceRate}, {paceWait + 5*time.Second, 64 * paceRate}, {24 * 365 * time.Hour, 64 * paceRate},
	} {
		w, clock := env.Virtual(time.Unix(0, 0), 1)
		w.Strained = func() bool { return true }
		p := &pace{env: w, crowded: func() bool { return false }}
		p.allow(0, v.waited)
		left := 0
		for range 1000 {
			clock.Advance(time.Millisecond)
			n := p.allow(64, v.waited)
			left += n
			if n%paceStep != 0 {
				t.Fatalf("%d leave at once", n)
			}
		}
		if left < v.want-2*paceStep || left > v.want+2*paceStep {
			t.Errorf("%d left in a second after %s, not %d", left, v.waited, v.want)
		}
	}
}
