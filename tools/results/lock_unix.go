//go:build unix

package results

import (
	"os"
	"syscall"
)

// lock waits until no other process adds a run. Closing the file unlocks it.
func lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }
