//go:build linux || darwin

package cli

import (
	"fmt"
	"syscall"
)

// freeSpace is what a user may still write to the disk of a folder, bytes.
func freeSpace(folder string) (uint64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, fmt.Errorf("free space: %w", err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}
