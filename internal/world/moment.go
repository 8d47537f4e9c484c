package world

// Moment names a place in the program where it may die, stop for a while, or
// find its database gone: what a simulation and a torture run choose from.
type Moment string

// The moments. None is inside a transaction but BeforeCommit.
const (
	// BeforeCommit is when all rows are written, and COMMIT is not yet said.
	BeforeCommit Moment = "commit.before"
	// AfterCommit is when the database has committed, and nobody knows yet.
	AfterCommit Moment = "commit.after"
	// BeforeTransfer is when a payout's intent is durable, right before its
	// right to be sent is looked at for the last time.
	BeforeTransfer Moment = "transfer.before"
	// AfterTransfer is when a payout's answer is read, and not yet recorded.
	AfterTransfer Moment = "transfer.after"
	// AfterLookup is when a look-up's answer is read, and not yet recorded.
	AfterLookup Moment = "lookup.after"
	// BeforeDelivery is when a delivery is claimed, and not yet sent.
	BeforeDelivery Moment = "delivery.before"
	// AfterDelivery is when a receiver has answered, and nothing is recorded.
	AfterDelivery Moment = "delivery.after"
	// BeforeAnswer is when a request's effect is durable, and its answer is
	// not yet written.
	BeforeAnswer Moment = "answer.before"
)

// Moments lists every moment.
var Moments = []Moment{
	BeforeCommit, AfterCommit, BeforeTransfer, AfterTransfer, AfterLookup, BeforeDelivery, AfterDelivery, BeforeAnswer,
}

// Reach tells the world that the program has come to a moment. The product's
// world does not care.
func (w *World) Reach(m Moment) {
	if w.OnMoment != nil {
		_ = w.OnMoment(m)
	}
}

// Commit is Reach for the moments around COMMIT. An error means that nobody
// knows whether it takes place, as where the connection breaks there.
func (w *World) Commit(m Moment) error {
	if w.OnMoment == nil {
		return nil
	}
	return w.OnMoment(m)
}
