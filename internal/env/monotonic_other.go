//go:build !linux

package env

import "time"

var processStart = time.Now()

// monotonic returns the time since the program started. Whether it includes sleep
// depends on the system.
func monotonic() time.Duration { return time.Since(processStart) }
