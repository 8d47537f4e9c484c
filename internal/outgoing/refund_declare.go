package outgoing

import (
	"slices"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// CanDeclareRefund is CanDeclare for a part of a refund.
func CanDeclareRefund(l *store.Loaded, p payment.RefundPart) error {
	if declare(l, &p, effect.DeclareFailed).Action != effect.Refuse {
		return nil
	}
	switch p.State {
	case effect.Done:
		return problem.New(problem.InvalidState, "The outcome of the refund is known.")
	case effect.Queued, effect.Asking, effect.Sending:
		return problem.New(problem.InvalidState, "The refund is being sent again. Wait until the outcome of this send is recorded.")
	default:
		return problem.New(problem.InvalidState, "The last send of the refund may still be leaving. Decide a minute after it.")
	}
}

// declare lets a part take the decision of operators.
func declare(l *store.Loaded, p *payment.RefundPart, on effect.Event) effect.Out {
	return take(effect.Policy{}, &p.Effect, &p.ClaimedBy, effect.Input{On: on, Now: l.Now()})
}

// CanWithdrawRefund is CanWithdraw for a part of a refund. h is the history of the database.
func CanWithdrawRefund(l *store.Loaded, p payment.RefundPart, h store.History) error {
	takeRestore(h, &p.Effect, &p.ClaimedBy, &p.History, p.CreatedAt, l.Now())
	if declare(l, &p, effect.Withdraw).Action == effect.Refuse {
		return problem.New(problem.InvalidState, "The refund does not wait to be sent, or one of its sends may have paid it.")
	}
	return nil
}

// DeclareRefundPaid completes a part of a refund: an operator has proof that it was paid.
func DeclareRefundPaid(l *store.Loaded, c *store.Changes, p payment.RefundPart, links transition.Links, endToEndID, evidence string) error {
	v := refundResolution{links: links}
	r, err := v.start(l, c, &p)
	if err != nil {
		return err
	}
	return v.paid(l, c, &p, &r, processor.TransferReport{EndToEndID: endToEndID, Evidence: evidence})
}

// DeclareRefundNotPaid releases the money of a part of a refund: an operator has proof that it
// was not paid, and will not be.
func DeclareRefundNotPaid(l *store.Loaded, c *store.Changes, p payment.RefundPart, links transition.Links, evidence string) error {
	v := refundResolution{links: links}
	return v.failed(l, c, &p, &payment.Failure{Code: "not_paid", Message: "The processor did not pay it."}, evidence)
}

// DeclareRefundNotFound queues a part of a refund to be sent again with the same id: an operator
// has proof that the processor does not have the part.
func DeclareRefundNotFound(l *store.Loaded, c *store.Changes, p payment.RefundPart, evidence string) {
	declare(l, &p, effect.DeclareAbsent)
	p.Outcome, p.Evidence = payment.RefundPartOutcome(store.SendNotFound), evidence
	c.SetRefundPart(p)
	queueWaiting(l, c, &p)
}

// queueWaiting makes the parts that wait for review under this part's case wait for this part
// again. If an ended part has a case, they wait under that case too, and stay.
func queueWaiting(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	if waitsForOthers(l, p) {
		return
	}
	for _, o := range waiting(l, p) {
		o.State, o.NextAt = effect.Queued, l.Now()
		c.SetRefundPart(o)
	}
}

// waitsForOthers reports whether the other parts of a refund wait under the case of an ended part.
func waitsForOthers(l *store.Loaded, p *payment.RefundPart) bool {
	return slices.ContainsFunc(others(l, p), func(o payment.RefundPart) bool {
		return o.Ended() && len(CasesOfPart(l, &o, store.CaseRefundUnknown)) > 0
	})
}

// RepairedRefund continues the work on a part of a refund after its damaged row was repaired. The
// part is looked up before it is sent, even if it was never sent: that costs one query. An accepted
// part stays accepted, as in [Repaired]. A part that was not sent may wait under another part's
// case. The other parts' cases about damage are loaded.
func RepairedRefund(l *store.Loaded, c *store.Changes, p payment.RefundPart) error {
	if !p.Possible() && waitsForOthers(l, &p) {
		return nil
	}
	p.State, p.NextAt, p.ClaimedBy, p.Lookups = effect.Unknown, l.Now(), payment.ID{}, 0
	switch {
	case p.Outcome == payment.RefundPartOutcome(store.SendAccepted):
		p.State = effect.Accepted
	case !p.Possible():
		p.State, p.Doubt = effect.Queued, true
	}
	c.SetRefundPart(p)
	queueWaiting(l, c, &p)
	return startRefund(l, c, &p)
}

// CanDismissRefund returns a problem of kind invalid_state unless the outcome of a part of a
// refund is known.
func CanDismissRefund(p *payment.RefundPart) error {
	if !p.Ended() {
		return problem.New(problem.InvalidState, "The outcome of the refund is not known yet.")
	}
	return nil
}

// DismissRefund ends the wait under a case about a part that [CanDismissRefund] allows. A part that
// waited under the case gets a case of its own, because a person must decide whether the part may
// be sent.
func DismissRefund(l *store.Loaded, c *store.Changes, p payment.RefundPart) { openWaiting(l, c, &p) }
