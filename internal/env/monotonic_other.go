//go:build !linux

package env

import "time"

var processStart = time.Now()

// monotonic returns the time since the program started. Whether it counts
// while the machine sleeps is up to the system.
func monotonic() time.Duration { return time.Since(processStart) }
