// Package sim is the deterministic simulation of the gateway on a virtual clock.
//
// One or two gateway processes run their real code on a real database, with simulated
// merchants, payers and receivers and the sandbox's bank. Actions and the calls of workers
// run one at a time, each until it waits or ends, and a seed determines their order: the
// same seed gives the same trace. Faults are injected at every boundary, and package checker
// checks every commit.
//
// The gateway has four accounts of different profiles at the bank. In some runs one of them
// hangs for a while, and the others must go on; in some a row of the database is damaged and
// later repaired; in some the gateway starts on an older copy of its database.
//
// Merchants refund what was paid, and so does the bank's own panel. One of them has limits, and
// payouts that wait for approval; some have webhook endpoints, which are down for hours, are
// disabled, deleted or get a new secret. In most runs people decide the cases about payouts and
// refunds of unknown outcome, by the bank's own records; in some they err, and release payouts that
// are paid later.
//
// A run places orders while faults occur (start in run.go), then stops all faults and
// drains the work that is left. At the end it compares all records, and runs the checks of
// porteira verify.
package sim
