package bench

import (
	"fmt"
	"io"
	"strings"
)

const (
	// chartRows is how many rows a chart has at most.
	chartRows = 16
	// barLength is the longest bar, in characters.
	barLength = 40
)

// ladders are bounds within a power of ten, fine ones first; a chart takes the
// finest with which its rows are few enough.
var ladders = [][]int64{
	{100, 120, 150, 180, 220, 270, 330, 390, 470, 560, 680, 820}, // E12
	{100, 150, 220, 330, 470, 680},                               // E6
	{100, 220, 470},                                              // E3
	{100},
}

// row is a bar of the chart: latencies from one bound to below the next, in
// microseconds.
type row struct{ from, to, count int64 }

// rows sorts latencies into rows that are even on a logarithmic scale.
func rows(list []span) []row {
	if len(list) == 0 {
		return nil
	}
	low, high := list[0].to, list[len(list)-1].to // as percentiles are told
	var bounds []int64
	for _, ladder := range ladders {
		if bounds = boundsOf(ladder, low, high); len(bounds) <= chartRows+1 {
			break
		}
	}
	table := make([]row, len(bounds)-1)
	for i := range table {
		table[i] = row{from: bounds[i], to: bounds[i+1]}
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

// boundsOf lists the steps of a ladder from the last one at or below low to
// the first one above high.
func boundsOf(ladder []int64, low, high int64) []int64 {
	var list []int64
	for power := int64(1); ; power *= 10 {
		for _, step := range ladder {
			bound := step * power / 100
			if power < 100 && step*power%100 != 0 {
				continue // below a microsecond, and no whole number of them
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

// eighths are the blocks that end a bar, by how many eighths they fill.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a part of the longest bar; what is there at all can be seen.
func bar(n, most int64) string {
	if n == 0 {
		return ""
	}
	parts := max(n*barLength*8/most, 1)
	return strings.Repeat("█", int(parts/8)) + eighths[parts%8]
}

// writeChart draws latencies as bars on a logarithmic scale, and says in which
// of them the percentiles lie.
func writeChart(w io.Writer, list []span, l Latency) {
	table := rows(list)
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
