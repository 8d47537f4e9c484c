package httpapi

import "sync/atomic"

// slots bounds the requests in flight. Writes may use four fifths of the slots,
// which keeps the rest for reads.
type slots struct {
	total, writes            int64
	inFlight, writesInFlight atomic.Int64
}

func newSlots(n int) *slots {
	if n <= 0 {
		n = inFlightDefault
	}
	return &slots{total: int64(n), writes: max(1, int64(n)*4/5)}
}

// acquire takes a slot; false if none is free for this class.
func (s *slots) acquire(c class) bool {
	if c == vital {
		return true
	}
	if s.inFlight.Add(1) > s.total {
		s.inFlight.Add(-1)
		return false
	}
	if c == write && s.writesInFlight.Add(1) > s.writes {
		s.writesInFlight.Add(-1)
		s.inFlight.Add(-1)
		return false
	}
	return true
}

// release returns a slot that acquire took.
func (s *slots) release(c class) {
	if c == vital {
		return
	}
	s.inFlight.Add(-1)
	if c == write {
		s.writesInFlight.Add(-1)
	}
}
