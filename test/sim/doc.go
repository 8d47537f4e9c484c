// Package sim is the deterministic simulation of the gateway on a virtual clock.
//
// One or two gateway processes run their real code on a real database, with simulated
// merchants, payers and receivers and the sandbox's bank. Actions run one after another,
// and a seed determines all of them: the same seed gives the same trace. Faults are
// injected at every boundary, and package checker checks every commit.
//
// A run places orders while faults occur (start in run.go), then stops all faults and
// drains the work that is left, and compares all records at the end.
package sim
