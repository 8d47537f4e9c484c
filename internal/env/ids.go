package env

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	// counterBits of an id order what was made within one millisecond: the
	// twelve bits of rand_a and the first fourteen of rand_b.
	counterBits = 26
	// recentMillis is how many neighbouring milliseconds keep a counter, as
	// callers read the clock before they ask for an id and so arrive in
	// slightly other order.
	recentMillis = 64
	// wordSize is how many random bytes an id takes.
	wordSize = 8
)

// IDs makes UUIDs of version 7 (RFC 9562): 48 bits of Unix milliseconds, a
// counter of 26 bits that begins at random in each millisecond (RFC 9562,
// section 6.2, method 1), and 48 random bits. That the counter begins anew
// keeps how much the gateway does from being read off two ids.
//
// Ids of one generator for the same millisecond are strictly ascending, as
// long as the times asked for lie within 64 ms of one another and no more than
// 33 million fall into that millisecond. Past that, ids stay unique by their
// random bits, and lose their order only.
type IDs struct {
	random Random

	mu     sync.Mutex
	recent [recentMillis]idCounter
	pool   [4096]byte // randomness in advance: no system call per id
	used   int
}

// idCounter is the counter of one millisecond.
type idCounter struct {
	milli int64
	next  uint32
}

// NewIDs returns a generator that draws from random.
func NewIDs(random Random) *IDs {
	g := &IDs{random: random}
	g.used = len(g.pool)
	for i := range g.recent {
		g.recent[i].milli = -1
	}
	return g
}

// NewID returns an id whose time is t, cut to milliseconds UTC: what carries
// the id was created at t. Times outside the years 1970 to 10889 wrap.
func (g *IDs) NewID(t time.Time) [16]byte {
	milli := t.UnixMilli() & (1<<48 - 1)

	g.mu.Lock()
	slot := &g.recent[milli%recentMillis]
	if slot.milli != milli {
		// The top bit stays clear, which leaves room to count.
		*slot = idCounter{milli: milli, next: uint32(g.word() >> (64 - counterBits + 1))}
	}
	counter := uint64(slot.next)
	slot.next++
	random := g.word()
	g.mu.Unlock()

	const lowBits = counterBits - 12
	high := uint64(milli)<<16 | 7<<12 | counter>>lowBits&0xfff
	low := 2<<62 | counter&(1<<lowBits-1)<<48 | random>>16
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

// word takes eight random bytes from the pool; the lock is held.
func (g *IDs) word() uint64 {
	if g.used == len(g.pool) {
		g.random.Read(g.pool[:])
		g.used = 0
	}
	word := binary.LittleEndian.Uint64(g.pool[g.used:])
	clear(g.pool[g.used : g.used+wordSize]) // what was given out is not kept
	g.used += wordSize
	return word
}
