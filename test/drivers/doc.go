// Package drivers kills the gateway between any two messages of the drivers of real processors.
//
// The gateway's core runs with a real driver, on a real database and a virtual clock, against
// the sandbox's bank in the shapes of that processor. A point is right before or after
// a message between driver and bank, or right after a commit: everything that lasts changes
// between two points. A run plays pay-ins, cancellations, refunds, disputes and payouts; at some
// points the process dies: its goroutines end, its memory and its connection to the database are
// dropped, and another process starts on the same database. At the end the bank's records are
// compared with the gateway's: one charge per order, one transfer per payout, one refund per
// part, the same money to the cent, and no case.
package drivers
