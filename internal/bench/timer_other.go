//go:build !linux

package bench

import (
	"os"
	"time"
)

// openKernelTimer returns nil: kernel timers are supported on Linux only.
func openKernelTimer() *os.File { return nil }

func waitKernelTimer(*os.File, time.Duration) bool { return false }
