package outgoing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/effect"
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
	return &recordRefund{refundResolution: e.newRefundResolution(p.Processor), process: e.process(), part: p}
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
	if p := &op.after; p.State == effect.Unknown && !p.NextAt.After(e.Env.Clock.Now()) {
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
	process

	part     payment.RefundPart        // as it was claimed, or read for a report
	answer   *processor.TransferAnswer // of a send; nil for a report
	report   processor.TransferReport
	lookedUp bool // the report answers a look-up that this process claimed
	notice   *store.Notice

	do       effect.Action // next, by the process that has claimed it
	again    bool
	outdated bool // see isOutdated
	after    payment.RefundPart
}

// Merchant implements [write.Operation].
func (v *recordRefund) Merchant() payment.ID { return v.part.Merchant }

// Class implements [write.Operation]. It may record the intent to send after a look-up.
func (v *recordRefund) Class() commit.Class {
	if v.lookedUp && v.part.State == effect.Asking {
		return commit.Claim
	}
	return commit.Background
}

// Needs implements [write.Operation].
func (v *recordRefund) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
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
	v.do, v.again, v.outdated, v.contradiction, v.next, v.after = effect.None, false, false, false, false, payment.RefundPart{}
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
	if l.NodeAlive(v.node) && takeRestore(l.History(), &p.Effect, &p.ClaimedBy, &p.History, p.CreatedAt, l.Now()) {
		p = c.SetRefundPart(p)
	}
	if found != nil {
		return v.applyReport(l, c, &p, *found)
	}
	in := effect.Input{Send: v.part.Sends}
	if v.answer != nil {
		in.On, in.Wait = answerEvent(v.answer), v.answer.Wait
	} else {
		in.On = reportEvent(&v.report)
	}
	switch {
	case v.answer != nil && (p.History != v.part.History || !p.Until.Equal(v.part.Until)):
		return nil // about a send that this database lacks: only a report counts
	case v.answer != nil:
	case !v.lookedUp || p.ClaimedBy != v.part.ClaimedBy || p.State != v.part.State || p.Lookups != v.part.Lookups:
		return nil // only the node that claimed it may conclude from a missing answer, once
	case p.State == effect.Asking && v.mayAct(l) != nil:
		in.On = effect.NoAnswer // it may not be sent now
	}
	claimedBy, out := p.ClaimedBy, v.take(l, &p, in)
	switch {
	case out.Row == "":
		return nil // recorded already, or a later report counts
	case out.Action == effect.Release:
		return v.failed(l, c, &p, v.answer.Failure, v.answer.Evidence)
	case out.Case != "":
		reviewPart(l, c, &p, store.CaseReason(out.Case))
		return nil
	case out.Action == effect.Send:
		v.do, p.ClaimedBy, p.Outcome = out.Action, claimedBy, ""
		p = c.SetRefundPart(p)
	case v.answer != nil:
		v.noReport(l, c, &p, in.On)
	default:
		v.notFound(l, c, &p, in.On)
	}
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

// notFound stores a part that a look-up did not find, or that had no answer. After a number of them it
// gets a case, unless it has one.
func (v *recordRefund) notFound(l *store.Loaded, c *store.Changes, p *payment.RefundPart, on effect.Event) {
	if on == effect.NotFound && p.State == effect.Queued {
		v.again = true
		p.Outcome, p.Evidence = payment.RefundPartOutcome(store.SendNotFound), notFoundEvidence
	}
	*p = c.SetRefundPart(*p)
	undecided := on == effect.NoAnswer || p.State == effect.Accepted
	if undecided && p.Lookups >= lookUpsBeforeCase && len(CasesOfPart(l, p, store.CaseRefundUnknown)) == 0 {
		openPartCase(c, p, store.CaseRefundUnknown, store.ReasonNoAnswer)
	}
}

// noReport stores a part whose send had no effect, or no result.
func (v *recordRefund) noReport(l *store.Loaded, c *store.Changes, p *payment.RefundPart, on effect.Event) {
	p.Outcome, p.Evidence = payment.RefundPartOutcome(v.answer.Outcome.String()), worker.Short(v.answer.Evidence)
	switch on {
	case effect.NoResult:
		p.Outcome, p.Evidence = payment.RefundPartOutcome(store.SendUnknown), worker.ErrorText(v.answer.Cause)
	case effect.Known:
		p.Evidence = idInUse
	case effect.NotSent:
		p.Evidence = worker.ErrorText(v.answer.Cause)
	}
	if p.State == effect.Queued {
		v.waits(l, c, p)
	}
	*p = c.SetRefundPart(*p)
}

// waits opens the case of a part that is queued again, if a person must act or it has waited long.
func (v *recordRefund) waits(l *store.Loaded, c *store.Changes, p *payment.RefundPart) {
	closePartCases(l, c, p, store.CaseRefundUnknown, store.ResolvedByProof)
	switch {
	case !p.Possible() && waitsForOthers(l, p): // the report came during this send
		p.State, p.NextAt = effect.Review, time.Time{}
	case v.answer.Person:
		c.OpenCase(partCase(p, waitCase(p.Refund, "person", int(p.Number)), store.CaseRefundWaiting, store.ReasonRefundPersonOnly))
	case p.Laters >= latersBeforeCase || l.Now().Sub(p.CreatedAt) >= waitBeforeCase:
		c.OpenCase(partCase(p, waitCase(p.Refund, "part", int(p.Number)), store.CaseRefundWaiting, ""))
	}
}

// start starts a refund that is reported, if the database does not show it as sent.
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
