// Package bankapi is the protocol of the sandbox's bank: its bodies, codes,
// faults and signatures, and the payer's instructions, which follow from a
// charge's terms.
//
// The bank and its driver import this package and not each other.
package bankapi

const (
	// JSONType is the media type of every body.
	JSONType = "application/json"
	// FaultHeader asks the driver to simulate a refused connection, which only a
	// client can observe. Its value is [NotSent].
	FaultHeader = "X-Porteira-Bank-Fault"
)

// Subject is what a notice or a change is about.
type Subject string

// The subjects.
const (
	SubjectCharge   Subject = "charge"
	SubjectTransfer Subject = "transfer"
	SubjectRefund   Subject = "refund"
)
