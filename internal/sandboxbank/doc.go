// Package sandboxbank is the sandbox's bank: a program of its own with its own
// journal and faults.
//
// [Bank] has charges, payments, transfers, refunds and disputes, which outlive
// the gateway, and can simulate every misbehaviour that a test needs. It keeps
// its ledger in memory, writes each change as one line of its journal, and
// acknowledges nothing before that line is on disk. [Bank.Handler] serves package
// bankapi's protocol over HTTP; [Bank.Transport] does so without a socket.
// [Bank.Step] fires timers: transfers complete about a second after the bank
// accepted them, or after consent if the contract asks for it; notices are sent
// and repeated. Goroutines start only in [Bank.Run] and for several notices or
// questions at once.
//
// Nothing that this bank issues can be paid: its BR Codes point to a host under
// .invalid (RFC 2606), and its bills and ids carry an unused bank code and ISPB.
package sandboxbank
