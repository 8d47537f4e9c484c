package jobs

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// While the process, or the database behind it, has more to do than it can,
// requests are answered first and payouts leave at a walk: paceRate a second, and
// paceStep at once, as each claim of them costs a commit. That is for a burst.
// Where the oldest has waited longer than paceWait the rate doubles, and again
// with each second more, until they leave as they come: none waits for the end of
// a load that does not end. There is time again once none has been missed for
// paceCalm.
const (
	paceRate = 256
	paceStep = 32
	paceWait = 5 * time.Second
	paceCalm = 500 * time.Millisecond
	paceMost = 6 // doublings
)

// pace bounds how many payouts leave while there is no time to spare.
type pace struct {
	env     env.Env
	crowded func() bool // requests wait in dozens

	mu       sync.Mutex
	left     float64       // what may still leave
	at       time.Duration // when that was reckoned, by the monotonic clock
	strained bool
	missed   time.Duration // when there was no time last, by the monotonic clock
}

// allow bounds n, of which the oldest has waited for waited; what it allows is
// taken.
func (p *pace) allow(n int, waited time.Duration) int {
	spare := p.env.Spare() && !p.crowded()
	now := p.env.Clock.Monotonic()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !spare {
		p.strained, p.missed = true, now
	} else if now-p.missed >= paceCalm {
		p.strained = false
	}
	rate := paceRateAfter(waited)
	p.left = min(p.left+(now-p.at).Seconds()*rate, rate)
	p.at = now
	if !p.strained {
		return n
	}
	if p.left < paceStep {
		return 0
	}
	if n > paceStep {
		n = min(n, int(p.left))
		n -= n % paceStep
	}
	p.left -= float64(n)
	return n
}

// paceRateAfter is how many leave a second when the oldest has waited that long.
func paceRateAfter(waited time.Duration) float64 {
	if waited < paceWait {
		return paceRate
	}
	return float64(int(paceRate) << min(paceMost, 1+int((waited-paceWait)/time.Second)))
}
