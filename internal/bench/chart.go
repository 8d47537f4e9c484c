package bench

import (
	"fmt"
	"io"
	"strings"
)

const (
	// chartRows is the maximum number of rows of a chart.
	chartRows = 16
	// barLength is the length of the longest bar, in characters.
	barLength = 40
)

// bucketSeries are bounds within a power of ten, finest first. A chart uses the finest
// series that needs at most chartRows rows.
var bucketSeries = [][]int64{
	{100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820}, // E12
	{100, 150, 220, 330, 470, 680},                               // E6
	{100, 220, 470},                                              // E3
	{100},
}

// chartRow is a bar of the chart: the number of latencies in [from, to), in
// microseconds.
type chartRow struct{ from, to, count int64 }

// chartRowsOf sorts latencies into rows that are even on a logarithmic scale.
func chartRowsOf(list []bucket) []chartRow {
	if len(list) == 0 {
		return nil
	}
	low, high := list[0].to, list[len(list)-1].to // rounded like percentiles
	var bounds []int64
	for _, ladder := range bucketSeries {
		if bounds = boundsOf(ladder, low, high); len(bounds) <= chartRows+1 {
			break
		}
	}
	table := make([]chartRow, len(bounds)-1)
	for i := range table {
		table[i] = chartRow{from: bounds[i], to: bounds[i+1]}
	}
	at := 0
	for _, s := range list {
		for at < len(table)-1 && s.to >= table[at].to {
			at++
		}
		table[at].count += s.count
	}
	return table
}

// boundsOf lists the bounds of a ladder from the last one at or below low to the first
// one above high.
func boundsOf(ladder []int64, low, high int64) []int64 {
	var list []int64
	for power := int64(1); ; power *= 10 {
		for _, step := range ladder {
			bound := step * power / 100
			if power < 100 && step*power%100 != 0 {
				continue // a fraction of a microsecond
			}
			if bound <= low {
				list = list[:0]
			}
			list = append(list, bound)
			if bound > high {
				return list
			}
		}
	}
}

// eighths are the blocks that end a bar, by the eighths that they fill.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a bar for n of most. It is never empty if n is positive.
func bar(n, most int64) string {
	if n == 0 {
		return ""
	}
	parts := max(n*barLength*8/most, 1)
	return strings.Repeat("█", int(parts/8)) + eighths[parts%8]
}

// writeChart draws latencies as bars on a logarithmic scale, marked with the
// percentiles.
func writeChart(w io.Writer, list []bucket, l Latency) {
	table := chartRowsOf(list)
	var most, sum int64
	for _, r := range table {
		most, sum = max(most, r.count), sum+r.count
	}
	for i, r := range table {
		var marks []string
		for _, p := range []struct {
			name   string
			micros int64
		}{{"p50", l.P50}, {"p90", l.P90}, {"p99", l.P99}, {"p99.9", l.P999}, {"max", l.Max}} {
			last := i == len(table)-1
			if p.micros >= r.from && (p.micros < r.to || last) || i == 0 && p.micros < r.from {
				marks = append(marks, p.name)
			}
		}
		drawn := bar(r.count, most)
		line := fmt.Sprintf("  %8s  %s%s %5.1f %%  %s", shownMicros(r.from), drawn, strings.Repeat(" ", barLength-len([]rune(drawn))),
			100*float64(r.count)/float64(sum), strings.Join(marks, " "))
		_, _ = fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
