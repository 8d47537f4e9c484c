//go:build unix

package app

import (
	"math"
	"syscall"
)

// filesMax is how many files and sockets this process may have open; 0 where
// nobody says.
func filesMax() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32))
}
