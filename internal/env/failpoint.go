package env

// Failpoint names a point in the program at which a test may kill or stop the process,
// or cut its connection to the database.
type Failpoint string

// The failpoints. None is inside a transaction except BeforeCommit.
const (
	// BeforeCommit is after all rows are written, before COMMIT is sent.
	BeforeCommit Failpoint = "commit.before"
	// AfterCommit is after COMMIT, before its result is returned.
	AfterCommit Failpoint = "commit.after"
	// BeforeTransfer is after a payout's intent is durable, right before the guard of
	// the send.
	BeforeTransfer Failpoint = "transfer.before"
	// AfterTransfer is after the answer to a transfer is read, before it is recorded.
	AfterTransfer Failpoint = "transfer.after"
	// AfterLookup is after the answer to a look-up is read, before it is recorded.
	AfterLookup Failpoint = "lookup.after"
	// BeforeDelivery is after a delivery is claimed, before it is sent.
	BeforeDelivery Failpoint = "delivery.before"
	// AfterDelivery is after a receiver has answered, before that is recorded.
	AfterDelivery Failpoint = "delivery.after"
	// BeforeAnswer is after a request's effect is durable, before it is answered.
	BeforeAnswer Failpoint = "answer.before"
)

// Failpoints lists every failpoint.
var Failpoints = []Failpoint{
	BeforeCommit, AfterCommit, BeforeTransfer, AfterTransfer, AfterLookup, BeforeDelivery, AfterDelivery, BeforeAnswer,
}

// Inject runs the failpoint f. It does nothing in production.
func (e *Env) Inject(f Failpoint) {
	if e.OnFailpoint != nil {
		_ = e.OnFailpoint(f)
	}
}

// InjectCommit runs a failpoint at COMMIT. An error means that the outcome of the
// COMMIT is unknown, as after a broken connection.
func (e *Env) InjectCommit(f Failpoint) error {
	if e.OnFailpoint == nil {
		return nil
	}
	return e.OnFailpoint(f)
}
