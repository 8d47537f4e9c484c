package payout

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/write"
)

// Approve records the approval of a payout, and returns the payout. Once it has enough
// approvals, it is queued for sending and counts in the limits of that day and night. The same
// approval again changes nothing. Errors: problem kinds
// not_found, forbidden_scope if the actor requested the payout, invalid_state, limit_exceeded.
func (s *Service) Approve(ctx context.Context, merchant, id payment.ID, by actor.Author) (payment.Payout, error) {
	p, err := s.Store.Payout(ctx, merchant, id)
	if err != nil {
		return p, store.Problem(err)
	}
	m, err := s.Store.Merchant(ctx, merchant)
	if err == nil {
		err = m.Damaged
	}
	if err != nil {
		return p, store.Problem(err)
	}
	op := &approve{
		merchant: merchant, id: id, by: by, approves: true, limits: &m.Limits.Payout, at: s.Env.Clock.Now(),
	}
	op.expected = op.counted(&p)
	return s.decide(ctx, op)
}

// Reject is [Service.Approve], but cancels the payout.
func (s *Service) Reject(ctx context.Context, merchant, id payment.ID, by actor.Author) (payment.Payout, error) {
	return s.decide(ctx, &approve{merchant: merchant, id: id, by: by, past: s.past()})
}

func (s *Service) decide(ctx context.Context, op *approve) (payment.Payout, error) {
	err := s.Writer.Do(ctx, op)
	if err != nil && ctx.Err() != nil { // the commit may still be running
		return payment.Payout{}, err
	}
	if err == nil && op.payout.Step == payment.StepQueued {
		s.Requested()
	}
	return op.payout, err
}

// approve is the operation that decides about a payout.
type approve struct {
	merchant, id payment.ID
	by           actor.Author
	approves     bool // else it rejects
	past         past
	limits       *limits.Payout // of the merchant
	at           time.Time      // of the decision
	expected     payment.Payout // once it is approved: its counters are loaded
	payout       payment.Payout
}

// counted is a payout that is approved. It counts in the day and the night of its approval, and no
// longer in those of its request. From now on its Pix key is known.
func (v *approve) counted(p *payment.Payout) payment.Payout {
	const ofTime = payment.CounterDay | payment.CounterNight
	approved := *p
	approved.Approval = payment.ApprovalApproved
	next := approved
	next.CountedAt, next.Counters = v.at, p.Counters&^ofTime|v.limits.Counters(v.at)&ofTime
	if store.MovedCounters(&approved, &next)|store.MovedCounters(&next, &approved) == 0 {
		return approved
	}
	return next
}

// Merchant implements [write.Operation].
func (v *approve) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *approve) Class() commit.Class { return commit.Interactive }

// Needs implements [write.Operation].
func (v *approve) Needs(n *store.Needs) {
	needsApproval(n, v.merchant, v.id)
	if v.approves {
		n.Counters(&v.expected)
	}
}

func needsApproval(n *store.Needs, merchant, payout payment.ID) {
	n.Payout(merchant, payout)
	n.Approvals(merchant, payout)
	n.Balances(merchant)
	n.ExpectDeliveries(merchant, 1)
}

var (
	errOwnPayout = problem.New(problem.ForbiddenScope, "The credential that requested a payout cannot decide about it.")
	errForged    = problem.New(problem.Unavailable, "The payout or its approvals were changed outside the gateway. The operator must look: porteira verify names what differs.")
	errNoWait    = problem.New(problem.InvalidState, "This payout does not wait for approval.")
)

// Decide implements [write.Operation].
func (v *approve) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payout(v.merchant, v.id)
	if !ok {
		return notFound(v.merchant, v.id)
	}
	v.payout = p
	done := l.Approvals(p.Merchant, p.ID)
	decided := payment.ApprovalRejected
	if v.approves {
		decided = payment.ApprovalApproved
	}
	switch {
	case len(done) == 0:
		return errNoWait
	case l.ApprovalsForged(p.Merchant, p.ID):
		return errForged
	case actor.MayBeSame(done[0].Actor, v.by.Actor):
		return errOwnPayout
	case p.ShownApproval() == decided:
		return nil
	case p.Step != payment.StepApproval || p.Approval != payment.ApprovalRequired || v.approves && !l.Now().Before(payment.ApprovalEnds(&p)):
		return errNoWait
	}
	row := store.Approval{Merchant: p.Merchant, Payout: p.ID, Action: store.ApprovalRejected, Actor: v.by.Actor, Reason: v.by.Reason}
	if !v.approves {
		c.AddApproval(row)
		v.payout.Approval = decided
		return cancelUnsent(l, c, &v.payout, v.past)
	}
	given := func(a store.Approval) bool {
		return a.Action == store.ApprovalGiven && actor.MayBeSame(a.Actor, v.by.Actor)
	}
	if slices.ContainsFunc(done, given) {
		return nil
	}
	row.Action = store.ApprovalGiven
	if int64(len(done)) < done[0].Needed { // one row is the request's
		c.AddApproval(row)
		return nil
	}
	next := v.counted(&p)
	some, used := v.limits.Of(store.MovedCounters(&p, &next)), l.Usage(&next)
	if exceeded := some.Exceeded(p.Amount, v.at, &used); exceeded != "" {
		return problem.New(problem.LimitExceeded, "Today or tonight this payout would exceed a limit of the merchant. It still waits for this approval.").WithLimit(exceeded)
	}
	c.MovePayout(&p, &next)
	c.AddApproval(row)
	next.Step, next.NextAt = payment.StepQueued, l.Now()
	v.payout = c.SetPayout(next)
	return nil
}

// cancelUnsent cancels a payout that was not approved, and releases its money. A payout that may
// have been sent before the database was restored is looked up, and fails if it is not found.
func cancelUnsent(l *store.Loaded, c *store.Changes, p *payment.Payout, at past) error {
	sent, err := sentBeforeRestore(l, p, at)
	if err != nil {
		return err
	}
	if sent {
		return outgoing.LookUpUnapproved(l, c, p)
	}
	outgoing.Finish(p)
	_, err = transition.Payout(l, c, p, payment.OnCancel, ledger.ReleasePayout(p.Amount, p.Fee))
	return err
}

// expireBatch is how many payouts expire in one commit.
const expireBatch = 256

// Expire is the step of the worker that cancels payouts whose approval was not decided in
// time.
func (s *Service) Expire(ctx context.Context) (int, error) {
	due, err := s.Store.PayoutsUndecided(ctx, s.Env.Clock.Now(), expireBatch)
	if err != nil || len(due) == 0 {
		return 0, store.Problem(err)
	}
	did := 0
	var errs []error
	for _, ref := range due {
		op := &expire{ref, s.past()}
		err := s.Writer.Do(ctx, op)
		if store.Lasting(err) && ctx.Err() == nil {
			err = s.Writer.Do(ctx, write.OpenCase{Case: store.DamagedCase(ref.Merchant, ref.ID, "payouts"), Park: true})
		}
		if errs = append(errs, err); err == nil {
			did++
		}
	}
	return did, errors.Join(errs...)
}

// expire cancels one payout.
type expire struct {
	ref  store.Ref
	past past
}

// Merchant implements [write.Operation].
func (v *expire) Merchant() payment.ID { return v.ref.Merchant }

// Class implements [write.Operation].
func (v *expire) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *expire) Needs(n *store.Needs) { needsApproval(n, v.ref.Merchant, v.ref.ID) }

// Decide implements [write.Operation].
func (v *expire) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payout(v.ref.Merchant, v.ref.ID)
	if !ok || p.Step != payment.StepApproval || l.Now().Before(payment.ApprovalEnds(&p)) { // it has changed since it was listed
		return nil
	}
	c.AddApproval(store.Approval{Merchant: p.Merchant, Payout: p.ID, Action: store.ApprovalExpired})
	return cancelUnsent(l, c, &p, v.past)
}
