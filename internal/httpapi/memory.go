package httpapi

import (
	"io"
	"runtime"
	"sync"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// memoryMax bounds the bytes of bodies and answers of all requests in flight. Clients that
// send or read slowly keep them in memory until a timeout.
const memoryMax = 128 << 20

// One merchant may use a quarter of this memory, which is enough for 64 lists of 200 entries:
// the requests that one credential has in flight. An eighth of all of it, and of a merchant's
// quarter, is kept for reads.
const (
	merchantPart = 4
	readPart     = 8
)

// entryBytes is the memory that a list reserves for each entry before it reads them.
const entryBytes = 2 << 10

var (
	errMemory         = problem.New(problem.Overloaded, "Requests and answers in flight take too much memory.")
	errMerchantMemory = problem.New(problem.Overloaded, "Requests and answers of this merchant in flight take too much memory.")
)

// reserved is bytes of bodies and answers: all, and those that count for their merchant.
type reserved struct{ all, merchant int64 }

// memory counts the bytes of bodies and answers in flight.
type memory struct {
	max int64
	// decoding is sent to before a large body is decoded, and received from afterwards: the faults
	// of a body take many times its size, and more decoders than CPUs end no earlier.
	decoding chan struct{}

	mu   sync.Mutex
	used int64
	of   map[payment.ID]int64 // absent for 0
}

func newMemory(most int64) *memory {
	return &memory{max: most, decoding: make(chan struct{}, runtime.GOMAXPROCS(0)), of: map[payment.ID]int64{}}
}

// reserve counts n for a merchant; an error if that would exceed a limit of the class.
func (m *memory) reserve(merchant payment.ID, c class, n reserved) error {
	all, ofMerchant := m.max, m.max/merchantPart
	if c == write {
		all, ofMerchant = all-all/readPart, ofMerchant-ofMerchant/readPart
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case n.merchant > 0 && m.of[merchant]+n.merchant > ofMerchant:
		return errMerchantMemory
	case m.used+n.all > all:
		return errMemory
	}
	m.add(merchant, n)
	return nil
}

// add counts n for a merchant. The caller must hold mu.
func (m *memory) add(merchant payment.ID, n reserved) {
	m.used += n.all
	if of := m.of[merchant] + n.merchant; of == 0 {
		delete(m.of, merchant)
	} else {
		m.of[merchant] = of
	}
}

// payer is the merchant for which the call's memory counts. Calls without credentials have one
// part in all: they take none of the merchant that accepts them.
func (c *call) payer() payment.ID {
	if c.anonymous {
		return payment.ID{}
	}
	return c.merchant.ID
}

// reserve adds n bytes to those of the call; an error of kind overloaded if that would exceed
// a limit.
func (c *call) reserve(n int) error {
	return c.reserveFor(reserved{int64(n), int64(n)})
}

func (c *call) reserveFor(n reserved) error {
	if err := c.memory.reserve(c.payer(), c.route.class, n); err != nil {
		return err
	}
	c.reserved.all += n.all
	c.reserved.merchant += n.merchant
	return nil
}

// reserveAlways is reserve for an answer that must be sent: the request has had its effect.
func (c *call) reserveAlways(n int) {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.add(c.payer(), reserved{int64(n), int64(n)})
	c.reserved.all += int64(n)
	c.reserved.merchant += int64(n)
}

// releaseMemory releases all that was reserved for the call.
func (c *call) releaseMemory() {
	if c.reserved.all == 0 {
		return
	}
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.add(c.payer(), reserved{-c.reserved.all, -c.reserved.merchant})
	c.reserved = reserved{}
}

// reserveAnswer reserves the memory of an answer. A read is refused if there is none.
func (c *call) reserveAnswer(n int) error {
	err := c.reserve(n)
	if err != nil && c.route.class == write {
		c.reserveAlways(n)
		return nil
	}
	return err
}

// countedBody reserves memory for what is read of a body.
type countedBody struct {
	io.ReadCloser
	call *call
}

// Read implements [io.Reader]. Its error is of kind overloaded if there is no memory.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		if full := b.call.reserve(n); full != nil {
			return 0, full
		}
	}
	return n, err
}
