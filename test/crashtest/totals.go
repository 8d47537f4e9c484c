package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// totals are the figures of one engine. A figure may have details: its value is then their
// sum, maximum or minimum.
type totals struct {
	engine string

	mu     sync.Mutex
	counts map[figure]int64
}

type figure struct{ name, detail string }

func newTotals(engine string) *totals {
	return &totals{engine: engine, counts: map[figure]int64{}}
}

// add adds to a figure.
func (t *totals) add(name, detail string, n int64) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[figure{name, detail}] += n
}

// slowest keeps the maximum of a duration, in milliseconds.
func (t *totals) slowest(name, detail string, d time.Duration) {
	t.most("slowest "+name+", ms", detail, d.Milliseconds())
}

// most keeps the maximum.
func (t *totals) most(name, detail string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[figure{name, detail}] = max(t.counts[figure{name, detail}], n)
}

// least keeps the minimum.
func (t *totals) least(name, detail string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := figure{name, detail}
	if was, known := t.counts[f]; !known || n < was {
		t.counts[f] = n
	}
}

// count is the value of one detail.
func (t *totals) count(name, detail string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[figure{name, detail}]
}

// sum adds up all details of a figure.
func (t *totals) sum(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(0)
	for f, count := range t.counts {
		if f.name == name {
			n += count
		}
	}
	return int(n)
}

// printTotals prints one line per figure: its total, if summable, and its details.
func printTotals(out io.Writer, all []*totals) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range all {
		_, _ = fmt.Fprintf(table, "\n%s\n", t.engine)
		t.print(table)
	}
	_ = table.Flush()
}

func (t *totals) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	details, sums := map[string][]string{}, map[string]int64{}
	for _, f := range slices.SortedFunc(maps.Keys(t.counts), func(a, b figure) int { return strings.Compare(a.detail, b.detail) }) {
		sums[f.name] += t.counts[f]
		if f.detail != "" {
			details[f.name] = append(details[f.name], fmt.Sprintf("%s %d", f.detail, t.counts[f]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		total := strconv.FormatInt(sums[name], 10)
		if len(details[name]) > 0 && !summable(name) {
			total = ""
		}
		_, _ = fmt.Fprintf(out, "  %s\t%s\t%s\n", name, total, strings.Join(details[name], ", "))
	}
}

// summable reports whether the details of a figure can be added up.
func summable(name string) bool {
	kind, _, _ := strings.Cut(name, " ")
	return kind != "slowest" && kind != "most" && kind != "least"
}
