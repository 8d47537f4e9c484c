//go:build unix

package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// reserved are the lock files of the ports that this process has reserved.
var reserved struct {
	mu    sync.Mutex
	files map[int]*os.File
}

// reserve reserves a port for the life of this process: while a server restarts, its port
// is free, and another process must not take it. It returns false if the port is reserved,
// also by this process.
func reserve(port int) bool {
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	if reserved.files[port] != nil {
		return false
	}
	path := filepath.Join(os.TempDir(), fmt.Sprintf("porteira-postgres-%d.lock", port))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false // another user's
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return false
	}
	if reserved.files == nil {
		reserved.files = map[int]*os.File{}
	}
	reserved.files[port] = f // else it would be collected, and closed
	return true
}
