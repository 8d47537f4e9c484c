package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// names of engines in figures.
var engineNames = map[string]string{sqlite: "SQLite", postgres: "PostgreSQL"}

// figures count what happened. They are recorded under their names, so a name
// that changes begins a new figure.
type figures struct {
	engine string

	mu     sync.Mutex
	counts map[string]int64
}

func newFigures(engine string) *figures {
	return &figures{engine: engineNames[engine], counts: map[string]int64{}}
}

// name is "figure: engine" or "figure: engine, detail".
func (f *figures) name(figure, detail string) string {
	if detail != "" {
		detail = ", " + detail
	}
	return figure + ": " + f.engine + detail
}

func (f *figures) add(figure, detail string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[f.name(figure, detail)] += int64(n)
}

func (f *figures) slowest(figure, detail string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := "slowest " + f.name(figure, detail) + ", milliseconds"
	f.counts[name] = max(f.counts[name], d.Milliseconds())
}

// count is one figure.
func (f *figures) count(figure, detail string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[f.name(figure, detail)]
}

// total adds up all details of a figure.
func (f *figures) total(figure string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(0)
	for name, count := range f.counts {
		if strings.HasPrefix(name, figure+": ") {
			n += count
		}
	}
	return int(n)
}

func (f *figures) list() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.counts)
}

// print shows the figures, one a line.
func (f *figures) print(w io.Writer) {
	list := f.list()
	for _, name := range slices.Sorted(maps.Keys(list)) {
		_, _ = fmt.Fprintf(w, "%9d  %s\n", list[name], name)
	}
}
