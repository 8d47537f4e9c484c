//go:build race

package sim

// One goroutine of a simulation runs at a time, so the race detector finds little in it, and makes
// it several times as slow: a short run is enough. `make simulate` runs without it.
func init() { *orders = 40 }
