package outgoing

import (
	"context"
	"slices"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// RecordSend records the answer to a send. Done follows the processor's report,
// Refused releases the money, NotSent queues the payout again, and Unknown keeps the
// hold: the payout is looked up, never sent blindly.
func (e *Executor) RecordSend(ctx context.Context, s Sending, answer processor.TransferAnswer) error {
	op := e.NewRecordSend(s, answer)
	if err := e.Writer.Do(ctx, op); err != nil {
		return err
	}
	e.logContradiction(ctx, &op.resolution)
	if op.after.Step == payment.StepUnknown || op.after.Step == payment.StepAccepted {
		e.LookUpWaker.Wake() // to see when the next look-up is due
	}
	return nil
}

// RecordSend is the operation that records the answer to a send.
type RecordSend struct {
	resolution

	payout payment.Payout // as it was claimed
	number int64          // of the send
	answer processor.TransferAnswer
	after  payment.Payout
}

// NewRecordSend builds the operation that records the answer to a send.
func (e *Executor) NewRecordSend(s Sending, answer processor.TransferAnswer) *RecordSend {
	return &RecordSend{resolution: resolution{jitter: newJitter(e.Env.Random)}, payout: s.Payout, number: s.Number, answer: answer}
}

// Merchant implements [write.Operation].
func (v *RecordSend) Merchant() payment.ID { return v.payout.Merchant }

// Class implements [write.Operation].
func (v *RecordSend) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *RecordSend) Needs(n *store.Needs) {
	n.Payout(v.payout.Merchant, v.payout.ID)
	n.Sends(v.payout.Merchant, v.payout.ID)
	if v.answer.Outcome == processor.Refused || v.answer.Outcome == processor.Done && isFinal(v.answer.Report) {
		n.Balances(v.payout.Merchant)
		n.ExpectDeliveries(v.payout.Merchant, 1)
	}
}

// Decide implements [write.Operation].
func (v *RecordSend) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payout(v.payout.Merchant, v.payout.ID)
	if !ok {
		return store.ErrNotFound
	}
	v.contradiction = ""
	defer func() { v.after = p }()
	if v.answer.Outcome == processor.Done {
		return v.follow(l, c, &p, v.answer.Report)
	}
	sends := l.Sends(p.Merchant, p.ID)
	if int64(len(sends)) != v.number {
		return nil // sent again since then: this answer is about the earlier send
	}
	mine := p.Step == payment.StepIntent && p.ClaimedBy == v.payout.ClaimedBy
	if !mine && v.answer.Outcome != processor.Refused {
		return nil // another process took it over and looks it up, or this is recorded already
	}
	switch v.answer.Outcome {
	case processor.Refused:
		return v.failed(l, c, &p, store.SendRefused, v.answer.Failure, v.answer.Evidence)
	case processor.NotSent:
		endSend(l, c, &p, store.SendNotSent, errorText(v.answer.Cause))
		p.Step, p.ClaimedBy = payment.StepQueued, payment.ID{}
		p.NextAt = l.Now().Add(v.jitter.of(after(sendAgainAfter, len(sends)-1)))
	default:
		endSend(l, c, &p, store.SendUnknown, errorText(v.answer.Cause))
		p.Step, p.ClaimedBy, p.Lookups = payment.StepUnknown, payment.ID{}, 0
		p.NextAt = l.Now().Add(after(lookUpAfter, 0))
	}
	p = c.SetPayout(p)
	return nil
}

// endSend sets the outcome of the undecided send of a payout, with its evidence. It
// is not an error if none is undecided: a fact may be reported twice. If a look-up
// had not found the transfer but the processor proves that it has it, the proof is
// kept with one of the sends that may have caused it: the last that was not found,
// else the last.
func endSend(l *store.Loaded, c *store.Changes, p *payment.Payout, outcome store.SendOutcome, evidence string) {
	s, ok := sendToEnd(l.Sends(p.Merchant, p.ID), outcome)
	if !ok {
		return
	}
	s.Outcome, s.Evidence = outcome, evidence
	if outcome != store.SendAccepted && outcome != store.SendUnknown {
		s.EndedAt = l.Now()
	}
	c.SetSend(s)
}

// sendToEnd picks the send that an outcome belongs to.
func sendToEnd(sends []store.Send, outcome store.SendOutcome) (s store.Send, ok bool) {
	if i := slices.IndexFunc(sends, func(s store.Send) bool { return s.Outcome.Undecided() }); i >= 0 {
		return sends[i], true
	}
	lost := func(s store.Send) bool { return s.Outcome == store.SendNotFound || s.Outcome == store.SendNotSent }
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
