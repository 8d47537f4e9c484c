package httpapi

import (
	"io"
	"sync/atomic"

	"github.com/porteira/porteira/internal/problem"
)

// memoryMax bounds the bytes of bodies and answers of all requests in flight. Clients that
// send or read slowly keep them in memory until a timeout.
const memoryMax = 128 << 20

// entryBytes is the memory that a list reserves for each entry before it reads them.
const entryBytes = 2 << 10

var errMemory = problem.New(problem.Overloaded, "Requests and answers in flight take too much memory.")

// memory counts the bytes of bodies and answers in flight.
type memory struct {
	max  int64
	used atomic.Int64
}

// reserve adds n bytes to those of the call; false if that would exceed the limit.
func (c *call) reserve(n int) bool {
	if c.memory.used.Add(int64(n)) > c.memory.max {
		c.memory.used.Add(-int64(n))
		return false
	}
	c.reserved += int64(n)
	return true
}

// reserveAlways is reserve for an answer that must be sent: the request has had its effect.
func (c *call) reserveAlways(n int) {
	c.memory.used.Add(int64(n))
	c.reserved += int64(n)
}

// releaseMemory releases all that was reserved for the call.
func (c *call) releaseMemory() {
	c.memory.used.Add(-c.reserved)
	c.reserved = 0
}

// reserveAnswer reserves the memory of an answer. A read is refused if there is none.
func (c *call) reserveAnswer(n int) error {
	switch {
	case c.reserve(n):
		return nil
	case c.route.class != write:
		return errMemory
	default:
		c.reserveAlways(n)
		return nil
	}
}

// countedBody reserves memory for what is read of a body.
type countedBody struct {
	io.ReadCloser
	call *call
}

// Read implements [io.Reader]. Its error is of kind overloaded if there is no memory.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && !b.call.reserve(n) {
		return 0, errMemory
	}
	return n, err
}
