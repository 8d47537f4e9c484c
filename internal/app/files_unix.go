//go:build unix

package app

import (
	"math"
	"syscall"
)

// filesMax is this process's limit of open files and sockets; 0 if unknown.
func filesMax() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32))
}
