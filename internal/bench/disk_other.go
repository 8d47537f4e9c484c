//go:build !linux

package bench

// inMemory is false, because only Linux is supported.
func inMemory(string) bool { return false }
