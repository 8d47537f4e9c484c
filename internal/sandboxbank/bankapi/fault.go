package bankapi

// Operation is a group of the bank's routes whose calls can be made to fail.
type Operation string

// The operations.
const (
	OpCharge   Operation = "charge"
	OpTransfer Operation = "transfer"
	OpRefund   Operation = "refund"
	OpDefense  Operation = "defense"
	OpQuery    Operation = "query" // about one charge, transfer, refund or defense
)

// OpCredentials is every call of an account. It can be armed with Refuse only: the calls are
// answered 401.
const OpCredentials Operation = "credentials"

// Operations lists every operation whose calls have faults of their own.
var Operations = []Operation{OpCharge, OpTransfer, OpRefund, OpDefense, OpQuery}

// FaultKind is a way to misbehave.
type FaultKind string

// The kinds that can be armed by a route.
const (
	// Refuse answers with a definitive refusal; the id never has an effect.
	Refuse FaultKind = "refuse"
	// NotSent makes the driver see a refused connection.
	NotSent FaultKind = "not_sent"
	// Later has no effect and answers 429: the same request may be sent again.
	Later FaultKind = "later"
	// Known has its effect and answers 409: the id is in use.
	Known FaultKind = "known"
	// TimeoutBefore has no effect and never answers.
	TimeoutBefore FaultKind = "timeout_before"
	// TimeoutAfter has its effect and never answers.
	TimeoutAfter FaultKind = "timeout_after"
	// ServerErrorAfter has its effect and answers 500.
	ServerErrorAfter FaultKind = "server_error_after"
	// Late has its effect and answers after 3 s.
	Late FaultKind = "late"
	// Garbage has its effect and answers half a JSON body.
	Garbage FaultKind = "rubbish"
	// NotifyTwice sends each notice about the object twice, with one id.
	NotifyTwice FaultKind = "notify_twice"
	// NotifyReordered delays the object's first notice by 3 s, so that later
	// ones overtake it.
	NotifyReordered FaultKind = "notify_reordered"
	// NotifyNever sends no notice about the object.
	NotifyNever FaultKind = "notify_never"
)

// The kinds that occur at random only.
const (
	// ServerErrorBefore has no effect and answers 503.
	ServerErrorBefore FaultKind = "server_error_before"
	// Delayed answers 504, and accepts a transfer or refund 1 s to 30 min later.
	Delayed FaultKind = "delayed"
)

// Registering registers a charge 10 s later; until then it is shown without what its payer
// needs. It can be armed for charges only.
const Registering FaultKind = "registering"

// FaultKinds lists the kinds that can be armed for every operation.
var FaultKinds = []FaultKind{
	Refuse, NotSent, Later, Known, TimeoutBefore, TimeoutAfter, ServerErrorAfter, Late, Garbage,
	NotifyTwice, NotifyReordered, NotifyNever,
}

// Notifies reports whether the fault affects notices rather than the call.
func (k FaultKind) Notifies() bool {
	return k == NotifyTwice || k == NotifyReordered || k == NotifyNever
}

// Fault makes the next Count calls of an operation misbehave.
type Fault struct {
	Operation Operation `json:"operation"`
	Kind      FaultKind `json:"kind"`
	Count     int       `json:"count"`
}
