package env

// Failpoint names a point in the program at which a test may kill the process,
// stop it for a while, or cut its database off.
type Failpoint string

// The failpoints. None is inside a transaction except BeforeCommit.
const (
	// BeforeCommit is reached when all rows are written and COMMIT is not sent yet.
	BeforeCommit Failpoint = "commit.before"
	// AfterCommit is reached when the database has committed and the caller does
	// not know yet.
	AfterCommit Failpoint = "commit.after"
	// BeforeTransfer is reached when a payout's intent is durable, right before
	// the last check of the right to send.
	BeforeTransfer Failpoint = "transfer.before"
	// AfterTransfer is reached when the answer to a transfer is read and not
	// recorded yet.
	AfterTransfer Failpoint = "transfer.after"
	// AfterLookup is reached when the answer to a look-up is read and not recorded
	// yet.
	AfterLookup Failpoint = "lookup.after"
	// BeforeDelivery is reached when a delivery is claimed and not sent yet.
	BeforeDelivery Failpoint = "delivery.before"
	// AfterDelivery is reached when a receiver has answered and nothing is
	// recorded yet.
	AfterDelivery Failpoint = "delivery.after"
	// BeforeAnswer is reached when a request's effect is durable and its answer is
	// not written yet.
	BeforeAnswer Failpoint = "answer.before"
)

// Failpoints lists every failpoint.
var Failpoints = []Failpoint{
	BeforeCommit, AfterCommit, BeforeTransfer, AfterTransfer, AfterLookup, BeforeDelivery, AfterDelivery, BeforeAnswer,
}

// Inject runs the failpoint f. It does nothing in the product.
func (e *Env) Inject(f Failpoint) {
	if e.OnFailpoint != nil {
		_ = e.OnFailpoint(f)
	}
}

// InjectCommit runs a failpoint next to COMMIT. An error means that the outcome
// of the COMMIT is unknown, as if the connection had broken there.
func (e *Env) InjectCommit(f Failpoint) error {
	if e.OnFailpoint == nil {
		return nil
	}
	return e.OnFailpoint(f)
}
