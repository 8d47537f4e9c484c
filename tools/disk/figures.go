package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// engineNames are the engines' names in figures.
var engineNames = map[string]string{sqlite: "SQLite", postgres: "PostgreSQL"}

// figures count what happened. They are recorded under their names.
type figures struct {
	engine string

	mu     sync.Mutex
	counts map[string]int64
}

func newFigures(engine string) *figures {
	return &figures{engine: engineNames[engine], counts: map[string]int64{}}
}

func (f *figures) add(name string, n int64) {
	if n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[name+": "+f.engine] += n
}

func (f *figures) slowest(name string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = "slowest " + name + ": " + f.engine + ", ms"
	f.counts[name] = max(f.counts[name], d.Milliseconds())
}

// most and least keep the highest and the lowest of what is no count.
func (f *figures) most(name string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = "most " + name + ": " + f.engine
	f.counts[name] = max(f.counts[name], n)
}

func (f *figures) least(name string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name = "least " + name + ": " + f.engine
	if was, ok := f.counts[name]; !ok || n < was {
		f.counts[name] = n
	}
}

// join adds another run's figures.
func (f *figures) join(more *figures) {
	more.mu.Lock()
	defer more.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, n := range more.counts {
		was, known := f.counts[name]
		switch kind, _, _ := strings.Cut(name, " "); {
		case !known, kind == "slowest", kind == "most":
			f.counts[name] = max(was, n)
		case kind == "least":
			f.counts[name] = min(was, n)
		default:
			f.counts[name] += n
		}
	}
}

func (f *figures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		fmt.Fprintf(&text, "%9d  %s\n", f.counts[name], name)
	}
	return text.String()
}
