package bench

import "syscall"

// Of statfs(2): file systems that are in memory.
const (
	tmpfs = 0x01021994
	ramfs = 0x858458f6
)

// inMemory says whether a folder is on no disk.
func inMemory(folder string) bool {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return false
	}
	kind := int64(s.Type) //nolint:unconvert // its type differs between platforms
	return kind == tmpfs || kind == ramfs
}
