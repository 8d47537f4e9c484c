package outgoing

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// CanDeclareRefund is CanDeclare for a part of a refund.
func CanDeclareRefund(l *store.Loaded, p *payment.RefundPart) error {
	switch {
	case p.Ended():
		return problem.New(problem.InvalidState, "The outcome of the refund is known.")
	case p.Step == payment.StepIntent || p.Step == payment.StepQueued:
		return problem.New(problem.InvalidState, "The refund is being sent again. Wait until the outcome of this send is recorded.")
	case mayLeave(p.SentAt.Add(sendMax), l.Now()):
		return problem.New(problem.InvalidState, "The last send of the refund may still be leaving. Decide a minute after it.")
	}
	return nil
}

// CanWithdrawRefund is CanWithdraw for a part of a refund. restoredAt is the time of the last cold
// start, provedAt that of the last proved restore.
func CanWithdrawRefund(l *store.Loaded, p *payment.RefundPart, restoredAt, provedAt time.Time) error {
	if p.Step != payment.StepQueued || p.MayExist || lookUpPartFirst(p, restoredAt, provedAt, l.Now()) {
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
	p.Step, p.NextAt, p.ClaimedBy, p.Lookups = payment.StepQueued, l.Now(), payment.ID{}, 0
	p.Outcome, p.Evidence, p.FirstSentAt = payment.RefundPartOutcome(store.SendNotFound), evidence, time.Time{}
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
		o.Step, o.NextAt = payment.StepQueued, l.Now()
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
	if !p.MayExist && waitsForOthers(l, &p) {
		return nil
	}
	p.Step, p.NextAt, p.ClaimedBy, p.Lookups = payment.StepUnknown, l.Now(), payment.ID{}, 0
	if p.Outcome == payment.RefundPartOutcome(store.SendAccepted) {
		p.Step = payment.StepAccepted
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
