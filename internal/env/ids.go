package env

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	// counterBits is the size of the counter that orders ids of one millisecond: the
	// twelve bits of rand_a and the first fourteen of rand_b.
	counterBits = 26
	// recentMillis is the number of recent milliseconds with a counter. Callers read
	// the clock before they call NewID, so the times are slightly out of order.
	recentMillis = 64
	// wordSize is the number of random bytes per id.
	wordSize = 8
)

// IDs generates UUIDs of version 7 (RFC 9562): 48 bits of Unix milliseconds, a
// counter of 26 bits that starts at a random value in each millisecond (RFC 9562,
// section 6.2, method 1), and 48 random bits. The random start hides the gateway's
// throughput, which could otherwise be computed from two ids.
//
// Ids of one generator for the same millisecond are strictly ascending if the times of
// successive calls are within 64 ms of one another and no more than 33 million ids fall
// into that millisecond. Otherwise ids are still unique but not ordered.
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

// NewID returns an id with the time t, UTC, truncated to milliseconds. Times outside
// the years 1970 to 10889 wrap.
func (g *IDs) NewID(t time.Time) [16]byte {
	milli := t.UnixMilli() & (1<<48 - 1)

	g.mu.Lock()
	slot := &g.recent[milli%recentMillis]
	if slot.milli != milli {
		// The top bit is clear, so the counter does not overflow.
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
	clear(g.pool[g.used : g.used+wordSize]) // used bytes are not kept
	g.used += wordSize
	return word
}
