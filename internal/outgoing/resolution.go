package outgoing

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// resolution applies a processor's proof about a transfer. Its functions are pure.
type resolution struct {
	jitter worker.Jitter
	effect processor.Effect // the processor's guarantees for transfers

	// askedBefore is the result of [AskedBefore], read if a payout was not found.
	askedBefore bool
	// noCase: when the look-up ended, no case about the unknown outcome was open.
	noCase bool

	// searched: the report is about all transfers of the payout, not about one with a known id.
	searched bool

	contradiction store.CaseReason // for an operator: no money moves, or it left twice
	subject       payment.Payout   // of it
}

func (e *Executor) newResolution(account string) resolution {
	v := resolution{jitter: worker.NewJitter(e.Env.Random)}
	if proc := e.Processors.Find(account); proc != nil {
		v.effect = proc.Profile().Transfer
	}
	return v
}

// applyReport applies a report of a transfer that exists at the processor.
func (v *resolution) applyReport(l *store.Loaded, c *store.Changes, p *payment.Payout, r processor.TransferReport) error {
	switch {
	case v.isDuplicate(l, p, &r):
		return v.bookDuplicate(l, c, p, &r)
	case v.isOtherFailure(p, &r):
		return nil
	}
	r = withFound(l, p, r)
	if r.Amount != 0 && r.Amount != amountOf(l, p) && !isPaidAfterRelease(p, &r) {
		v.contradict(c, p, store.ReasonOtherAmount, store.Params{"reported": r.Amount.String()})
		return nil
	}
	r = ofConsented(l, p, r)
	if v.otherMayPay(l, p, &r) {
		lookUpAll(l, c, p)
		return nil
	}
	if r.ProcessorID != "" {
		p.ProcessorID = r.ProcessorID
	}
	if p.Status == payment.PayoutPending && r.State != processor.TransferFailed {
		p.SentAt = l.Now() // at the latest: the database lost the send in a restore
		if _, err := transition.Payout(l, c, p, payment.OnSend); err != nil {
			return err
		}
	}
	switch r.State {
	case processor.TransferPaid:
		if isReleased(p) {
			return v.paidLate(l, c, p, r)
		}
		if err := v.paid(l, c, p, r); err != nil {
			return err
		}
		return v.returned(l, c, p, r.Returned)
	case processor.TransferFailed:
		return v.failed(l, c, p, store.SendFailed, r.Failure, r.Evidence)
	default:
		v.accepted(l, c, p, r.Evidence)
		return nil
	}
}

// errNoEndToEndID is the cause of a reported payment without its endToEndId.
var errNoEndToEndID = errors.New("outgoing: the processor reports a paid transfer without its endToEndId")

// proved returns a report without unproved claims: a paid transfer has an endToEndId.
func proved(r processor.TransferReport) processor.TransferReport {
	if r.State == processor.TransferPaid && r.EndToEndID == "" {
		return processor.TransferReport{Lookup: processor.LookupUnknown, Cause: errNoEndToEndID}
	}
	return r
}

// parkForged parks a payout in flight if its row was changed outside the gateway: its end would
// move another amount than is held. It returns false if the row is right.
func (v *resolution) parkForged(l *store.Loaded, c *store.Changes, p *payment.Payout) bool {
	if !l.PayoutForged(p.Merchant, p.ID) || p.Status != payment.PayoutPending && p.Status != payment.PayoutProcessing {
		return false
	}
	if p.Step != payment.StepReview && !(p.Step == payment.StepApproval && p.NextAt.IsZero()) { // else it has a case
		park(c, p, store.ReasonChangedOutside)
		v.contradiction, v.subject = store.ReasonChangedOutside, *p
	}
	return true
}

// isFinal reports whether money may move: the processor paid or refused the
// transfer.
func isFinal(r processor.TransferReport) bool {
	return r.State == processor.TransferPaid || r.State == processor.TransferFailed
}

// accepted records that the processor accepted the transfer. Its result will be reported, and is
// looked up in case the report is lost. If it is never final, a case is opened.
func (v *resolution) accepted(l *store.Loaded, c *store.Changes, p *payment.Payout, evidence string) {
	if p.Status != payment.PayoutProcessing {
		return
	}
	if p.Step == payment.StepAccepted {
		p.Lookups++
	} else {
		p.Lookups = effect.LookUpsSkipped
	}
	p.Step, p.ClaimedBy = payment.StepAccepted, payment.ID{}
	p.NextAt = l.Now().Add(v.jitter.Of(worker.After(effect.LookUpAfter, p.Lookups)))
	endSend(l, c, p, store.SendAccepted, worker.Short(evidence))
	*p = c.SetPayout(*p)
	v.reportUndecided(c, p, store.ReasonStillProcessing)
}

// paid completes a payout.
func (v *resolution) paid(l *store.Loaded, c *store.Changes, p *payment.Payout, r processor.TransferReport) error {
	if isPaid(p) {
		return nil // known
	}
	Finish(p)
	p.EndToEndID, p.CompletedAt, p.Failure = r.EndToEndID, l.Now(), nil
	endSend(l, c, p, store.SendPaid, worker.Short(r.Evidence))
	noteNotAsked(l, c, p)
	c.CloseCases(p.Merchant, p.ID, store.CasePayoutUnknown, store.ResolvedByProof)
	_, err := transition.Payout(l, c, p, payment.OnComplete, ledger.PayPayout(p.Processor, p.Amount, p.Fee))
	return err
}

// returned books money that the receiver's bank sent back.
func (v *resolution) returned(l *store.Loaded, c *store.Changes, p *payment.Payout, returned money.Cents) error {
	if returned < 0 || returned > p.Amount { // first: a difference could overflow
		v.contradict(c, p, store.ReasonReturnedTooMuch, store.Params{"reported": returned.String()})
		return nil
	}
	back := returned - p.ReturnedAmount
	if back <= 0 {
		return nil
	}
	p.ReturnedAmount = returned
	on := payment.OnReturnPart
	if returned == p.Amount {
		on = payment.OnReturn
	}
	_, err := transition.Payout(l, c, p, on, ledger.ReturnPayout(p.Processor, back))
	return err
}

// failed releases the money of a payout, because the processor proves that it will not leave.
func (v *resolution) failed(l *store.Loaded, c *store.Changes, p *payment.Payout, outcome store.SendOutcome, why *payment.Failure, evidence string) error {
	switch p.Status {
	case payment.PayoutFailed, payment.PayoutCanceled:
		return v.failedLate(l, c, p)
	case payment.PayoutCompleted, payment.PayoutReturned:
		v.contradict(c, p, store.ReasonFailedAfterPaid, nil)
		return nil
	}
	if why == nil {
		why = &payment.Failure{Code: "transfer_failed", Message: "The processor did not pay it."}
	}
	Finish(p)
	p.Failure = why
	endSend(l, c, p, outcome, worker.Short(evidence))
	c.CloseCases(p.Merchant, p.ID, store.CasePayoutUnknown, store.ResolvedByProof)
	_, err := transition.Payout(l, c, p, payment.OnFail, ledger.ReleasePayout(p.Amount, p.Fee))
	return err
}

// contradict leaves the ledger unchanged and opens a case: money moves on proof only, and two
// proofs contradict. The same contradiction opens no second case: one person may have proposed a
// resolution, or two people have decided.
func (v *resolution) contradict(c *store.Changes, p *payment.Payout, reason store.CaseReason, params store.Params) {
	if p.Status == payment.PayoutProcessing && p.Step != payment.StepReview {
		p.Step, p.NextAt, p.ClaimedBy = payment.StepReview, time.Time{}, payment.ID{}
		*p = c.SetPayout(*p)
	}
	v.openContradiction(c, p, p.Amount, reason, params)
}

// openContradiction opens the case about a contradiction; amount is the part of the payout in
// question.
func (v *resolution) openContradiction(c *store.Changes, p *payment.Payout, amount money.Cents, reason store.CaseReason, params store.Params) {
	v.contradiction, v.subject = reason, *p
	params = reason.With(params)
	c.OpenCase(store.Case{
		Merchant: p.Merchant, ID: contradictionCase(p, params), Kind: store.CaseContradiction, Subject: p.ID, Amount: amount, Params: params,
		StopsPayouts: reason == store.ReasonPaidAfterRelease, // money left that the merchant can spend again
		StopsAccount: v.stopsAccount(p, reason == store.ReasonOtherAmount || reason == store.ReasonPaidAfterRelease && amount != p.Amount),
	})
}

// contradictionCase is the id of the case about a contradiction of a payout.
func contradictionCase(p *payment.Payout, params store.Params) payment.ID {
	return store.CaseID("contradiction %s %q", p.ID, params) // fmt sorts the keys of a map
}

// stopsAccount returns the account whose payouts a contradiction stops; "" for none. A processor
// that is not idempotent may have several transfers under one external id, so a report of another
// amount may be a duplicate payment.
func (v *resolution) stopsAccount(p *payment.Payout, otherAmount bool) string {
	if otherAmount && !v.effect.Repeat.Safe() {
		return p.Processor
	}
	return ""
}

func (e *Executor) logContradiction(ctx context.Context, v *resolution) {
	if v.contradiction != "" {
		e.Log.ErrorContext(ctx, "contradictory report from processor", "payout", v.subject.ID, "externalId", v.subject.ExternalID, "reason", v.contradiction)
	}
}
