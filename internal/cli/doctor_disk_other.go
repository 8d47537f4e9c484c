//go:build !linux && !darwin

package cli

// freeSpace is not known on this system.
func freeSpace(string) (uint64, error) { return spaceUnknown, nil }
