package outgoing

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// LookUp is the step of the worker that queries processors about unknown payouts, about accepted
// payouts without a result, and about found transfers.
func (e *Executor) LookUp(ctx context.Context) (int, error) {
	if !e.Node.Lease.Valid() {
		return 0, nil
	}
	due, err := e.Store.PayoutsDue(ctx, e.Env.Clock.Now(), store.ToLookUp)
	if err != nil {
		return 0, err
	}
	did, err := e.lookUpFound(ctx)
	errs := []error{err}
	for _, d := range worker.Order(&e.lookUpTurn, due, store.Due.At, store.CompareDue) {
		if e.Processors.Refused(d.Processor) {
			continue // its payouts are looked up once the credentials are accepted
		}
		transferrer, ok := e.Processors.Find(d.Processor).(processor.Transferrer)
		pool := e.lookUps.Of(d.Processor, 0)
		n := min(lookUpPerMerchant, pool.Free())
		if n > 0 && ok {
			n = e.lookUpBreakers.Allow(d.Processor, n)
		}
		if n == 0 || !ok {
			continue
		}
		list, err := e.ClaimLookUps(ctx, d, n)
		errs = append(errs, err)
		did += len(list)
		e.lookUpTurn.Served(d.At())
		for i := range list {
			pool.Run(func() { e.lookUp(ctx, list[i], transferrer) })
		}
	}
	refunds, err := e.runRefunds(ctx, store.ToLookUp)
	did, errs = did+refunds, append(errs, err)
	return did, errors.Join(errs...)
}

// ClaimLookUps claims up to limit payouts that are to be looked up.
func (e *Executor) ClaimLookUps(ctx context.Context, due store.Due, limit int) ([]payment.Payout, error) {
	op := &claimLookUps{
		due:  store.DuePayouts{Merchant: due.Merchant, Processor: due.Processor, Queue: store.ToLookUp, Limit: limit},
		node: e.Node.ID(),
	}
	if err := e.Writer.DoWithoutCancel(ctx, op); err != nil {
		return nil, err
	}
	return op.claimed, nil
}

// claimLookUps claims due payouts to be looked up.
type claimLookUps struct {
	due     store.DuePayouts
	node    payment.ID
	claimed []payment.Payout
}

// Merchant implements [write.Operation].
func (v *claimLookUps) Merchant() payment.ID { return v.due.Merchant }

// Class implements [write.Operation].
func (v *claimLookUps) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimLookUps) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.DuePayouts(v.due)
}

// Decide implements [write.Operation].
func (v *claimLookUps) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed = nil
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	for _, p := range l.DuePayouts(v.due) {
		if l.PayoutDamaged(p.Merchant, p.ID) {
			park(c, &p, "")
			continue
		}
		p.ClaimedBy, p.NextAt = v.node, time.Time{}
		v.claimed = append(v.claimed, c.SetPayout(p))
	}
	return nil
}

func (e *Executor) lookUp(ctx context.Context, p payment.Payout, transferrer processor.Transferrer) {
	report := e.query(ctx, p.Processor, refOf(&p), transferrer, lookedUp{"payout", e.lookUpBreakers, proved})
	e.Recorder.Record(ctx, "result of look-up", func(ctx context.Context) error { return e.RecordLookUp(ctx, p, report) })
}

// lookBack is how long before its payout a transfer is searched for: it may have left in a past
// that this database lacks.
const lookBack = 24 * time.Hour

// refOf is the known data of a payout's transfer.
func refOf(p *payment.Payout) processor.Ref {
	return processor.Ref{ExternalID: p.ExternalID, ProcessorID: p.ProcessorID, Since: p.CreatedAt.Add(-lookBack), Unsent: p.SentAt.IsZero()}
}

// lookedUp is the subject of a query: its name for the log, the breakers of its kind of effect, and
// the check of the reports.
type lookedUp struct {
	name     string
	breakers *worker.Breakers
	check    func(processor.TransferReport) processor.TransferReport
}

// query queries an account.
func (e *Executor) query(ctx context.Context, account string, ref processor.Ref, transferrer processor.Transferrer, v lookedUp) processor.TransferReport {
	limited, cancel := e.Env.Clock.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	report := worker.Call(func() processor.TransferReport {
		return processor.FindTransfer(limited, transferrer, ref)
	}, func(cause error) processor.TransferReport {
		return processor.TransferReport{Lookup: processor.LookupUnknown, Cause: cause}
	})
	v.breakers.Record(account, !timedOut(limited, report.Lookup == processor.LookupUnknown))
	cancel()
	report = v.check(report)
	e.Env.Inject(env.AfterLookup)
	if report.Lookup == processor.LookupUnknown {
		e.Log.WarnContext(ctx, v.name+" could not be looked up", "processor", account, "externalId", ref.ExternalID, "cause", report.Cause)
	}
	return report
}

// RecordLookUp records a processor's answer about a payout that this process had
// claimed to look up.
func (e *Executor) RecordLookUp(ctx context.Context, p payment.Payout, report processor.TransferReport) error {
	if _, err := e.Processors.Of(p.Processor); err != nil {
		return err
	}
	v := e.newResolution(p.Processor)
	if p.Lookups >= lookUpsBeforeCase { // this process has claimed the payout: no other opens one
		open, err := e.Store.HasOpenCase(ctx, p.Merchant, p.ID, store.CasePayoutUnknown)
		if err != nil {
			return store.Problem(err)
		}
		v.noCase = !open
	}
	v.searched = p.ProcessorID == ""
	if report.Lookup == processor.NotFound && v.effect.Consent {
		var err error
		if v.askedBefore, err = AskedBefore(ctx, e.Store, &p); err != nil {
			return store.Problem(err)
		}
	}
	return e.record(ctx, &recordReport{
		resolution: v,
		merchant:   p.Merchant, id: p.ID, report: report, claimedBy: p.ClaimedBy, asked: p, restoredAt: e.Node.RestoredAt(),
		found: e.foundAs(&p),
	})
}

// RecordNotice records a processor's answer about a transfer, and finishes the notice, if
// any, in the same commit. known is false if no payout has the external id at that
// processor and no transfer was found with it; then nothing is recorded.
func (e *Executor) RecordNotice(ctx context.Context, processorName, externalID string, report processor.TransferReport, notice *store.Notice) (known bool, err error) {
	merchant, err := e.Store.MerchantOf(ctx, externalID)
	if err != nil {
		return false, store.Problem(err)
	}
	p, _, err := e.Store.PayoutByExternalID(ctx, merchant, externalID)
	if errors.Is(err, store.ErrNotFound) {
		return e.recordFound(ctx, store.FoundTransfer{Merchant: merchant, Processor: processorName, ExternalID: externalID}, report, notice)
	}
	if err == nil && p.Processor != processorName {
		return false, nil
	}
	if err != nil {
		return false, store.Problem(err)
	}
	if report = proved(report); report.Lookup != processor.Found {
		return true, report.Cause // the notice is applied again later
	}
	return true, e.record(ctx, &recordReport{
		resolution: e.newResolution(p.Processor), merchant: merchant, id: p.ID, asked: p, report: report, notice: notice,
		found: e.foundAs(&p),
	})
}

// foundAs is the external id of a payout whose transfer may have been found after a restore, or may
// have left after the release of its hold; else "".
func (e *Executor) foundAs(p *payment.Payout) string {
	if e.Node.History() == 0 && !isReleased(p) {
		return ""
	}
	return p.ExternalID
}

func (e *Executor) record(ctx context.Context, op *recordReport) error {
	if err := e.Writer.Do(ctx, op); err != nil {
		return err
	}
	e.logContradiction(ctx, &op.resolution)
	if op.manual {
		e.Log.WarnContext(ctx, "payout needs manual review: its outcome is unknown", "payout", op.id, "externalId", op.subject.ExternalID)
	}
	if op.again {
		e.SendWaker.Wake()
	}
	return nil
}

// recordReport is the operation that records a processor's report about a
// transfer.
type recordReport struct {
	resolution

	merchant, id payment.ID
	report       processor.TransferReport
	notice       *store.Notice
	claimedBy    payment.ID     // the node that had claimed it to look it up; zero for a notice
	asked        payment.Payout // as it was claimed, or read for a notice
	restoredAt   time.Time
	found        string // see foundAs

	again, manual bool
}

// Merchant implements [write.Operation].
func (v *recordReport) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *recordReport) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *recordReport) Needs(n *store.Needs) {
	n.Payout(v.merchant, v.id)
	n.Sends(v.merchant, v.id)
	v.needConsent(n, &v.asked)
	if isFinal(v.report) && v.found != "" {
		n.FoundTransfer(v.merchant, v.found)
	}
	v.needDuplicate(n, v.merchant, &v.report)
	if isFinal(v.report) || v.asked.Unapproved() {
		n.Balances(v.merchant)
		n.ExpectDeliveries(v.merchant, 1)
	}
}

// Decide implements [write.Operation].
func (v *recordReport) Decide(l *store.Loaded, c *store.Changes) error {
	v.again, v.manual, v.contradiction = false, false, ""
	p, ok := l.Payout(v.merchant, v.id)
	if !ok {
		return store.ErrNotFound
	}
	if v.notice != nil {
		c.FinishNotice(*v.notice)
	}
	if v.parkForged(l, c, &p) {
		return nil
	}
	if v.report.Lookup == processor.Found {
		return v.applyReport(l, c, &p, v.report)
	}
	if v.claimedBy.IsZero() || p.ClaimedBy != v.claimedBy || p.Step != v.asked.Step || p.Lookups != v.asked.Lookups {
		// Only the claiming node may conclude from a missing answer, and only once: the node may
		// have recorded this answer in a commit of unknown outcome, and claimed the payout again.
		return nil
	}
	p.Lookups++
	p.ClaimedBy, p.NextAt = payment.ID{}, l.Now().Add(v.jitter.Of(worker.After(effect.LookUpAfter, p.Lookups)))
	if v.report.Lookup == processor.NotFound && p.Step == payment.StepUnknown {
		return v.notFound(l, c, &p)
	}
	c.SetPayout(p)
	v.reportUndecided(c, &p, store.ReasonNoAnswer)
	return nil
}

// withFound adds to a report the amount that had come back when the transfer was found: a stale
// answer may lack the amount, and a completed payout is not looked up again.
func withFound(l *store.Loaded, p *payment.Payout, r processor.TransferReport) processor.TransferReport {
	if f, ok := l.FoundTransfer(p.Merchant, p.ExternalID); ok && r.State == processor.TransferPaid {
		r.Returned = max(r.Returned, f.Total-f.Amount)
	}
	return r
}

// reportUndecided opens a case about a payout after a number of look-ups without a decision. The
// case is opened once, because a proposal of a resolution belongs to it. The look-up of that number
// may have opened none: a "not found" in the quiet period needs no review.
func (v *resolution) reportUndecided(c *store.Changes, p *payment.Payout, reason store.CaseReason) {
	if p.Lookups == lookUpsBeforeCase || p.Lookups > lookUpsBeforeCase && v.noCase {
		openUnknown(c, p, reason)
	}
}

// notFoundEvidence is the evidence of a send that a look-up after the quiet period did
// not find.
const notFoundEvidence = "not_found_after_quiet_period"

// notFound handles a processor's "not found" about an unknown payout. Within the quiet period it
// proves nothing. After the quiet period the payout is sent again, with the same id and bytes, if
// the processor is idempotent on our id or asks for our consent. Otherwise the payout needs manual
// review.
func (v *recordReport) notFound(l *store.Loaded, c *store.Changes, p *payment.Payout) error {
	sends := possibleSends(l.Sends(p.Merchant, p.ID))
	again := v.isBeforeRepeat(sends)
	if _, asked := l.Consent(p.Processor, p.ExternalID); asked && !again { // the processor has it: it asked
		c.SetPayout(*p)
		v.reportUndecided(c, p, store.ReasonNoAnswer)
		return nil
	}
	unsent := len(sends) == 0
	var last time.Time // until then a send may have left
	if !unsent {
		last = v.sentUntil(l, c, sends[len(sends)-1])
	} else if len(l.Sends(p.Merchant, p.ID)) == 0 {
		last = p.SentAt
	}
	if last.Before(v.restoredAt) {
		last = v.restoredAt // it may have been sent right before the backup was restored
	}
	if quiet := last.Add(v.effect.QuietPeriod); l.Now().Before(quiet) {
		if p.NextAt.After(quiet) {
			p.NextAt = quiet
		}
		c.SetPayout(*p)
		return nil
	}
	if p.Unapproved() {
		why := &payment.Failure{Code: "not_approved", Message: "It was not approved."}
		return v.failed(l, c, p, store.SendNotFound, why, notFoundEvidence)
	}
	if !unsent && !again && !v.confirmed(l, c, p, sends[len(sends)-1]) {
		return nil
	}
	reason := v.notRepeatable(l, p)
	if !unsent && !again {
		endSend(l, c, p, store.SendNotFound, notFoundEvidence)
	}
	if reason != "" {
		v.manual, v.subject = true, *p
		review(c, p, reason)
		return nil
	}
	v.again = true
	// The payout is sent before payouts without a look-up. This look-up allows a send only while it
	// is fresh: in a long queue, or behind a breaker, the send would come too late.
	p.Step, p.NextAt = payment.StepQueued, p.CreatedAt
	if p.NextAt.After(l.Now()) { // the clock was ahead
		p.NextAt = l.Now()
	}
	c.SetPayout(*p)
	return nil
}

// isBeforeRepeat reports whether a look-up precedes a repeated send at a processor that would pay
// twice: the last send that may have left was not found, and a decision of people, or our consent
// to a single transfer, allows the repeat.
func (v *recordReport) isBeforeRepeat(sends []store.Send) bool {
	return !v.effect.Repeat.Safe() && len(sends) > 0 && sends[len(sends)-1].Outcome == store.SendNotFound
}

// notFoundOnce begins the evidence of a send that one look-up after the quiet period did not find.
// The time of the look-up follows.
const notFoundOnce = "not_found_at "

// confirmed reports whether "not found" about a send counts. If the processor needs two, the
// first is recorded, and another look-up follows.
func (v *recordReport) confirmed(l *store.Loaded, c *store.Changes, p *payment.Payout, s store.Send) bool {
	if v.effect.Confirm == 0 || s.Evidence == idInUse {
		return true
	}
	text, notFoundBefore := strings.CutPrefix(s.Evidence, notFoundOnce)
	first, err := time.Parse(time.RFC3339, text)
	switch {
	case notFoundBefore && err == nil && !first.After(l.Now()):
		if again := first.Add(v.effect.Confirm); l.Now().Before(again) {
			p.NextAt = again
			c.SetPayout(*p)
			return false
		}
		return true
	default:
		s.Evidence = notFoundOnce + l.Now().UTC().Format(time.RFC3339)
		c.SetSend(s)
		p.NextAt = l.Now().Add(v.effect.Confirm)
		c.SetPayout(*p)
		return false
	}
}

// notRepeatable returns why a payout that was not found may not be sent again by rule, or "" if it
// may.
func (v *recordReport) notRepeatable(l *store.Loaded, p *payment.Payout) store.CaseReason {
	effect, sends := v.effect, possibleSends(l.Sends(p.Merchant, p.ID))
	switch {
	case len(sends) == 0 || v.isBeforeRepeat(sends): // looked up before its next send
		return ""
	case !effect.Repeat.Safe() && !(effect.Consent && v.askedBefore && l.AsksConsent(p.Processor)):
		return store.ReasonNotIdempotent
	case sends[len(sends)-1].Evidence == idInUse:
		return store.ReasonIDInUse
	case effect.Repeat.Safe() && !effect.Repeatable(sends[0].CreatedAt, l.Now()) || !effect.Visible(sends[0].CreatedAt, l.Now()):
		return store.ReasonTooOld
	default:
		return ""
	}
}

// clockTolerance is how far the clock that set a deadline may be ahead.
const clockTolerance = time.Minute

// sentUntil is the latest time at which a byte of a send can have left. If a clock that was ahead
// set the deadline, the time counts from now: no node sends the payout any more.
func (v *recordReport) sentUntil(l *store.Loaded, c *store.Changes, s store.Send) time.Time {
	if !s.Deadline.After(l.Now().Add(v.effect.Timeout + clockTolerance)) {
		return s.Deadline
	}
	s.Deadline = l.Now().Add(v.effect.Timeout)
	c.SetSend(s)
	return s.Deadline
}
