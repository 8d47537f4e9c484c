package cli

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// limitMemory makes the garbage collector work harder when this process comes near the
// memory limit of its container, instead of leaving that to the system's OOM killer. An
// operator's GOMEMLIMIT takes precedence. Failures are logged: the gateway runs without.
func limitMemory(log *slog.Logger, limit memlimit.Provider) {
	_, _ = memlimit.Set(memlimit.WithProvider(limit), memlimit.WithLogger(log)) // logs the error
}
