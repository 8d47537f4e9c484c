package outgoing

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// refundCalls are the capacity and the breakers of calls about refunds of one queue. They are apart
// from those of transfers, so neither delays the other.
type refundCalls struct {
	breakers *worker.Breakers
	pools    *worker.Pools
	turn     worker.Turn[string]
}

// Calls about refunds in flight at once, and parts that one run claims, per account.
const (
	refundSlots      = 32
	refundsPerWorker = 16
)

// runRefunds sends queued parts of refunds to their processors, or queries processors about parts that
// are unknown, or accepted and not reported.
func (e *Executor) runRefunds(ctx context.Context, queue store.PayoutQueue) (did int, err error) {
	calls := &e.refunds[queue]
	accounts, err := e.Store.AccountsWithRefunds(ctx, e.Env.Clock.Now(), queue)
	errs := []error{err}
	for _, account := range worker.Order(&calls.turn, accounts, func(id string) string { return id }, strings.Compare) {
		proc := e.Processors.Find(account)
		refunder, ok := proc.(processor.Refunder)
		send, slots := queue == store.ToSend, 0
		if !ok || e.Processors.Refused(account) || send && (e.Processors.Allows(account, payment.UseTransfer) != nil || e.Node.Frozen(account)) {
			continue // they stay due
		}
		if send {
			slots = slotsOf(proc.Profile().Refund)
		}
		pool := calls.pools.Of(account, slots)
		n := min(refundsPerWorker, pool.Free())
		if n > 0 {
			n = calls.breakers.Allow(account, n)
		}
		if n == 0 {
			continue
		}
		op := e.newClaimRefunds(account, queue, n)
		if err := e.Writer.DoWithoutCancel(ctx, op); err != nil { // the claim of Decide may not be committed
			errs = append(errs, err)
			continue
		}
		did += op.count
		calls.turn.Served(account)
		for _, p := range op.claimed {
			pool.Run(func() { e.runRefund(ctx, p, refunder) })
		}
	}
	return did, errors.Join(errs...)
}

// claimRefunds claims due parts of refunds, to be sent or to be looked up.
type claimRefunds struct {
	refundResolution
	process

	due      store.DueRefundParts
	isFrozen func(merchant payment.ID, account string) bool // see [Executor.isFrozenFor]

	claimed []claimedPart
	count   int
}

// claimedPart is a part as it was claimed, and what to do.
type claimedPart struct {
	part payment.RefundPart
	do   effect.Action
}

func (e *Executor) newClaimRefunds(account string, queue store.PayoutQueue, limit int) *claimRefunds {
	return &claimRefunds{
		refundResolution: e.newRefundResolution(account), process: e.process(), isFrozen: e.isFrozenFor,
		due: store.DueRefundParts{Account: account, Queue: queue, Limit: limit, Debts: queue == store.ToSend && !e.Node.ProvedAt().IsZero()},
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
// looked up.
func (v *claimRefunds) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed, v.count = nil, 0
	if err := v.mayAct(l); err != nil {
		return err
	}
	for _, p := range l.DueRefundParts(v.due) {
		v.count++
		if l.RefundPartDamaged(&p) {
			parkPart(c, &p)
			continue
		}
		takeRestore(l.History(), &p.Effect, &p.ClaimedBy, &p.History, p.CreatedAt, l.Now())
		if v.due.Queue == store.ToSend && v.isHeld(l, c, &p) {
			continue
		}
		out := v.take(l, &p, effect.Input{On: effect.Due})
		if out.Case != "" {
			reviewPart(l, c, &p, store.CaseReason(out.Case))
			continue
		}
		if p.ClaimedBy = v.node; out.Action == effect.Send {
			p.Outcome = "" // of the send before
		}
		if err := startRefund(l, c, &p); err != nil {
			return err
		}
		v.claimed = append(v.claimed, claimedPart{c.SetRefundPart(p), out.Action})
	}
	return nil
}

// isHeld makes a part wait, if something is to happen before it is sent.
func (v *claimRefunds) isHeld(l *store.Loaded, c *store.Changes, p *payment.RefundPart) bool {
	if waitsForParts(l, c, p) {
		return true
	}
	if v.isFrozen(p.Merchant, p.Processor) { // of another account, from which its money may have left
		p.NextAt = l.Now().Add(frozenWait)
		c.SetRefundPart(*p)
		return true
	}
	return v.waitsForDebt(l, c, p)
}

// frozenWait is the time between two claims of a part that waits, after a restore, for the lists of
// its merchant's other accounts.
const frozenWait = time.Minute

// startRefund moves a refund to PROCESSING if one of its parts leaves, or may have left.
func startRefund(l *store.Loaded, c *store.Changes, p *payment.RefundPart) error {
	r, ok := l.Refund(p.Merchant, p.Refund)
	if !ok {
		return store.ErrNotFound
	}
	_, err := transition.Refund(l, c, &r, payment.OnSend)
	return err
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
		if o.Number >= p.Number || o.Ended() || o.State == effect.Accepted {
			continue
		}
		waits = true
		if o.State == effect.Review {
			p.State = effect.Review // under the case of the earlier part
		}
	}
	if !waits {
		return false
	}
	p.NextAt = time.Time{}
	if p.State != effect.Review {
		p.NextAt = l.Now().Add(min(max(l.Now().Sub(p.CreatedAt)/2, partWaitMin), partWaitMax))
	}
	*p = c.SetRefundPart(*p)
	return true
}

// reviewPart stops the executor's work on a part of a refund and opens a case in place of its
// earlier cases. The money stays held.
func reviewPart(l *store.Loaded, c *store.Changes, p *payment.RefundPart, reason store.CaseReason) {
	p.State, p.NextAt, p.ClaimedBy = effect.Review, time.Time{}, payment.ID{}
	*p = c.SetRefundPart(*p)
	closePartCases(l, c, p, store.CaseRefundUnknown, store.ResolvedByNewCase)
	openPartCase(c, p, store.CaseRefundUnknown, reason)
}

// parkPart stops the executor's work on a part of a refund if its row, or the refund's row, cannot
// be decoded, so that no other part is delayed. Later parts of the refund wait under its case.
func parkPart(c *store.Changes, p *payment.RefundPart) {
	v := partCase(p, payment.ID{}, store.CaseDamaged, "")
	v.Params["table"] = "refund_parts"
	c.Park(v, p.Number)
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

// runRefund looks up one part of a refund, or sends it, and goes on until it is not claimed any more.
func (e *Executor) runRefund(ctx context.Context, v claimedPart, refunder processor.Refunder) {
	for v.do != effect.None {
		op := e.newRecordRefund(v.part)
		if v.do == effect.Send {
			op.answer = e.sendRefund(ctx, &v.part, op.effect.Timeout, refunder)
		} else {
			op.report, op.lookedUp = e.queryRefund(ctx, &v.part, refunder), true
			if op.report.Lookup == processor.NotFound && v.part.Sends == 0 {
				op.report = e.queryOtherPayments(ctx, &v.part, refunder)
			}
		}
		v.do = effect.None
		e.Recorder.Record(ctx, "result of a refund", func(ctx context.Context) error {
			err := e.recordRefund(ctx, op)
			if err == nil {
				v = claimedPart{op.after, op.do}
			}
			return err
		})
	}
}

// sendRefund sends one part of a refund, as transfer sends a payout.
func (e *Executor) sendRefund(ctx context.Context, p *payment.RefundPart, timeout time.Duration, refunder processor.Refunder) *processor.TransferAnswer {
	answer := e.callOnce(ctx, guardedCall{
		account: p.Processor, claimedBy: p.ClaimedBy, history: p.History, deadline: p.Until, timeout: timeout, breakers: e.refunds[store.ToSend].breakers,
		transferrer: refundCall{refunder, p},
	})
	if answer.Outcome != processor.Done {
		e.Log.WarnContext(ctx, "refund not confirmed", "processor", p.Processor, "externalId", p.ExternalID,
			"outcome", answer.Outcome.String(), "cause", answer.Cause)
	}
	return &answer
}

func (e *Executor) queryRefund(ctx context.Context, p *payment.RefundPart, refunder processor.Refunder) processor.TransferReport {
	return e.query(ctx, p.Processor, processor.Ref{ExternalID: p.ExternalID}, refundCall{refunder, p}, lookedUp{"refund", e.refunds[store.ToLookUp].breakers, asReported})
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
