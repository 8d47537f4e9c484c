package outgoing

import (
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// CanDeclare returns nil if an operator may declare the outcome of a loaded payout: the outcome is
// unknown, and no byte of a send can still leave. Else it returns a problem of kind invalid_state.
// The sends are loaded too.
func CanDeclare(l *store.Loaded, p *payment.Payout) error {
	unknown := p.Step == payment.StepUnknown || p.Step == payment.StepAccepted || p.Step == payment.StepReview
	switch sends := l.Sends(p.Merchant, p.ID); {
	case p.Status != payment.PayoutProcessing:
		return problem.New(problem.InvalidState, fmt.Sprintf("The payout is %s: its outcome is known.", p.Status))
	case !unknown:
		return problem.New(problem.InvalidState, "The payout is being sent again. Wait until the outcome of this send is recorded.")
	case len(sends) > 0 && mayLeave(sends[len(sends)-1].Deadline, l.Now()):
		return problem.New(problem.InvalidState, fmt.Sprintf("The last send of the payout may still be leaving, until %s. Decide after that.",
			sends[len(sends)-1].Deadline.Format(time.RFC3339)))
	}
	return nil
}

// sendMax is longer than any send takes.
const sendMax = time.Minute

// mayLeave reports whether a byte of a send with a deadline may leave at now or later. A clock that
// was ahead has set a deadline further away than the longest send. Such a deadline proves nothing:
// a case about the outcome opens much later than a send ends.
func mayLeave(deadline, now time.Time) bool {
	return now.Before(deadline) && !deadline.After(now.Add(sendMax+clockTolerance))
}

// CanDeclareDamaged is CanDeclare for a payout with a damaged row that cannot be restored. The row
// may have been parked before the payout was sent: the processor does not know a PENDING payout,
// except after a restore.
func CanDeclareDamaged(l *store.Loaded, p *payment.Payout) error {
	parked := p.NextAt.IsZero() && p.ClaimedBy.IsZero() && (p.Step == payment.StepReview || p.Step == payment.StepApproval)
	switch {
	case p.Status == payment.PayoutPending && parked && len(l.Sends(p.Merchant, p.ID)) == 0:
		return nil
	case p.Status == payment.PayoutPending || p.Status == payment.PayoutProcessing && !parked:
		return problem.New(problem.InvalidState, "The payout is not parked: the gateway is working on it.")
	}
	return CanDeclare(l, p)
}

// CanWithdraw returns nil if an operator may give up a payout: the payout waits to be sent, and
// each send is proved to have had no effect. Else it returns a problem of kind invalid_state. The
// sends are loaded too.
func CanWithdraw(l *store.Loaded, p *payment.Payout) error {
	if p.Step != payment.StepQueued || !withoutEffect(l.Sends(p.Merchant, p.ID)) {
		return problem.New(problem.InvalidState, "The payout does not wait to be sent, or one of its sends may have paid it.")
	}
	return nil
}

// DeclarePaid completes a payout that [CanDeclare] allows: an operator has proof that the processor
// paid. If several transfers may have paid, ProcessorID is cleared, because the paying one is
// unknown.
func DeclarePaid(l *store.Loaded, c *store.Changes, p *payment.Payout, endToEndID, evidence string) error {
	if p.Status == payment.PayoutPending { // a damaged one, which was sent before the database was restored
		p.SentAt = l.Now()
		if _, err := transition.Payout(l, c, p, payment.OnSend); err != nil {
			return err
		}
	}
	Finish(p)
	p.EndToEndID, p.CompletedAt, p.Failure = endToEndID, l.Now(), nil
	if mayHavePaidTwice(l, p) {
		p.ProcessorID = ""
	}
	endSend(l, c, p, store.SendPaid, worker.Short(evidence))
	_, err := transition.Payout(l, c, p, payment.OnComplete, ledger.PayPayout(p.Processor, p.Amount, p.Fee))
	return err
}

// DeclareNotPaid releases the money of a payout that [CanDeclare] allows: an operator has
// proof that its processor did not pay it, and will not.
func DeclareNotPaid(l *store.Loaded, c *store.Changes, p *payment.Payout, evidence string) error {
	Finish(p)
	p.Failure = &payment.Failure{Code: "not_paid", Message: "The processor did not pay it."}
	endSend(l, c, p, store.SendFailed, worker.Short(evidence))
	_, err := transition.Payout(l, c, p, payment.OnFail, ledger.ReleasePayout(p.Amount, p.Fee))
	return err
}

// DeclareNotFound queues a payout that [CanDeclare] allows, to be sent again with the same
// id: an operator has proof that its processor does not have it.
func DeclareNotFound(l *store.Loaded, c *store.Changes, p *payment.Payout, evidence string) {
	endSend(l, c, p, store.SendNotFound, worker.Short(evidence))
	p.Step, p.NextAt, p.ClaimedBy, p.Lookups, p.ProcessorID = payment.StepQueued, l.Now(), payment.ID{}, 0, ""
	if p.Unapproved() { // it fails if it is not found
		p.Step = payment.StepUnknown
	}
	*p = c.SetPayout(*p)
}

// DeclareReturned books the rest of a payout as returned: an operator has proof that the money came
// back. The payout is completed, or left after its release. The found transfer of its id must be
// loaded.
func DeclareReturned(l *store.Loaded, c *store.Changes, p *payment.Payout) error {
	if f, ok := l.FoundTransfer(p.Merchant, p.ExternalID); ok && p.Step == payment.StepPaidLate {
		return giveBack(l, c, f, 0, true)
	}
	back := p.Amount - p.ReturnedAmount
	p.ReturnedAmount = p.Amount
	_, err := transition.Payout(l, c, p, payment.OnReturn, ledger.ReturnPayout(p.Processor, back))
	return err
}

// Repaired continues the work on a payout after its damaged row was repaired. The payout is looked
// up before it is sent, even if it was never sent: the database may have been restored meanwhile.
// An accepted transfer stays accepted: a "not found" proves nothing about it.
func Repaired(l *store.Loaded, c *store.Changes, p *payment.Payout) error {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepUnknown, l.Now(), payment.ID{}
	sends := l.Sends(p.Merchant, p.ID)
	switch {
	case p.Status == payment.PayoutPending && p.Unapproved():
		p.Step, p.NextAt = payment.StepApproval, payment.ApprovalEnds(p)
	case p.Status == payment.PayoutPending:
		return markProcessing(l, c, p)
	case slices.ContainsFunc(sends, func(s store.Send) bool { return s.Outcome == store.SendAccepted }):
		p.Step = payment.StepAccepted
	}
	*p = c.SetPayout(*p)
	return nil
}
