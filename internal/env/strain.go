package env

import (
	"runtime/metrics"
	"sync"
	"time"
)

// A process is strained when a tenth of its goroutines wait longer than
// strainedFor for a processor, measured over strainWindow. Where there is time
// to spare they wait a tenth of that; so the measure is the same on small
// machines and large ones, and sees what else runs beside the process.
const (
	strainedFor  = time.Millisecond
	strainWindow = 100 * time.Millisecond
	strainLeast  = 50 // waits in a window that say anything
)

// waits is the runtime's histogram of how long goroutines were ready to run
// before they ran.
const waits = "/sched/latencies:seconds"

// strain measures whether the process has more to do than processors.
type strain struct {
	clock Clock
	read  func() (counts []uint64, bounds []float64)

	mu       sync.Mutex
	last     []uint64
	next     time.Duration // by the monotonic clock
	strained bool
}

func newStrain(clock Clock) *strain {
	sample := []metrics.Sample{{Name: waits}}
	return &strain{clock: clock, read: func() ([]uint64, []float64) {
		metrics.Read(sample)
		if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
			return nil, nil
		}
		h := sample[0].Value.Float64Histogram()
		return h.Counts, h.Buckets
	}}
}

// Strained says whether it was so in the last full window.
func (s *strain) Strained() bool {
	now := s.clock.Monotonic()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now < s.next {
		return s.strained
	}
	stale := now >= s.next+strainWindow // nobody asked for long: that window says nothing of now
	s.next = now + strainWindow
	counts, bounds := s.read()
	var all, late uint64
	for i, n := range counts {
		if i < len(s.last) {
			n -= s.last[i]
		}
		all += n
		if bounds[i] >= strainedFor.Seconds() {
			late += n
		}
	}
	s.last = append(s.last[:0], counts...)
	s.strained = !stale && all >= strainLeast && late*10 >= all
	return s.strained
}
