package outgoing

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// refundCalls are the capacity and the breakers of calls about refunds. They are apart from those
// of transfers, so neither delays the other.
type refundCalls struct {
	sendBreakers, lookUpBreakers *worker.Breakers
	sends, lookUps               *worker.Pools
	sendTurn, lookUpTurn         worker.Turn[string]
}

// Calls about refunds in flight at once, and parts that one run claims, per account.
const (
	refundSlots      = 32
	refundsPerWorker = 16
)

func newRefundCalls(o *Options) refundCalls {
	return refundCalls{
		sendBreakers: worker.NewBreakers(o.Env.Clock), lookUpBreakers: worker.NewBreakers(o.Env.Clock),
		sends: worker.NewPools(refundSlots, o.SendWaker, o.Spawn), lookUps: worker.NewPools(refundSlots, o.LookUpWaker, o.Spawn),
	}
}

// sendRefunds sends queued parts of refunds to their processors.
func (e *Executor) sendRefunds(ctx context.Context) (did int, err error) {
	accounts, err := e.Store.AccountsWithRefunds(ctx, e.Env.Clock.Now(), store.ToSend)
	errs := []error{err}
	for _, account := range worker.Order(&e.refunds.sendTurn, accounts, func(id string) string { return id }, strings.Compare) {
		proc := e.Processors.Find(account)
		refunder, ok := proc.(processor.Refunder)
		if !ok || e.Processors.Allows(account, payment.UseTransfer) != nil || e.Node.Frozen(account) {
			continue // its refunds stay queued
		}
		pool := e.refunds.sends.Of(account, slotsOf(proc.Profile().Refund))
		n := min(refundsPerWorker, pool.Free())
		if n > 0 {
			n = e.refunds.sendBreakers.Allow(account, n)
		}
		if n == 0 {
			continue
		}
		op := e.newClaimRefunds(account, store.ToSend, n, proc.Profile().Refund)
		if err := e.Writer.DoWithoutCancel(ctx, op); err != nil { // the claim of Decide may not be committed
			errs = append(errs, err)
			continue
		}
		did += op.count
		e.refunds.sendTurn.Served(account)
		if op.count > len(op.claimed) {
			e.LookUpWaker.Wake()
		}
		for _, p := range op.claimed {
			pool.Run(func() { e.sendRefund(ctx, p, op, refunder) })
		}
	}
	return did, errors.Join(errs...)
}

// lookUpRefunds queries processors about parts of refunds that are unknown, or accepted without a
// report.
func (e *Executor) lookUpRefunds(ctx context.Context) (did int, err error) {
	accounts, err := e.Store.AccountsWithRefunds(ctx, e.Env.Clock.Now(), store.ToLookUp)
	errs := []error{err}
	for _, account := range worker.Order(&e.refunds.lookUpTurn, accounts, func(id string) string { return id }, strings.Compare) {
		proc := e.Processors.Find(account)
		refunder, ok := proc.(processor.Refunder)
		if !ok || e.Processors.Refused(account) {
			continue
		}
		pool := e.refunds.lookUps.Of(account, 0)
		n := min(refundsPerWorker, pool.Free())
		if n > 0 {
			n = e.refunds.lookUpBreakers.Allow(account, n)
		}
		if n == 0 {
			continue
		}
		op := e.newClaimRefunds(account, store.ToLookUp, n, proc.Profile().Refund)
		if err := e.Writer.DoWithoutCancel(ctx, op); err != nil { // the claim of Decide may not be committed
			errs = append(errs, err)
			continue
		}
		did += op.count
		e.refunds.lookUpTurn.Served(account)
		for _, p := range op.claimed {
			pool.Run(func() { e.lookUpRefund(ctx, p, refunder) })
		}
	}
	return did, errors.Join(errs...)
}

// claimRefunds claims due parts of refunds, to be sent or to be looked up.
type claimRefunds struct {
	due                  store.DueRefundParts
	node                 payment.ID
	restoredAt, provedAt time.Time
	// epoch and history of the database, as of this process's last heartbeat.
	epoch, history int64
	profile        processor.Effect
	isFrozen       func(merchant payment.ID, account string) bool // see [Executor.isFrozenFor]

	claimed []payment.RefundPart // as they were claimed
	count   int
}

func (e *Executor) newClaimRefunds(account string, queue store.PayoutQueue, limit int, profile processor.Effect) *claimRefunds {
	return &claimRefunds{
		due:  store.DueRefundParts{Account: account, Queue: queue, Limit: limit, Debts: queue == store.ToSend && !e.Node.ProvedAt().IsZero()},
		node: e.Node.ID(), restoredAt: e.Node.RestoredAt(), provedAt: e.Node.ProvedAt(), epoch: e.Node.Epoch(), history: e.Node.History(), profile: profile,
		isFrozen: e.isFrozenFor,
	}
}

// Merchant implements [write.Operation].
func (v *claimRefunds) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *claimRefunds) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimRefunds) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.DueRefundParts(v.due)
	if v.due.Debts {
		n.Feed(store.Transfers(v.due.Account))
	}
}

// Decide records the intent to send each due part, before a byte leaves, or claims it to be
// looked up. A part that may have been sent before the database was restored becomes unknown.
func (v *claimRefunds) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed, v.count = nil, 0
	if err := mayAct(l, v.node, v.epoch, v.history); err != nil {
		return err
	}
	for _, p := range l.DueRefundParts(v.due) {
		v.count++
		switch {
		case l.RefundPartDamaged(&p):
			parkPart(c, &p)
			continue
		case v.due.Queue == store.ToLookUp:
			p.ClaimedBy, p.NextAt = v.node, time.Time{}
			v.claimed = append(v.claimed, c.SetRefundPart(p))
			continue
		case waitsForParts(l, c, &p):
			continue
		case lookUpPartFirst(&p, v.restoredAt, v.provedAt, l.Now()):
			p.Step, p.NextAt = payment.StepUnknown, l.Now()
		case v.isFrozen(p.Merchant, p.Processor): // of another account, from which its money may have left
			p.NextAt, p.Lookups = l.Now().Add(frozenWait), min(p.Lookups, 1)
			c.SetRefundPart(p)
			continue
		case v.waitsForDebt(l, c, &p):
			continue
		case lookUpPartBefore(v.profile, &p, v.node, l.Now()): // after that wait, or each wait would cost a look-up
			p.Step, p.NextAt = payment.StepUnknown, l.Now()
		case !p.FirstSentAt.IsZero() && v.profile.Repeat.Safe() && !v.profile.Repeatable(p.FirstSentAt, l.Now()):
			reviewPart(l, c, &p, store.ReasonTooOld)
			continue
		default:
			p.Step, p.NextAt, p.ClaimedBy, p.Lookups = payment.StepIntent, time.Time{}, v.node, 0
			p.Sends, p.SentAt, p.Outcome = p.Sends+1, l.Now(), "" // of the send before
			if p.FirstSentAt.IsZero() {
				p.FirstSentAt = l.Now()
			}
		}
		if err := startRefund(l, c, &p); err != nil {
			return err
		}
		if p = c.SetRefundPart(p); p.Step == payment.StepIntent {
			v.claimed = append(v.claimed, p)
		}
	}
	return nil
}

// frozenWait is the time between two claims of a part that waits, after a restore, for the lists of
// its merchant's other accounts. A look-up from before the wait is no longer fresh.
const frozenWait = lookUpIsFresh + time.Second

// startRefund moves a refund to PROCESSING if one of its parts leaves, or may have left.
func startRefund(l *store.Loaded, c *store.Changes, p *payment.RefundPart) error {
	r, ok := l.Refund(p.Merchant, p.Refund)
	if !ok {
		return store.ErrNotFound
	}
	_, err := transition.Refund(l, c, &r, payment.OnSend)
	return err
}

// lookUpPartFirst is LookUpFirst for the part of a refund.
func lookUpPartFirst(p *payment.RefundPart, restoredAt, provedAt, now time.Time) bool {
	return LookUpFirst(&payment.Payout{UpdatedAt: p.UpdatedAt, Lookups: p.Lookups}, restoredAt, provedAt, now)
}

// lookUpPartBefore is lookUpBefore for the part of a refund. A part that waited for others is
// looked up first too.
func lookUpPartBefore(e processor.Effect, p *payment.RefundPart, node payment.ID, now time.Time) bool {
	switch {
	case p.MayExist && e.Repeat.Safe():
		return false
	case p.Number > 1 && p.Sends == 0 && p.Lookups == 0:
		return true
	case e.Repeat.Safe() && !(e.LookUpFirst && p.Sends == 0):
		return false
	}
	return p.Lookups == 0 || now.Sub(p.UpdatedAt).Abs() > lookUpIsFresh || precedes(p.UpdatedAt, node, now)
}

// A part that waits for earlier parts is claimed again after half the time of its wait so far,
// within these bounds. The part is due at once when the part before it was accepted or has ended.
const (
	partWaitMin = time.Second
	partWaitMax = time.Hour
)

// waitsForParts makes a part wait until the parts before it were accepted or have ended. If the
// database is an older copy, the processor may know the refund with other parts. The report of an
// earlier part then shows that before more money leaves. If an earlier part waits for review, the
// part waits for review too.
func waitsForParts(l *store.Loaded, c *store.Changes, p *payment.RefundPart) bool {
	waits := false
	for _, o := range l.RefundParts(p.Merchant, p.Refund) {
		if o.Number >= p.Number || o.Ended() || o.Step == payment.StepAccepted {
			continue
		}
		waits = true
		if o.Step == payment.StepReview {
			p.Step = payment.StepReview // under the case of the earlier part
		}
	}
	if !waits {
		return false
	}
	p.Lookups, p.NextAt = 0, time.Time{}
	if p.Step != payment.StepReview {
		p.NextAt = l.Now().Add(min(max(l.Now().Sub(p.CreatedAt)/2, partWaitMin), partWaitMax))
	}
	*p = c.SetRefundPart(*p)
	return true
}

// reviewPart stops the executor's work on a part of a refund and opens a case in place of its
// earlier cases. The money stays held.
func reviewPart(l *store.Loaded, c *store.Changes, p *payment.RefundPart, reason store.CaseReason) {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepReview, time.Time{}, payment.ID{}
	*p = c.SetRefundPart(*p)
	closePartCases(l, c, p, store.CaseRefundUnknown, store.ResolvedByNewCase)
	openPartCase(c, p, store.CaseRefundUnknown, reason)
}

// parkPart stops the executor's work on a part of a refund if its row, or the refund's row, cannot
// be decoded, so that no other part is delayed. Later parts of the refund wait under its case.
func parkPart(c *store.Changes, p *payment.RefundPart) {
	c.ParkRefundPart(*p)
	v := partCase(p, payment.ID{}, store.CaseDamaged, "")
	v.Params["table"] = "refund_parts"
	c.OpenCase(v)
}

// CasesOfPart are the loaded open cases of a kind about a part of a refund.
func CasesOfPart(l *store.Loaded, p *payment.RefundPart, kind store.CaseKind) (list []store.Case) {
	for _, v := range l.OpenCasesAbout(p.Merchant, p.Refund, kind) {
		if v.Params["processor"] == p.Processor && v.Params["externalId"] == p.ExternalID {
			list = append(list, v)
		}
	}
	return list
}

// closePartCases closes the open cases of a kind about one part of a refund.
func closePartCases(l *store.Loaded, c *store.Changes, p *payment.RefundPart, kind store.CaseKind, how store.Resolution) {
	if len(others(l, p)) == 0 {
		c.CloseCases(p.Merchant, p.Refund, kind, how)
		return
	}
	for _, v := range CasesOfPart(l, p, kind) {
		c.CloseCase(v.Merchant, v.ID, how)
	}
}

// openPartCase opens a case about a part of a refund. Other parts may have their own.
func openPartCase(c *store.Changes, p *payment.RefundPart, kind store.CaseKind, reason store.CaseReason) {
	c.OpenCase(partCase(p, payment.ID{}, kind, reason))
}

// partCase is a case about a part of a refund. A zero id is replaced when it is opened.
func partCase(p *payment.RefundPart, id payment.ID, kind store.CaseKind, reason store.CaseReason) store.Case {
	params := store.Params{"processor": p.Processor, "externalId": p.ExternalID}
	if reason != "" {
		params["cause"] = string(reason)
	}
	return store.Case{Merchant: p.Merchant, ID: id, Kind: kind, Subject: p.Refund, Amount: p.Amount, Params: params}
}

// refundCall is a refund in the form of a transfer: both are sent under the same guard.
type refundCall struct {
	processor.Refunder

	part *payment.RefundPart
}

// Transfer implements [processor.Transferrer].
func (v refundCall) Transfer(ctx context.Context, _ processor.TransferRequest, guard func() error) processor.TransferAnswer {
	return v.Refund(ctx, processor.RefundRequest{ExternalID: v.part.ExternalID, PaymentID: v.part.PaymentID, Amount: v.part.Amount}, guard)
}

// QueryTransfer implements [processor.Transferrer].
func (v refundCall) QueryTransfer(ctx context.Context, externalID string) processor.TransferReport {
	return v.QueryRefund(ctx, v.part.PaymentID, externalID)
}

// sendRefund sends one part of a refund, as transfer sends a payout.
func (e *Executor) sendRefund(ctx context.Context, p payment.RefundPart, claimed *claimRefunds, refunder processor.Refunder) {
	timeout := claimed.profile.Timeout
	answer := e.callOnce(ctx, guardedCall{
		account: p.Processor, claimedBy: p.ClaimedBy, history: claimed.history, deadline: p.SentAt.Add(timeout), timeout: timeout, breakers: e.refunds.sendBreakers,
		transferrer: refundCall{refunder, &p},
	})
	if answer.Outcome != processor.Done {
		e.Log.WarnContext(ctx, "refund not confirmed", "processor", p.Processor, "externalId", p.ExternalID,
			"outcome", answer.Outcome.String(), "cause", answer.Cause)
	}
	op := e.newRecordRefund(p)
	op.answer = &answer
	e.Recorder.Record(ctx, "result of refund", func(ctx context.Context) error { return e.recordRefund(ctx, op) })
}

// lookUpRefund queries an account about one part of a refund.
func (e *Executor) lookUpRefund(ctx context.Context, p payment.RefundPart, refunder processor.Refunder) {
	op := e.newRecordRefund(p)
	op.report = e.queryRefund(ctx, &p, refunder)
	if op.report.Lookup == processor.NotFound && p.Sends == 0 {
		op.report = e.queryOtherPayments(ctx, &p, refunder)
	}
	op.lookedUp = true
	e.Recorder.Record(ctx, "result of look-up of a refund", func(ctx context.Context) error { return e.recordRefund(ctx, op) })
}

func (e *Executor) queryRefund(ctx context.Context, p *payment.RefundPart, refunder processor.Refunder) processor.TransferReport {
	return e.query(ctx, p.Processor, processor.Ref{ExternalID: p.ExternalID}, refundCall{refunder, p}, lookedUp{"refund", e.refunds.lookUpBreakers, asReported})
}

// queryOtherPayments looks up a part that was never sent among the refunds of the pay-in's other
// payments. A processor may keep ids per payment, and a copy of the database may lack a refund of
// another payment under this id.
func (e *Executor) queryOtherPayments(ctx context.Context, p *payment.RefundPart, refunder processor.Refunder) processor.TransferReport {
	receipts, err := e.Store.Receipts(ctx, p.Merchant, p.Payin)
	if err != nil {
		return processor.TransferReport{Cause: err}
	}
	for i := range receipts {
		if receipts[i].Processor != p.Processor || receipts[i].ExternalID == p.PaymentID {
			continue
		}
		other := *p
		other.PaymentID = receipts[i].ExternalID
		report := e.queryRefund(ctx, &other, refunder)
		if report.Lookup == processor.Found && report.PaymentID == "" {
			report.PaymentID = other.PaymentID
		}
		if report.Lookup != processor.NotFound {
			return report
		}
	}
	return processor.TransferReport{Lookup: processor.NotFound}
}

// asReported returns a report of a refund unchanged: a return need not have an id of its own.
func asReported(r processor.TransferReport) processor.TransferReport { return r }
