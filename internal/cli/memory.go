package cli

import (
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// limitMemory makes the garbage collector work harder when this process comes near the
// memory limit of its container, instead of leaving that to the system's OOM killer. An
// operator's GOMEMLIMIT takes precedence. Failures are logged: the gateway runs without.
func limitMemory(log *slog.Logger, limit memlimit.Provider) {
	_, _ = memlimit.Set(memlimit.WithProvider(limit), memlimit.WithLogger(log)) // logs the error
}

// GOGC by what is live. A gateway's heap is small and its CPU time is scarce, so it may grow to
// five times that, within a limit that holds at once. A large heap, as while hundreds of clients
// send the largest bodies, may double, as is Go's default: else it would take hundreds of megabytes.
const (
	heapSmall   = 32 << 20
	limitSmall  = 192 << 20 // of all memory, stacks too
	growthSmall = 400
	growthLarge = 100
)

// growth follows the heap.
type growth struct {
	limit int64 // of memory; that of the container or the operator
	small bool
	live  []metrics.Sample
}

// growHeap sets GOGC, now and after each garbage collection, unless the operator has. The limit of
// memory is that of limitMemory.
func (r *runner) growHeap() {
	if slices.ContainsFunc(r.Environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		return
	}
	g := &growth{limit: debug.SetMemoryLimit(-1), live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	g.set(true)
	runtime.SetFinalizer(g, (*growth).collected)
}

// collected runs after each garbage collection, which frees g, and makes it live again.
func (g *growth) collected() {
	metrics.Read(g.live)
	if small := g.live[0].Value.Uint64() < heapSmall; small != g.small {
		g.set(small)
	}
	runtime.SetFinalizer(g, (*growth).collected)
}

func (g *growth) set(small bool) {
	g.small = small
	if small {
		debug.SetMemoryLimit(min(g.limit, limitSmall))
		debug.SetGCPercent(growthSmall)
		return
	}
	debug.SetGCPercent(growthLarge)
	debug.SetMemoryLimit(g.limit)
}
