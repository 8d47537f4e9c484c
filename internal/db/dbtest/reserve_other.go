//go:build !unix

package dbtest

// reserve reserves nothing without flock: another process may take the port of a server
// that restarts.
func reserve(int) bool { return true }
