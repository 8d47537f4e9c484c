package cli

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/porteira/porteira/internal/app/apptest"
)

// The memory limit is nine tenths of the container's, unless the operator has set one. Both
// are logged.
func TestMemoryLimit(t *testing.T) {
	const container = 10 << 30
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)

	var log apptest.Log
	t.Setenv("GOMEMLIMIT", "6GiB")
	limitMemory(slog.New(slog.NewTextHandler(&log, nil)), memlimit.Limit(container))
	if got := debug.SetMemoryLimit(-1); got != before || !strings.Contains(log.String(), "GOMEMLIMIT=6GiB") {
		t.Errorf("the operator's limit was changed to %d: %s", got, log.String())
	}

	if err := os.Unsetenv("GOMEMLIMIT"); err != nil { // Setenv restores it
		t.Fatal(err)
	}
	limitMemory(slog.New(slog.NewTextHandler(&log, nil)), memlimit.Limit(container))
	want := int64(container / 10 * 9)
	if got := debug.SetMemoryLimit(-1); got != want || !strings.Contains(log.String(), "GOMEMLIMIT is updated") {
		t.Errorf("the limit is %d, want %d: %s", got, want, log.String())
	}
}

// Garbage may take a multiple of a small heap, within a limit, and no more than a large one.
func TestHeapGrowth(t *testing.T) {
	const container = 1 << 40
	defer debug.SetGCPercent(debug.SetGCPercent(growthSmall))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(container))
	(&runner{Program: &Program{Environ: []string{"GOGC=50"}}}).growHeap()
	if got := debug.SetMemoryLimit(-1); got != container {
		t.Errorf("an operator's GOGC is not respected: the limit is %d", got)
	}
	(&runner{Program: &Program{}}).growHeap()
	want := func(percent uint64, limit int64, what string) {
		t.Helper()
		gogc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for metrics.Read(gogc); gogc[0].Value.Uint64() != percent || debug.SetMemoryLimit(-1) != limit; metrics.Read(gogc) {
			if t.Context().Err() != nil {
				t.Fatalf("%s: GOGC is %d, the limit %d; want %d and %d", what, gogc[0].Value.Uint64(), debug.SetMemoryLimit(-1), percent, limit)
			}
			runtime.GC()
		}
	}
	want(growthSmall, limitSmall, "at first")
	func() {
		large := make([]byte, 2*heapSmall)
		want(growthLarge, container, "a large heap")
		runtime.KeepAlive(large)
	}()
	want(growthSmall, limitSmall, "a small heap")
}
