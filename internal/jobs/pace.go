package jobs

import (
	"sync"
	"time"

	"github.com/porteira/porteira/internal/world"
)

// While the process has more to do than it can, requests are answered first
// and payouts leave at a walk: paceRate a second, so that none waits for ever,
// and paceStep at once, as each claim of them costs a commit.
const (
	paceRate = 256
	paceStep = 32
)

// pace bounds how many payouts leave while there is no time to spare.
type pace struct {
	world world.World

	mu   sync.Mutex
	left float64       // what may still leave
	at   time.Duration // when that was reckoned, by the monotonic clock
}

// allow bounds n; what it allows is taken.
func (p *pace) allow(n int) int {
	spare := p.world.Spare()
	now := p.world.Clock.Monotonic()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = min(p.left+(now-p.at).Seconds()*paceRate, paceRate)
	p.at = now
	if spare {
		return n
	}
	if p.left < paceStep {
		return 0
	}
	n = min(n, paceStep)
	p.left -= float64(n)
	return n
}
