package outgoing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// Send is the step of the worker that sends queued payouts to their processors.
func (e *Executor) Send(ctx context.Context) (int, error) {
	if !e.Node.Lease.Valid() {
		return 0, nil
	}
	e.sendThrottle.Begin(ctx)
	now := e.Env.Clock.Now()
	due, err := e.Store.PayoutsDue(ctx, now, store.ToSend)
	if err != nil {
		return 0, err
	}
	did := 0
	var errs []error
	for _, d := range worker.Order(&e.sendTurn, due, store.Due.At, store.CompareDue) {
		proc := e.Processors.Find(d.Processor)
		transferrer, ok := proc.(processor.Transferrer)
		if !ok {
			continue // another process may open the account
		}
		if e.Processors.Allows(d.Processor, payment.UseTransfer) != nil || e.isFrozenFor(d.Merchant, d.Processor) {
			continue // its payouts stay queued
		}
		pool := e.sends.Of(d.Processor, slotsOf(proc.Profile().Transfer))
		n := min(sendsPerMerchant, pool.Free())
		if n > 0 {
			n = e.sendBreakers.Allow(d.Processor, n)
		}
		if n == 0 {
			continue
		}
		sends, claimed, err := e.Claim(ctx, d, n)
		errs = append(errs, err)
		did += claimed
		e.sendTurn.Served(d.At())
		e.sendThrottle.Took(d.Since, now)
		for i := range sends {
			pool.Run(func() { e.transfer(ctx, sends[i], transferrer) })
		}
	}
	refunds, err := e.runRefunds(ctx, store.ToSend)
	did, errs = did+refunds, append(errs, err)
	return did, errors.Join(errs...)
}

// ClaimedSend is a payout whose intent is durable: only this process may send it, until
// the deadline.
type ClaimedSend struct {
	Payout   payment.Payout
	Number   int64 // of this send, from 1
	Request  processor.TransferRequest
	Deadline time.Time // UTC

	timeout time.Duration // of the call
	history int64         // of the database
}

// Claim claims up to limit due payouts and records the intent to send each of them, in one commit,
// before a byte leaves. There is no other way to send. claimed counts the claimed payouts; fewer
// may be returned, because some must be looked up first.
func (e *Executor) Claim(ctx context.Context, due store.Due, limit int) (sends []ClaimedSend, claimed int, err error) {
	proc, err := e.Processors.Of(due.Processor)
	if err != nil {
		return nil, 0, err
	}
	op := e.newClaim(due, limit, proc.Profile())
	if err := e.Writer.DoWithoutCancel(ctx, op); err != nil {
		return nil, 0, err
	}
	for _, p := range op.conflicting {
		e.Log.WarnContext(ctx, "payout needs manual review: it was sent before, with other contents or too long ago", "payout", p.ID, "externalId", p.ExternalID)
	}
	for _, p := range op.forged {
		e.Log.ErrorContext(ctx, "payout is not sent: its row or its approval was changed outside the gateway; run porteira verify", "payout", p.ID, "externalId", p.ExternalID)
	}
	if op.claimed > len(op.sends) {
		e.LookUpWaker.Wake()
	}
	return op.sends, op.claimed, nil
}

// newClaim is the operation of Claim.
func (e *Executor) newClaim(due store.Due, limit int, profile processor.Profile) *claimSends {
	v := &claimSends{
		due:     store.DuePayouts{Merchant: due.Merchant, Processor: due.Processor, Queue: store.ToSend, Limit: limit},
		process: e.process(), restoredAt: e.Node.RestoredAt(), provedAt: e.Node.ProvedAt(), profile: profile.Transfer,
	}
	v.frozen = e.isFrozenFor(due.Merchant, due.Processor) // after history: in a later one the claim is refused
	return v
}

// claimSends claims due payouts to be sent.
type claimSends struct {
	process

	due                  store.DuePayouts
	restoredAt, provedAt time.Time
	frozen               bool // an account of the merchant waits in the history of process
	profile              processor.Effect

	sends       []ClaimedSend
	conflicting []payment.Payout
	forged      []payment.Payout
	claimed     int
}

// Merchant implements [write.Operation].
func (v *claimSends) Merchant() payment.ID { return v.due.Merchant }

// Class implements [write.Operation].
func (v *claimSends) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimSends) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.DuePayouts(v.due)
	n.ExpectDeliveries(v.due.Merchant, v.due.Limit)
	if v.history > 0 {
		n.Feed(store.Transfers(v.due.Processor))
	}
	if !v.provedAt.IsZero() { // for its debt
		n.Balances(v.due.Merchant)
	}
	if v.profile.Serial {
		n.Sending(v.due.Processor)
	}
}

// Decide records the intent to send each due payout. A payout that may have been sent before the
// database was restored becomes unknown. A payout whose contents differ from an earlier send needs
// manual review.
func (v *claimSends) Decide(l *store.Loaded, c *store.Changes) error {
	v.sends, v.conflicting, v.forged, v.claimed = nil, nil, nil, 0
	if err := v.mayAct(l); err != nil {
		return err
	}
	if v.frozen || isFrozen(l, v.due.Processor, v.history) {
		return nil
	}
	for _, p := range l.DuePayouts(v.due) {
		if v.profile.Serial && l.Sending(v.due.Processor) {
			break
		}
		v.claimed++
		if l.PayoutDamaged(p.Merchant, p.ID) {
			park(c, &p, "")
			continue
		}
		if l.PayoutForged(p.Merchant, p.ID) || p.Approval == payment.ApprovalRequired || p.Approval == payment.ApprovalRejected {
			park(c, &p, store.ReasonChangedOutside)
			v.forged = append(v.forged, p)
			continue
		}
		request := transferRequest(&p)
		hash := bodyHash(request)
		sends := l.Sends(p.Merchant, p.ID)
		switch {
		case LookUpFirst(&p, v.restoredAt, v.provedAt, l.Now()) || lookUpBefore(v.profile, &p, sends, v.node, l.Now()):
			p.Step, p.NextAt = payment.StepUnknown, l.Now()
		case v.waitsForDebt(l, c, &p):
			continue
		case !sameBody(sends, hash):
			v.conflicting = append(v.conflicting, p)
			review(c, &p, store.ReasonOtherContents)
			continue
		case tooOld(sends, v.profile, l.Now()):
			v.conflicting = append(v.conflicting, p)
			review(c, &p, store.ReasonTooOld)
			continue
		default:
			if p.SentAt.IsZero() {
				p.SentAt = l.Now()
			}
			p.Step, p.NextAt, p.ClaimedBy, p.Lookups = payment.StepIntent, time.Time{}, v.node, 0 // look-ups of the sends before it do not count
		}
		if err := markProcessing(l, c, &p); err != nil {
			return err
		}
		if p.Step != payment.StepIntent {
			continue
		}
		s := store.Send{
			Merchant: p.Merchant, Payout: p.ID, Number: int64(len(sends)) + 1, Processor: p.Processor, BodyHash: hash,
			Node: v.node, Deadline: l.Now().Add(v.profile.Timeout), Outcome: store.SendIntent,
		}
		c.AddSend(s)
		v.sends = append(v.sends, ClaimedSend{Payout: p, Number: s.Number, Request: request, Deadline: s.Deadline, timeout: v.profile.Timeout, history: v.history})
	}
	return nil
}

// markProcessing moves a payout that leaves, or may have left, to PROCESSING. A PROCESSING payout
// stays.
func markProcessing(l *store.Loaded, c *store.Changes, p *payment.Payout) error {
	moved, err := transition.Payout(l, c, p, payment.OnSend)
	if err == nil && !moved {
		*p = c.SetPayout(*p)
	}
	return err
}

// review stops the executor's work on a payout and opens a case. The money stays held.
func review(c *store.Changes, p *payment.Payout, reason store.CaseReason) {
	p.Step, p.NextAt, p.ClaimedBy = payment.StepReview, time.Time{}, payment.ID{}
	*p = c.SetPayout(*p)
	openUnknown(c, p, reason)
}

// openUnknown opens the case about a payout of unknown outcome, in place of an earlier one.
func openUnknown(c *store.Changes, p *payment.Payout, reason store.CaseReason) {
	c.CloseCases(p.Merchant, p.ID, store.CasePayoutUnknown, store.ResolvedByNewCase)
	c.OpenCase(store.Case{
		Merchant: p.Merchant, Kind: store.CasePayoutUnknown, Subject: p.ID, Amount: p.Amount, Params: reason.With(nil),
	})
}

// park stops the executor's work on a payout if its row cannot be decoded or decrypted, or was
// changed outside the gateway, so that no other payout is delayed.
func park(c *store.Changes, p *payment.Payout, reason store.CaseReason) {
	v := store.DamagedCase(p.Merchant, p.ID, "payouts")
	if v.Amount = p.Amount; reason != "" {
		v.Params = reason.With(v.Params)
	}
	c.Park(v, 0)
}

// transferRequest is the request to the processor: the same bytes each time.
func transferRequest(p *payment.Payout) processor.TransferRequest {
	return processor.TransferRequest{
		ExternalID: p.ExternalID, Amount: p.Amount, KeyType: p.PIXKeyType, Key: p.Beneficiary.Key(),
		Name: strings.TrimSpace(p.Beneficiary.Name), Document: p.Beneficiary.Document,
	}
}

// bodyHash recognises a request without storing its beneficiary.
func bodyHash(r processor.TransferRequest) []byte {
	text, err := json.Marshal(&r)
	if err != nil { // validated texts always marshal
		panic(err)
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// tooOld reports whether the processor may have forgotten the id of an earlier send that can have
// arrived: another send might have a second effect.
func tooOld(sends []store.Send, profile processor.Effect, now time.Time) bool {
	i := slices.IndexFunc(sends, func(s store.Send) bool { return !s.Outcome.NoEffect() })
	return i >= 0 && profile.Repeat.Safe() && !profile.Repeatable(sends[i].CreatedAt, now)
}

func sameBody(sends []store.Send, hash []byte) bool {
	for i := range sends {
		if !bytes.Equal(sends[i].BodyHash, hash) {
			return false
		}
	}
	return true
}

// transfer sends one payout. The call ends at the deadline of its intent. A stop of the workers
// does not cut the call short: the outcome would be unknown.
func (e *Executor) transfer(ctx context.Context, s ClaimedSend, transferrer processor.Transferrer) {
	answer := e.callOnce(ctx, guardedCall{
		account: s.Payout.Processor, claimedBy: s.Payout.ClaimedBy, history: s.history, deadline: s.Deadline, timeout: s.timeout, breakers: e.sendBreakers,
		transferrer: transferrer, request: s.Request,
	})
	if answer.Outcome != processor.Done {
		e.Log.WarnContext(ctx, "payout not confirmed", "processor", s.Payout.Processor, "externalId", s.Payout.ExternalID,
			"outcome", answer.Outcome.String(), "cause", answer.Cause)
	}
	e.Recorder.Record(ctx, "result of send", func(ctx context.Context) error { return e.RecordSend(ctx, s, answer) })
}

// guardedCall is one call with an effect, in the form of a transfer.
type guardedCall struct {
	account     string
	claimedBy   payment.ID
	history     int64         // of the database, when it was claimed
	deadline    time.Time     // of the intent
	timeout     time.Duration // of the call
	breakers    *worker.Breakers
	transferrer processor.Transferrer
	request     processor.TransferRequest
}

// callOnce calls the processor until the deadline at most. A stop of the workers does not cut the
// call short.
func (e *Executor) callOnce(ctx context.Context, v guardedCall) processor.TransferAnswer {
	e.Env.Inject(env.BeforeTransfer)
	// The deadline is later than the time-out if the clock was set back after the claim.
	left := min(v.deadline.Sub(e.Env.Clock.Now()), v.timeout)
	e.awaitLease(ctx, left/2) // leaves the other half for the call
	limited, cancel := e.Env.Clock.WithTimeout(context.WithoutCancel(ctx), min(left, v.deadline.Sub(e.Env.Clock.Now())))
	answer, stale := transferGuarded(limited, v.transferrer, v.request, e.guard(v.deadline, v.claimedBy, v.history))
	answered := answer.Outcome != processor.NotSent && !timedOut(limited, answer.Outcome == processor.Unknown)
	cancel()
	e.Env.Inject(env.AfterTransfer)
	if !stale && !isOurWait(&answer) { // such a send proves nothing about the processor
		v.breakers.Record(v.account, answered)
	}
	return answer
}

// timedOut reports whether a call ended without a result because its timeout expired.
func timedOut(ctx context.Context, noResult bool) bool { return noResult && ctx.Err() != nil }

// transferGuarded calls the processor if the guard allows it. The guard is checked before
// the call, because the deadline may have passed, and again right before the first byte.
// stale means that the guard failed.
func transferGuarded(ctx context.Context, transferrer processor.Transferrer, r processor.TransferRequest, guard func() error) (answer processor.TransferAnswer, stale bool) {
	if err := guard(); err != nil {
		return processor.TransferAnswer{Outcome: processor.NotSent, Cause: err}, true
	}
	answer = worker.Call(func() processor.TransferAnswer {
		return transferrer.Transfer(ctx, r, func() error {
			err := guard()
			stale = err != nil
			return err
		})
	}, func(cause error) processor.TransferAnswer {
		return processor.TransferAnswer{Outcome: processor.Unknown, Cause: cause}
	})
	return answer, stale
}

// ErrStale means that a send was abandoned before its first byte: it was too late, or
// this process had lost the right to send.
var ErrStale = errors.New("outgoing: too late to send")

// guard returns the check that a processor calls right before the first byte is sent. It checks the
// deadline of the intent, the owner of the claim, the lease and the history of the database. A
// suspended process has lost its lease; a database that went back since the claim may lack the
// intent.
func (e *Executor) guard(deadline time.Time, claimedBy payment.ID, history int64) func() error {
	return func() error {
		if !e.Node.Lease.Valid() || !e.Env.Clock.Now().Before(deadline) || e.Node.ID() != claimedBy || e.Node.History() != history {
			return ErrStale
		}
		return nil
	}
}

// awaitLease waits a while for a lease that expired while the intent was written: slow commits
// delay heartbeats too, and the next heartbeat renews the lease. The guard decides whether the
// payout may still leave.
func (e *Executor) awaitLease(ctx context.Context, most time.Duration) {
	if e.Spawn != nil { // a test: no heartbeat happens meanwhile
		return
	}
	ctx, cancel := e.Env.Clock.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	e.Node.Lease.Await(ctx)
}
