package outgoing

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// The operations, for tests that decide them.
type (
	ClaimSends   = claimSends
	ClaimLookUps = claimLookUps
	RecordReport = recordReport
)

// ThrottleWhile makes a function of the test say whether requests queue for their commits.
func (e *Executor) ThrottleWhile(backlogged func() bool) {
	e.sendThrottle = worker.NewThrottle(e.Env.Clock, backlogged)
}

// Guard is the check before the first byte of a send.
func (e *Executor) Guard(s *ClaimedSend) func() error {
	return e.guard(s.Deadline, s.Payout.ClaimedBy, s.history)
}

// NewClaimSends is the operation of [Executor.Claim].
func (e *Executor) NewClaimSends(due store.Due, limit int) *ClaimSends {
	return e.newClaim(due, limit, e.Processors.Find(due.Processor).Profile())
}

// Result is the result of [Executor.ClaimLookUps].
func (v *claimSends) Result() (sends []ClaimedSend, conflicting []payment.Payout, claimed int) {
	return v.sends, v.conflicting, v.claimed
}

// NewClaimLookUps is the operation of [Executor.ClaimLookUps].
func (e *Executor) NewClaimLookUps(due store.Due, limit int) *ClaimLookUps {
	return &claimLookUps{
		due:  store.DuePayouts{Merchant: due.Merchant, Processor: due.Processor, Queue: store.ToLookUp, Limit: limit},
		node: e.Node.ID(),
	}
}

// Result is what [Executor.ClaimLookUps] returns.
func (v *claimLookUps) Result() []payment.Payout { return v.claimed }

// NewRecordLookUp is the operation of [Executor.RecordLookUp].
func (e *Executor) NewRecordLookUp(p payment.Payout, report processor.TransferReport) *RecordReport {
	return &recordReport{
		resolution: e.newResolution(p.Processor), merchant: p.Merchant, id: p.ID, report: report,
		claimedBy: p.ClaimedBy, asked: p, restoredAt: e.Node.RestoredAt(),
	}
}

// NewRecordNotice is the operation of [Executor.RecordNotice].
func (e *Executor) NewRecordNotice(p payment.Payout, report processor.TransferReport) *RecordReport {
	return &recordReport{resolution: e.newResolution(p.Processor), merchant: p.Merchant, id: p.ID, asked: p, report: report}
}

// Result is the operation's result besides its changes.
func (v *recordReport) Result() (again, manual bool, contradiction string) {
	return v.again, v.manual, string(v.contradiction)
}

// Result is the operation's result besides its changes.
func (v *RecordSendOp) Result() (after payment.Payout, contradiction string) {
	return v.after, string(v.contradiction)
}
