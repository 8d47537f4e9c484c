package bench

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMax is the longest latency that is told apart, in microseconds; what
// takes longer counts as that.
const latencyMax = int64(10 * time.Minute / time.Microsecond)

// histogram counts latencies, to three significant digits.
type histogram struct {
	mu     sync.Mutex
	counts *hdrhistogram.Histogram // in microseconds
}

func newHistogram() *histogram { return &histogram{counts: hdrhistogram.New(1, latencyMax, 3)} }

// record counts a latency; less than a microsecond counts as one.
func (h *histogram) record(d time.Duration) {
	v := min(max(int64(d/time.Microsecond), 1), latencyMax)
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.counts.RecordValue(v) // it is in range
}

// Latency is a summary of latencies, in microseconds.
type Latency struct {
	Mean int64 `json:"mean"`
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
	P999 int64 `json:"p999"`
	Max  int64 `json:"max"`
}

func (h *histogram) summary() Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.counts.ValueAtPercentile
	return Latency{Mean: int64(h.counts.Mean()), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: at(100)}
}

// span is how many latencies lie from one bound to the next.
type span struct{ from, to, count int64 }

// spans lists all that were counted, shortest first.
func (h *histogram) spans() []span {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []span
	for _, bar := range h.counts.Distribution() {
		if bar.Count > 0 {
			list = append(list, span{bar.From, bar.To, bar.Count})
		}
	}
	return list
}

// series is what is known of one kind of thing that happens.
type series struct {
	name      string
	latencies *histogram
	refusals  *histogram // of answers with 503

	mu      sync.Mutex
	count   int64 // that went well and were due in the measured time
	within  int64 // that ended well within it
	all     int64 // that ended well at all
	errors  map[string]int64
	samples map[string]string // of the answers that were errors
}

func newSeries(name string) *series {
	return &series{name: name, latencies: newHistogram(), refusals: newHistogram(), errors: map[string]int64{}, samples: map[string]string{}}
}

// sampleMax bounds what is kept of an answer that was an error, in bytes.
const sampleMax = 300

// well counts something that went well. It was due at start and ended at end.
func (s *series) well(w *window, start, end, latency time.Duration) {
	measured := w.holds(start)
	if measured {
		s.latencies.record(latency)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	if measured {
		s.count++
	}
	if w.holds(end) {
		s.within++
	}
}

// failed counts an error by its status, or as "connection" where there is none.
func (s *series) failed(w *window, start, end time.Duration, status int, text string) {
	if !w.holds(start) {
		return
	}
	if status == http.StatusServiceUnavailable {
		s.refusals.record(end - start)
	}
	name := "connection"
	if status != 0 {
		name = strconv.Itoa(status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[name]++
	if s.errors[name] == 1 {
		s.samples[name] = text[:min(len(text), sampleMax)]
	}
}

// totals are how many went well so far, and how many failed.
func (s *series) totals() (well, failed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.errors {
		failed += n
	}
	return s.all, failed
}

// ended is how many ended well within the measured time.
func (s *series) ended() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.within
}
