package outgoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// RecordRefundReport records a processor's report about a part of a refund, from a notice or
// a list, and finishes the notice, if any, in the same commit.
func (e *Executor) RecordRefundReport(ctx context.Context, p payment.RefundPart, report processor.TransferReport, notice *store.Notice) error {
	op := e.newRecordRefund(p)
	op.report, op.notice = report, notice
	return e.recordRefund(ctx, op)
}

func (e *Executor) newRecordRefund(p payment.RefundPart) *recordRefund {
	v := &recordRefund{refundResolution: e.newRefundResolution(p.Processor), part: p}
	v.restoredAt = e.Node.RestoredAt()
	return v
}

func (e *Executor) recordRefund(ctx context.Context, op *recordRefund) error {
	if err := e.Writer.Do(ctx, op); err != nil {
		return err
	}
	if op.outdated {
		return e.queryAgain(ctx, op)
	}
	if op.contradiction {
		e.Log.ErrorContext(ctx, "contradictory report of a refund", "refund", op.part.Refund, "externalId", op.part.ExternalID)
	}
	if op.again || op.next {
		e.SendWaker.Wake()
	}
	if p := &op.after; p.Step == payment.StepUnknown && !p.NextAt.After(e.Env.Clock.Now()) {
		e.LookUpWaker.Wake()
	}
	return nil
}

// queryAgain asks the processor again about a part that failed after the first query, and records
// the present report. A part that the processor does not find stays unchanged. Without an answer,
// the record is tried again later.
func (e *Executor) queryAgain(ctx context.Context, op *recordRefund) error {
	again := e.newRecordRefund(op.after)
	refunder, ok := e.Processors.Find(op.part.Processor).(processor.Refunder)
	if !ok {
		return fmt.Errorf("outgoing: account %s is not open", op.part.Processor)
	}
	again.notice, again.report = op.notice, e.queryRefund(ctx, &op.after, refunder)
	if again.report.Lookup == processor.LookupUnknown {
		return errors.Join(fmt.Errorf("outgoing: refund %s failed while its processor was asked", op.part.ExternalID), again.report.Cause)
	}
	return e.recordRefund(ctx, again)
}

// recordRefund is the operation that records the answer to a send of a part of a refund, or a
// processor's report about it.
type recordRefund struct {
	refundResolution

	part       payment.RefundPart        // as it was claimed, or read for a report
	answer     *processor.TransferAnswer // of a send; nil for a report
	report     processor.TransferReport
	lookedUp   bool // the report answers a look-up that this process claimed
	notice     *store.Notice
	restoredAt time.Time

	again    bool
	outdated bool // see isOutdated
	after    payment.RefundPart
}

// Merchant implements [write.Operation].
func (v *recordRefund) Merchant() payment.ID { return v.part.Merchant }

// Class implements [write.Operation].
func (v *recordRefund) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *recordRefund) Needs(n *store.Needs) {
	NeedsOfRefund(n, v.part.Merchant, v.part.Refund, v.part.Payin)
	n.ExpectDeliveries(v.part.Merchant, 2)
}

// NeedsOfRefund reads the rows that a refund of a pay-in may change when it ends.
func NeedsOfRefund(n *store.Needs, merchant, refund, payin payment.ID) {
	n.OpenCasesAbout(merchant, refund, store.CaseRefundUnknown)
	n.OpenCasesAbout(merchant, refund, store.CaseRefundWaiting)
	n.RefundsOf(merchant, payin)
	n.DisputesOfPayin(merchant, payin)
	n.ReceivablesOf(merchant, payin)
	n.OpenCasesAbout(merchant, payin, store.CaseOverpaid)
	n.Balances(merchant)
}

// Decide implements [write.Operation].
func (v *recordRefund) Decide(l *store.Loaded, c *store.Changes) error {
	v.again, v.outdated, v.contradiction, v.next, v.after = false, false, false, false, payment.RefundPart{}
	p, ok := loadedPart(l, &v.part)
	if !ok {
		return store.ErrNotFound
	}
	defer func() { v.after, _ = loadedPart(l, &v.part) }()
	found := v.found()
	if v.outdated = found != nil && v.isOutdated(&p, found); v.outdated {
		return nil
	}
	if v.notice != nil {
		c.FinishNotice(*v.notice)
	}
	switch {
	case found != nil:
		return v.applyReport(l, c, &p, *found)
	case v.answer != nil && (p.Sends != v.part.Sends || !p.SentAt.Equal(v.part.SentAt)):
		return nil // this answer is about an earlier send, or one that this database lacks
	case v.answer != nil:
		return v.applyAnswer(l, c, &p)
	case !v.lookedUp || p.ClaimedBy != v.part.ClaimedBy || p.Step != v.part.Step || p.Lookups != v.part.Lookups:
		return nil // only the node that claimed it may conclude from a missing answer, once
	}
	p.Lookups++
	p.ClaimedBy, p.NextAt = payment.ID{}, l.Now().Add(v.jitter.Of(worker.After(lookUpAfter, p.Lookups)))
	if v.report.Lookup == processor.NotFound && p.Step == payment.StepUnknown {
		v.notFound(l, c, &p)
		return nil
	}
	v.undecided(l, c, &p, store.ReasonNoAnswer)
	return nil
}

// found is the report of a refund that exists; nil if there is no such refund.
func (v *recordRefund) found() *processor.TransferReport {
	switch {
	case v.answer != nil && v.answer.Outcome == processor.Done:
		return &v.answer.Report
	case v.answer == nil && v.report.Lookup == processor.Found:
		return &v.report
	default:
		return nil
	}
}

// isOutdated reports whether a report of a payment may be older than the failure of the part: the
// processor was asked before the failure was recorded, and a refund can fail after it was paid.
func (v *recordRefund) isOutdated(p *payment.RefundPart, r *processor.TransferReport) bool {
	return r.State == processor.TransferPaid && p.Outcome == payment.PartFailed && !v.part.Ended()
}

// loadedPart is a part as it is loaded.
func loadedPart(l *store.Loaded, of *payment.RefundPart) (payment.RefundPart, bool) {
	for _, p := range l.RefundParts(of.Merchant, of.Refund) {
		if p.Number == of.Number {
			return p, true
		}
	}
	return payment.RefundPart{}, false
}

// undecided stores a part that a look-up did not decide. After a number of such look-ups the part
// gets a case, if there is none.
func (v *recordRefund) undecided(l *store.Loaded, c *store.Changes, p *payment.RefundPart, reason store.CaseReason) {
	*p = c.SetRefundPart(*p)
	if p.Lookups >= lookUpsBeforeCase && len(CasesOfPart(l, p, store.CaseRefundUnknown)) == 0 {
		openPartCase(c, p, store.CaseRefundUnknown, reason)
	}
}

// applyAnswer records a send that the processor did not accept.
func (v *recordRefund) applyAnswer(l *store.Loaded, c *store.Changes, p *payment.RefundPart) error {
	if p.Step != payment.StepIntent && p.Step != payment.StepUnknown {
		return nil // recorded already, or a later report counts
	}
	a := v.answer
	mine := p.Step == payment.StepIntent && p.ClaimedBy == v.part.ClaimedBy
	switch a.Outcome {
	case processor.Refused:
		if !v.part.MayExist || v.part.Refusals > 0 {
			return v.failed(l, c, p, a.Failure, a.Evidence)
		}
		// An earlier send may be the reason of the refusal. Only a second refusal after "not found"
		// is proof.
		p.Refusals, p.MayExist = p.Refusals+1, true
		p.Step, p.NextAt, p.ClaimedBy, p.Lookups = payment.StepUnknown, l.Now(), payment.ID{}, 0
		p.Evidence = worker.Short(a.Evidence)
	case processor.NotSent, processor.Later:
		v.noEffect(l, c, p)
	default:
		if !mine {
			return nil
		}
		p.Step, p.ClaimedBy, p.Lookups, p.MayExist, p.Refusals = payment.StepUnknown, payment.ID{}, 0, true, 0
		p.Evidence, p.NextAt = worker.ErrorText(a.Cause), l.Now().Add(worker.After(lookUpAfter, 0))
		if a.Outcome == processor.Known {
			p.Evidence, p.NextAt = idInUse, l.Now()
		}
	}
	if p.Outcome = payment.RefundPartOutcome(a.Outcome.String()); a.Outcome == processor.Unknown {
		p.Outcome = payment.RefundPartOutcome(store.SendUnknown)
	}
	*p = c.SetRefundPart(*p)
	return nil
}

// noEffect queues a part again after a send that did not leave, or that the processor does not take
// now. MayExist, about the earlier sends, is unchanged.
func (v *recordRefund) noEffect(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	closePartCases(l, c, p, store.CaseRefundUnknown, store.ResolvedByProof)
	p.Step, p.ClaimedBy, p.Lookups, p.MayExist = payment.StepQueued, payment.ID{}, 0, v.part.MayExist
	if ours := isOurWait(v.answer); ours || v.answer.Outcome == processor.NotSent {
		p.Evidence = worker.ErrorText(v.answer.Cause)
		wait := v.jitter.Of(worker.After(sendAgainAfter, p.Sends-1))
		if ours {
			wait = max(wait, v.answer.Wait)
		}
		p.NextAt = l.Now().Add(wait)
	} else {
		p.Evidence = worker.Short(v.answer.Evidence)
		wait := v.jitter.Of(worker.After(laterAfter, p.Laters))
		p.NextAt = l.Now().Add(max(wait, min(v.answer.Wait, longestLater)))
		p.Laters++
	}
	switch {
	case !p.MayExist && waitsForOthers(l, p): // the report came during this send
		p.Step, p.NextAt = payment.StepReview, time.Time{}
	case v.answer.Person:
		c.OpenCase(partCase(p, waitCase(p.Refund, "person", int(p.Number)), store.CaseRefundWaiting, store.ReasonRefundPersonOnly))
	case p.Laters >= latersBeforeCase || l.Now().Sub(p.CreatedAt) >= waitBeforeCase:
		c.OpenCase(partCase(p, waitCase(p.Refund, "part", int(p.Number)), store.CaseRefundWaiting, ""))
	}
}

// notFound handles a processor's "not found" about an unknown part, as for a payout. Within the
// quiet period it proves nothing. After the quiet period the part is sent again under the same id,
// if that is safe.
func (v *recordRefund) notFound(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	// Until then a send may have left. If the last send had no effect, the earlier ones have been
	// looked up since.
	var last time.Time
	if p.MayExist && !store.SendOutcome(p.Outcome).NoEffect() {
		last = p.SentAt.Add(v.effect.Timeout)
	}
	if last.After(l.Now().Add(v.effect.Timeout + clockTolerance)) { // set by a clock that was ahead
		p.SentAt, last = l.Now(), l.Now().Add(v.effect.Timeout)
	}
	if last.Before(v.restoredAt) {
		last = v.restoredAt
	}
	if quiet := last.Add(v.effect.QuietPeriod); l.Now().Before(quiet) {
		if p.NextAt.After(quiet) {
			p.NextAt = quiet
		}
		*p = c.SetRefundPart(*p)
		return
	}
	switch {
	case !p.MayExist || v.isBeforeRepeat(p): // looked up before its next send
	case !v.effect.Repeat.Safe():
		reviewPart(l, c, p, store.ReasonNotIdempotent)
		return
	case p.Evidence == idInUse:
		reviewPart(l, c, p, store.ReasonIDInUse)
		return
	case !v.effect.Repeatable(p.FirstSentAt, l.Now()) || !v.effect.Visible(p.FirstSentAt, l.Now()):
		reviewPart(l, c, p, store.ReasonTooOld)
		return
	}
	v.again = true
	p.Outcome, p.Evidence = payment.RefundPartOutcome(store.SendNotFound), notFoundEvidence
	p.Step, p.NextAt = payment.StepQueued, l.Now()
	*p = c.SetRefundPart(*p)
}

// isBeforeRepeat reports whether a look-up precedes a repeated send at a processor that would pay
// the part twice: people have decided that the part is sent again, and no send has left since.
func (v *recordRefund) isBeforeRepeat(p *payment.RefundPart) bool {
	last := store.SendOutcome(p.Outcome)
	return !v.effect.Repeat.Safe() && p.MayExist && (last == store.SendNotFound || last.NoEffect())
}

// start starts a refund that a processor reports although the database does not show it as sent.
func (v *refundResolution) start(l *store.Loaded, c *store.Changes, p *payment.RefundPart) (payment.Refund, error) {
	r, ok := l.Refund(p.Merchant, p.Refund)
	if !ok {
		return r, store.ErrNotFound
	}
	if r.Status == payment.RefundPending {
		if _, err := transition.Refund(l, c, &r, payment.OnSend); err != nil {
			return r, err
		}
	}
	return r, nil
}
