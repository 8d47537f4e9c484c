package bench

import (
	"strings"
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	h := newHistogram()
	for i := range 1000 {
		h.record(time.Duration(i+1) * time.Millisecond)
	}
	h.record(-time.Second)
	h.record(time.Hour)
	s := h.summary()
	for _, tt := range []struct {
		name      string
		got, want int64
	}{{"p50", s.P50, 500_000}, {"p90", s.P90, 901_000}, {"p99", s.P99, 991_000}, {"p99.9", s.P999, 1_000_000}, {"max", s.Max, latencyMax}} {
		if tt.got < tt.want*999/1000 || tt.got > tt.want*1001/1000 {
			t.Errorf("%s is %d, want %d to three digits", tt.name, tt.got, tt.want)
		}
	}
	var n int64
	for _, sp := range h.buckets() {
		n += sp.count
	}
	if n != 1002 {
		t.Errorf("the buckets contain %d", n)
	}
}

// A series counts latencies by the due time of a request, and throughput by its end.
func TestSeries(t *testing.T) {
	s := newSeries("GET /")
	w := &window{from: 10, to: 20}
	s.success(w, 5, 12, 7)  // began in the warm-up
	s.success(w, 10, 15, 5) // within
	s.success(w, 19, 25, 6) // ended after it
	s.success(w, 20, 21, 1) // began after it
	s.failure(w, 5, 6, 500, "before")
	s.failure(w, 11, 11+2*time.Millisecond, 503, strings.Repeat("x", 1000))
	s.failure(w, 12, 12+4*time.Millisecond, 503, "second")
	s.failure(w, 13, 14, 0, "reset")
	if successes, failed := s.totals(); s.count != 2 || s.completedCount() != 2 || successes != 4 || failed != 3 {
		t.Errorf("%d counted, %d completed, %d succeeded, %d failed", s.count, s.completedCount(), successes, failed)
	}
	if s.errors["503"] != 2 || s.errors["connection"] != 1 || s.samples["503"] != strings.Repeat("x", sampleBytesMax) || s.samples["connection"] != "reset" {
		t.Errorf("errors are %v, %v", s.errors, s.samples)
	}
	v := s.view(2 * time.Second)
	if v.PerSecond != 1 || v.Count != 2 {
		t.Errorf("%+v", v)
	}
	if v.Rejection == nil || v.Rejection.P50 != 2000 || v.Rejection.Max < 4000 || newSeries("none").view(1).Rejection != nil {
		t.Errorf("refusals took %+v", v.Rejection)
	}
}

func TestChart(t *testing.T) {
	h := newHistogram()
	for d, n := range map[time.Duration]int{
		900 * time.Microsecond: 1, 1200 * time.Microsecond: 40, 1700 * time.Microsecond: 80, 3 * time.Millisecond: 20, 70 * time.Millisecond: 1,
	} {
		for range n {
			h.record(d)
		}
	}
	var b strings.Builder
	writeChart(&b, h.buckets(), h.summary())
	want := `
    680 µs  ▌                                          0.7 %
    1.0 ms  ████████████████████                      28.2 %
    1.5 ms  ████████████████████████████████████████  56.3 %  p50
    2.2 ms  ██████████                                14.1 %  p90 p99
    3.3 ms                                             0.0 %
    4.7 ms                                             0.0 %
    6.8 ms                                             0.0 %
   10.0 ms                                             0.0 %
   15.0 ms                                             0.0 %
   22.0 ms                                             0.0 %
   33.0 ms                                             0.0 %
   47.0 ms                                             0.0 %
   68.0 ms  ▌                                          0.7 %  p99.9 max
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("the chart is%swant%s", got, want)
	}
}

// A chart has at most chartRows rows, in order, and they contain all latencies.
func TestChartRows(t *testing.T) {
	for _, micros := range [][]int64{{1}, {1, 2, 3}, {5, latencyMax}, {1, latencyMax}, {999, 1000, 1001}, {1_000_000}, {10, 100, 1000, 10_000}} {
		h := newHistogram()
		for _, v := range micros {
			h.record(time.Duration(v) * time.Microsecond)
		}
		table := chartRowsOf(h.buckets())
		var n int64
		for i, r := range table {
			n += r.count
			if r.from >= r.to || i > 0 && r.from != table[i-1].to {
				t.Errorf("%v: rows are %v", micros, table)
			}
		}
		if n != int64(len(micros)) || len(table) == 0 || len(table) > chartRows || table[0].count == 0 || table[len(table)-1].count == 0 {
			t.Errorf("%v: rows are %v", micros, table)
		}
	}
	if chartRowsOf(nil) != nil {
		t.Error("rows of nothing")
	}
}

func TestShown(t *testing.T) {
	for micros, want := range map[int64]string{
		1: "1 µs", 999: "999 µs", 1000: "1.0 ms", 12_345: "12.3 ms", 123_456: "123 ms", 9_999_000: "9999 ms", 10_000_000: "10 s", 600_000_000: "600 s",
	} {
		if got := shownMicros(micros); got != want {
			t.Errorf("%d is shown as %q, want %q", micros, got, want)
		}
	}
	if got := shownErrors(map[string]int64{"503": 2, "connection": 1}); got != "2 × 503, 1 × connection" {
		t.Errorf("errors are shown as %q", got)
	}
}
