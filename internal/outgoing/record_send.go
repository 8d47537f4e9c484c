package outgoing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// RecordSend records the answer to a send. Done applies the processor's report, Refused
// releases the money if no earlier send can still pay, NotSent and Later queue the payout
// again. Known and Unknown keep the hold: the payout is looked up, never sent blindly.
func (e *Executor) RecordSend(ctx context.Context, s ClaimedSend, answer processor.TransferAnswer) error {
	op := e.NewRecordSendOp(s, answer)
	if err := e.Writer.Do(ctx, op); err != nil {
		return err
	}
	e.logContradiction(ctx, &op.resolution)
	if p := &op.after; p.Step == payment.StepUnknown && !p.NextAt.After(e.Env.Clock.Now()) {
		e.LookUpWaker.Wake() // it is due at once; else the worker's period suffices
	}
	return nil
}

// RecordSendOp is the operation that records the answer to a send.
type RecordSendOp struct {
	resolution

	payout payment.Payout // as it was claimed
	number int64          // of the send
	sent   time.Time      // its deadline: a send that this database lacks had another deadline
	answer processor.TransferAnswer
	after  payment.Payout
}

// NewRecordSendOp builds the operation that records the answer to a send.
func (e *Executor) NewRecordSendOp(s ClaimedSend, answer processor.TransferAnswer) *RecordSendOp {
	if r := proved(answer.Report); answer.Outcome == processor.Done && r.Cause != nil && answer.Report.Cause == nil {
		answer = processor.TransferAnswer{Outcome: processor.Unknown, Cause: r.Cause}
	}
	return &RecordSendOp{resolution: e.newResolution(s.Payout.Processor), payout: s.Payout, number: s.Number, sent: s.Deadline, answer: answer}
}

// Merchant implements [write.Operation].
func (v *RecordSendOp) Merchant() payment.ID { return v.payout.Merchant }

// Class implements [write.Operation].
func (v *RecordSendOp) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *RecordSendOp) Needs(n *store.Needs) {
	n.Payout(v.payout.Merchant, v.payout.ID)
	n.Sends(v.payout.Merchant, v.payout.ID)
	v.needConsent(n, &v.payout)
	v.needDuplicate(n, v.payout.Merchant, &v.answer.Report)
	if v.answer.Outcome == processor.Refused || v.answer.Outcome == processor.Done && isFinal(v.answer.Report) {
		n.Balances(v.payout.Merchant)
		n.ExpectDeliveries(v.payout.Merchant, 1)
	}
}

// Decide implements [write.Operation].
func (v *RecordSendOp) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payout(v.payout.Merchant, v.payout.ID)
	if !ok {
		return store.ErrNotFound
	}
	v.contradiction = ""
	defer func() { v.after = p }()
	if v.parkForged(l, c, &p) {
		return nil
	}
	if v.answer.Outcome == processor.Done {
		if v.otherMayPay(l, &p, &v.answer.Report) {
			v.scheduleLookUp(l, c, &p)
			return nil
		}
		return v.applyReport(l, c, &p, v.answer.Report)
	}
	sends := l.Sends(p.Merchant, p.ID)
	if int64(len(sends)) != v.number || !sends[v.number-1].Deadline.Equal(v.sent) {
		return nil // this answer is about an earlier send, or one that this database lacks
	}
	switch v.answer.Outcome {
	case processor.Refused:
		return v.refused(l, c, &p, sends)
	case processor.NotSent, processor.Later:
		v.noEffect(l, c, &p, sends)
	default:
		v.scheduleLookUp(l, c, &p)
	}
	return nil
}

// refused ends a payout if every earlier send ended without an effect. Otherwise an earlier send
// may still pay, and may be the reason for the refusal: the payout is looked up at once.
func (v *RecordSendOp) refused(l *store.Loaded, c *store.Changes, p *payment.Payout, sends []store.Send) error {
	last := sends[len(sends)-1]
	_, asked := l.Consent(p.Processor, p.ExternalID) // about an earlier send, which may pay
	final := refusalIsFinal(sends) && !asked
	switch {
	case last.Outcome == store.SendAccepted:
		return nil // the processor has reported the transfer since: its result decides
	case final && last.Outcome != store.SendNotFound:
		return v.failed(l, c, p, store.SendRefused, v.answer.Failure, v.answer.Evidence)
	case last.Outcome != store.SendIntent && last.Outcome != store.SendUnknown && last.Outcome != store.SendNotFound:
		return nil // recorded already, or a later report counts
	}
	last.Outcome, last.Evidence, last.EndedAt = store.SendRefused, worker.Short(v.answer.Evidence), l.Now()
	c.SetSend(last)
	switch {
	case final:
		return v.failed(l, c, p, store.SendRefused, v.answer.Failure, v.answer.Evidence)
	case p.Status != payment.PayoutProcessing || p.Step == payment.StepReview:
		return nil
	}
	p.Step, p.NextAt, p.ClaimedBy, p.Lookups = payment.StepUnknown, l.Now(), payment.ID{}, 0
	*p = c.SetPayout(*p)
	return nil
}

// refusalIsFinal reports whether the refusal of the last send proves that no send of the payout
// pays. A send that was not found may still pay. After such a send only a second refusal is proof:
// a quiet period and a look-up lie between the two refusals.
func refusalIsFinal(sends []store.Send) bool {
	for _, s := range slices.Backward(sends[:len(sends)-1]) {
		switch s.Outcome {
		case store.SendRefused:
			return true
		case store.SendNotSent, store.SendLater:
		default:
			return false
		}
	}
	return true
}

// noEffect queues a payout again after a send that did not leave, or that the processor does not
// take now. The outcome is proof even if the sending process was declared dead meanwhile, because
// no later send exists.
func (v *RecordSendOp) noEffect(l *store.Loaded, c *store.Changes, p *payment.Payout, sends []store.Send) {
	earlier, last := sends[:len(sends)-1], sends[len(sends)-1].Outcome
	if last != store.SendIntent && last != store.SendUnknown || p.Step != payment.StepIntent && p.Step != payment.StepUnknown {
		return // recorded already, or a later report counts
	}
	c.CloseCases(p.Merchant, p.ID, store.CasePayoutUnknown, store.ResolvedByProof)
	p.Step, p.ClaimedBy, p.Lookups = payment.StepQueued, payment.ID{}, 0 // a look-up before this send allows no other
	if ours := isOurWait(&v.answer); ours || v.answer.Outcome == processor.NotSent {
		endSend(l, c, p, store.SendNotSent, worker.ErrorText(v.answer.Cause))
		wait := v.jitter.Of(worker.After(effect.SendAgainAfter, len(earlier)))
		if ours {
			wait = max(wait, v.answer.Wait)
		}
		p.NextAt = l.Now().Add(wait)
	} else {
		endSend(l, c, p, store.SendLater, worker.Short(v.answer.Evidence))
		wait := v.jitter.Of(worker.After(effect.LaterAfter, countLater(earlier)))
		p.NextAt = l.Now().Add(max(wait, min(v.answer.Wait, effect.LongestLater)))
	}
	sends = l.Sends(p.Merchant, p.ID)
	switch first := firstWithoutEffect(sends); {
	case v.answer.Person:
		c.OpenCase(store.Case{
			Merchant: p.Merchant, ID: waitCase(p.ID, "person", first), Kind: store.CasePayoutWaiting, Subject: p.ID, Amount: p.Amount,
			Params: store.ReasonPersonOnly.With(store.Params{"processor": p.Processor}),
		})
	case waitsLong(sends[first:], l.Now()):
		c.OpenCase(store.Case{Merchant: p.Merchant, ID: waitCase(p.ID, "sends", first), Kind: store.CasePayoutWaiting, Subject: p.ID, Amount: p.Amount})
	}
	*p = c.SetPayout(*p)
}

// firstWithoutEffect is the index of the first of the latest sends that had no effect.
func firstWithoutEffect(sends []store.Send) int {
	for i, s := range slices.Backward(sends) {
		if !s.Outcome.NoEffect() {
			return i + 1
		}
	}
	return 0
}

// waitsLong reports whether a payout's sends without an effect have taken so long that a case is
// due.
func waitsLong(sends []store.Send, now time.Time) bool {
	return countLater(sends) >= latersBeforeCase || len(sends) > 0 && now.Sub(sends[0].CreatedAt) >= waitBeforeCase
}

// waitCase is the id of the case about a payout or a part of a refund that waits for its next send.
// The id is the same after each send without an effect, so one case is opened.
func waitCase(id payment.ID, what string, n int) payment.ID {
	return store.CaseID("%s %s %d", id, what, n)
}

// isOurWait reports whether this gateway's own budget of requests delayed a payout: the processor
// has not answered.
func isOurWait(a *processor.TransferAnswer) bool {
	return a.Outcome == processor.Later && errors.Is(a.Cause, processor.ErrBudget)
}

// endsWait reports whether an outcome closes the case about a waiting payout. There may be a case
// after a send that the processor did not take, after an hour of sends without an effect, or if the
// processor has the transfer while no send is in flight. For other payouts no case is searched for.
func endsWait(sends []store.Send, outcome store.SendOutcome, now time.Time) bool {
	switch {
	case outcome.NoEffect():
		return false
	case countLater(sends) > 0, waitsLong(sends, now) && slices.ContainsFunc(sends, func(s store.Send) bool { return s.Outcome.NoEffect() }):
		return true
	default:
		return outcome != store.SendNotFound && (len(sends) == 0 || !sends[len(sends)-1].Outcome.Undecided())
	}
}

// countLater counts the sends that were answered with Later.
func countLater(sends []store.Send) (n int) {
	for i := range sends {
		if sends[i].Outcome == store.SendLater {
			n++
		}
	}
	return n
}

// scheduleLookUp keeps the hold and schedules a look-up, unless another process has taken over the payout.
func (v *RecordSendOp) scheduleLookUp(l *store.Loaded, c *store.Changes, p *payment.Payout) {
	if mine := p.Step == payment.StepIntent && p.ClaimedBy == v.payout.ClaimedBy; !mine {
		return
	}
	evidence, wait := worker.ErrorText(v.answer.Cause), worker.After(effect.LookUpAfter, 0)
	switch v.answer.Outcome {
	case processor.Known:
		evidence, wait = idInUse, 0
	case processor.Done: // this transfer failed, and that of an earlier send may still pay
		evidence, wait = worker.Short(v.answer.Report.Evidence), 0
	}
	endSend(l, c, p, store.SendUnknown, evidence)
	p.Step, p.ClaimedBy, p.Lookups = payment.StepUnknown, payment.ID{}, 0
	p.NextAt = l.Now().Add(wait)
	*p = c.SetPayout(*p)
}

// endSend sets the outcome and the evidence of a payout's undecided send. Without an undecided
// send, it is no error: a fact may be reported twice. If the processor proves a transfer although
// every send seemed to have no effect, the proof belongs to the last send that was not found, or
// else to the last send. A payment without any send gets a send.
func endSend(l *store.Loaded, c *store.Changes, p *payment.Payout, outcome store.SendOutcome, evidence string) {
	sends := l.Sends(p.Merchant, p.ID)
	if endsWait(sends, outcome, l.Now()) {
		c.CloseCases(p.Merchant, p.ID, store.CasePayoutWaiting, store.ResolvedByProof)
	}
	s, ok := sendToEnd(sends, outcome)
	switch {
	case !ok && len(sends) == 0 && outcome == store.SendPaid:
		s = addLostSend(l, c, p)
	case !ok:
		return
	}
	s.Outcome, s.Evidence = outcome, evidence
	if outcome != store.SendAccepted && outcome != store.SendUnknown {
		s.EndedAt = l.Now()
	}
	c.SetSend(s)
}

// addLostSend adds the send of a paid transfer that the database lacks: the database is a copy from
// before the send.
func addLostSend(l *store.Loaded, c *store.Changes, p *payment.Payout) store.Send {
	request := transferRequest(p)
	s := store.Send{
		Merchant: p.Merchant, Payout: p.ID, Number: 1, Processor: p.Processor, BodyHash: bodyHash(request),
		Deadline: l.Now(), Outcome: store.SendUnknown, CreatedAt: l.Now(),
	}
	c.AddSend(s)
	return s
}

// sendToEnd picks the send that an outcome belongs to.
func sendToEnd(sends []store.Send, outcome store.SendOutcome) (s store.Send, ok bool) {
	if i := slices.IndexFunc(sends, func(s store.Send) bool { return s.Outcome.Undecided() }); i >= 0 {
		return sends[i], true
	}
	lost := func(s store.Send) bool {
		return s.Outcome == store.SendNotFound || s.Outcome.NoEffect() || s.Outcome == store.SendRefused
	}
	proof := outcome == store.SendAccepted || outcome == store.SendPaid || outcome == store.SendFailed
	if !proof || len(sends) == 0 || slices.ContainsFunc(sends, func(s store.Send) bool { return !lost(s) }) {
		return s, false
	}
	for _, s := range slices.Backward(sends) {
		if s.Outcome == store.SendNotFound {
			return s, true
		}
	}
	return sends[len(sends)-1], true
}
