// Package sandbox is a bank of its own behind the same interface as real
// processors: charges, payments, transfers, refunds and disputes in a journal
// that outlives the gateway, and every misbehaviour that a test may ask for.
//
// [Bank] is the far side. It keeps its books in memory, each change as one
// line of its journal, and acknowledges nothing before that line is on disk.
// [Bank.Handler] is its HTTP face, and [Bank.Step] does what falls due:
// transfers complete about a second after they were taken, notices go out and
// are repeated. It starts no goroutine except in [Bank.Run].
//
// [Processor] is the near side: the adapter that the gateway uses, over a
// socket or, where the bank lives in the same process, by calling the handler.
// Both ways run the same code from the request to the classification of its
// answer. [Control] calls the routes that force an outcome.
//
// Nothing that this bank issues can be paid: its BR Codes point to a host
// under .invalid (RFC 2606), its bills carry a bank code that nobody has, its
// ids an ISPB that nobody has.
package sandbox
