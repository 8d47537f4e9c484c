package bench

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMax is the longest latency in microseconds; longer ones are counted as
// latencyMax.
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

// bucket is the number of latencies between two bounds.
type bucket struct{ from, to, count int64 }

// buckets lists the non-empty buckets, shortest latency first.
func (h *histogram) buckets() []bucket {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []bucket
	for _, bar := range h.counts.Distribution() {
		if bar.Count > 0 {
			list = append(list, bucket{bar.From, bar.To, bar.Count})
		}
	}
	return list
}

// series collects the results of one kind of request or event.
type series struct {
	name       string
	latencies  *histogram
	rejections *histogram // of answers with 503

	mu        sync.Mutex
	count     int64 // successes due in the measured time
	completed int64 // successes that ended within it
	successes int64 // all successes
	errors    map[string]int64
	samples   map[string]string // error answers
}

func newSeries(name string) *series {
	return &series{name: name, latencies: newHistogram(), rejections: newHistogram(), errors: map[string]int64{}, samples: map[string]string{}}
}

// sampleBytesMax bounds the sample of an error answer, in bytes.
const sampleBytesMax = 300

// success counts a success that was due at start and ended at end.
func (s *series) success(w *window, start, end, latency time.Duration) {
	measured := w.contains(start)
	if measured {
		s.latencies.record(latency)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.successes++
	if measured {
		s.count++
	}
	if w.contains(end) {
		s.completed++
	}
}

// failure counts an error by its status, or as "connection" if there is none.
func (s *series) failure(w *window, start, end time.Duration, status int, text string) {
	if !w.contains(start) {
		return
	}
	if status == http.StatusServiceUnavailable {
		s.rejections.record(end - start)
	}
	name := "connection"
	if status != 0 {
		name = strconv.Itoa(status)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors[name]++
	if s.errors[name] == 1 {
		s.samples[name] = text[:min(len(text), sampleBytesMax)]
	}
}

// totals returns the numbers of successes and failures so far.
func (s *series) totals() (successes, failed int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.errors {
		failed += n
	}
	return s.successes, failed
}

// completedCount is the number of successes that ended within the measured time.
func (s *series) completedCount() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.completed
}
