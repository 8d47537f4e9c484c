package worker

import "sync"

// Pools are pools of equal size, one per account of a processor, so that the calls to an
// account that hangs leave the slots of the others free.
type Pools struct {
	slots int // of a pool, by default
	waker *Waker
	spawn Spawn

	mu    sync.Mutex
	pools map[string]*Pool
}

// NewPools returns pools with slots slots each by default; see [NewPool].
func NewPools(slots int, waker *Waker, spawn Spawn) *Pools {
	return &Pools{slots: slots, waker: waker, spawn: spawn, pools: map[string]*Pool{}}
}

// Of is the pool of an account. slots, if positive, is its size when it is first used,
// instead of the default.
func (p *Pools) Of(account string, slots int) *Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	pool := p.pools[account]
	if pool == nil {
		if slots <= 0 {
			slots = p.slots
		}
		pool = NewPool(slots, p.waker, p.spawn)
		p.pools[account] = pool
	}
	return pool
}

// Wait waits until no call of any pool is in flight.
func (p *Pools) Wait() {
	p.mu.Lock()
	all := make([]*Pool, 0, len(p.pools))
	for _, pool := range p.pools {
		all = append(all, pool)
	}
	p.mu.Unlock()
	for _, pool := range all {
		pool.Wait()
	}
}
