package cli

import (
	"log/slog"
	"os"
	"runtime/debug"
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
