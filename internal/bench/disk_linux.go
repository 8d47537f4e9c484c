package bench

import "syscall"

// File systems in memory, from statfs(2).
const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// inMemory reports whether a folder is on a file system in memory.
func inMemory(folder string) bool {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return false
	}
	kind := int64(s.Type) //nolint:unconvert // its type differs between platforms
	return kind == tmpfs || kind == ramfs
}
