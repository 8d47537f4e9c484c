package payin

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
	"github.com/porteira/porteira/internal/worker"
)

// newRecord builds the operation that records the result of work on a charge.
func (s *Service) newRecord(p payment.Payin, w *chargeWork) *recordCharge {
	return &recordCharge{
		payin: p, work: w.Charge, state: w.State, charge: w.made, expiresAt: w.request.ExpiresAt, failure: w.failure, differs: w.differs, cause: w.cause,
		canceling: w.canceling, following: w.following, others: w.untried(), wait: w.next(worker.NewJitter(s.Env.Random)), reports: w.reports, links: s.Links,
	}
}

// record records the result of work on a charge. Payments that a look-up reported with
// it are booked first.
func (s *Service) record(ctx context.Context, op *recordCharge) error {
	ctx = context.WithoutCancel(ctx)
	for _, v := range op.reports {
		if err := s.Receive(ctx, v.account, op.payin.ExternalID, v.report, nil); err != nil && !errors.Is(err, ErrInvalidPayment) {
			return err
		}
	}
	if op.differs != nil {
		if err := s.withholdCharge(ctx, op.work.Account, &op.payin, op.differs); err != nil {
			return err
		}
	}
	s.noteCode(ctx, op.work.Account, &op.charge)
	return s.Writer.Do(ctx, op)
}

// recordCharge records the result of work on the charge of a pay-in.
type recordCharge struct {
	payin  payment.Payin // as it was charged; then as it is stored
	work   store.Charge  // as the calls left it; ClaimedBy is the node that made them
	state  store.ChargeState
	charge processor.Charge
	// expiresAt is when the charge expires, never later than its order; UTC.
	expiresAt time.Time
	failure   *payment.Failure
	differs   error
	cause     error
	wait      time.Duration // before the next call
	reports   []accountReport
	// canceling: the work was to cancel the charge. following: it was to look it up while its
	// order is PROCESSING or disputed.
	canceling, following bool
	// others are the accounts that may be tried next; none if this one may have the charge.
	others []string
	// movedTo is the account that is tried next.
	movedTo string
	// announce: the merchant has had an answer without the charge.
	announce bool
	links    transition.Links
}

// Merchant implements [write.Operation].
func (v *recordCharge) Merchant() payment.ID { return v.payin.Merchant }

// Class implements [write.Operation].
func (v *recordCharge) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *recordCharge) Needs(n *store.Needs) {
	n.Payin(v.payin.Merchant, v.payin.ID)
	n.Charge(v.payin.Merchant, v.payin.ID)
	if v.following {
		n.DisputesOfPayin(v.payin.Merchant, v.payin.ID)
	}
	if v.announce || v.refused() {
		n.ExpectDeliveries(v.payin.Merchant, 1)
	}
}

func (v *recordCharge) refused() bool {
	return !v.canceling && v.state == store.ChargeEnded && v.work.Outcome == processor.Refused.String()
}

// Decide stores the charge, or fails the refused order, and ends the claim. An order that has its
// charge keeps it. If another process has claimed the work meanwhile, only a charge counts, and
// other results are dropped.
func (v *recordCharge) Decide(l *store.Loaded, c *store.Changes) error {
	p, ok := l.Payin(v.payin.Merchant, v.payin.ID)
	if !ok {
		return notFound(v.payin.Merchant, v.payin.ID)
	}
	row, ok := l.Charge(p.Merchant, p.ID)
	if !ok {
		return notFound(v.payin.Merchant, v.payin.ID)
	}
	defer func() { v.payin = p }()
	v.movedTo = ""
	if row.Number != v.work.Number { // an earlier run of this record has moved the order
		return nil
	}
	mine := row.ClaimedBy == v.work.ClaimedBy && !row.ClaimedBy.IsZero()
	made := v.state == store.ChargeMade
	if mine && v.move(l, c, &p) {
		return nil
	}
	if !mine && (!made || row.State == store.ChargeMade) {
		return nil
	}
	if made && !p.Ready() {
		if err := v.store(l, c, &p); err != nil {
			return err
		}
	}
	if v.refused() && !p.Ready() {
		p.Failure = v.failure
		if _, err := transition.Payin(l, c, &p, v.links, payment.OnFail); err != nil {
			return err
		}
	}
	switch {
	case v.canceling:
		v.reportCancel(c, &p)
	case v.following:
		v.reportFollowed(c, &p)
	}
	c.SetCharge(v.after(l, row, &p, mine))
	return nil
}

// reportCancel opens a case about a charge that has not been canceled for long, and closes it once
// the charge is canceled.
func (v *recordCharge) reportCancel(c *store.Changes, p *payment.Payin) {
	switch {
	case v.state != store.ChargeToCancel && v.work.Attempts > cancelsBeforeCase:
		c.CloseCases(p.Merchant, p.ID, store.CaseChargeOpen, store.ResolvedByProof)
	case v.state == store.ChargeToCancel && v.work.Attempts == cancelsBeforeCase:
		c.OpenCase(store.Case{
			Merchant: p.Merchant, Kind: store.CaseChargeOpen, Subject: p.ID, Amount: p.Amount,
			Params: store.Params{"processor": v.work.Account, "externalId": p.ExternalID},
		})
	}
}

// store stores the charge in its order.
func (v *recordCharge) store(l *store.Loaded, c *store.Changes, p *payment.Payin) error {
	setCharge(p, v.charge)
	p.ExpiresAt = v.expiresAt
	moved := false
	if v.announce {
		var err error
		if moved, err = transition.Payin(l, c, p, v.links, payment.OnRegister); err != nil {
			return err
		}
	}
	if !moved {
		p.Version++
		*p = c.SetPayin(*p)
	}
	if v.work.Attempts > 1 {
		c.CloseCases(p.Merchant, p.ID, store.CaseCharge, store.ResolvedByProof)
	}
	return nil
}

// after is the remaining work. A charge that may exist is canceled if its order ended meanwhile.
func (v *recordCharge) after(l *store.Loaded, row store.Charge, p *payment.Payin, mine bool) store.Charge {
	next := v.work
	next.State, next.Cause = v.state, worker.ErrorText(v.cause)
	next.ClaimedBy, next.NextAt = payment.ID{}, time.Time{}
	if !mine { // the one that has claimed it records the end of its claim
		next.ClaimedBy = row.ClaimedBy
	}
	ended := p.Status == payment.PayinCanceled || p.Status == payment.PayinExpired
	switch {
	case v.canceling && next.State == store.ChargeToCancel:
		next.NextAt = l.Now().Add(v.wait)
	case v.canceling:
	case v.following && (p.Status == payment.PayinProcessing || openDispute(l.DisputesOf(p.Merchant, p.ID))):
		next.NextAt = l.Now().Add(v.wait)
	case v.following:
		next.State = store.ChargeEnded
	case p.Status == payment.PayinProcessing || row.State == store.ChargeFollowed:
		next.State, next.Attempts = store.ChargeFollowed, 0
		if next.ClaimedBy.IsZero() {
			next.NextAt = l.Now().Add(followAfter[0])
		}
	case ended && next.MayExist:
		next.State, next.Attempts = store.ChargeToCancel, 0
		if next.ClaimedBy.IsZero() {
			next.NextAt = l.Now()
		}
	case row.State == store.ChargeEnded && p.Status != payment.PayinPending:
		next.State = store.ChargeEnded // nothing is left to do: the answer of an earlier call is late
	case next.State != store.ChargeWanted:
	case p.Status != payment.PayinPending:
		next.State = store.ChargeEnded
	case p.Ready():
		next.State = store.ChargeMade
	default:
		next.NextAt = l.Now().Add(v.wait)
	}
	return next
}

// reasonOf is why a charge is not shown, as a part of a sentence.
func reasonOf(differs error) string {
	e, ok := errors.AsType[*processor.ChargeError](differs)
	if !ok {
		return ""
	}
	return ": its " + e.Field + " " + e.Reason
}

// answer is the answer to the request that made the call.
func (v *recordCharge) answer() (payment.Payin, error) {
	switch {
	case v.payin.Ready(): // perhaps by another process
		return v.payin, nil
	case v.refused() && v.payin.Status == payment.PayinFailed: // else another process has the claim, and goes on
		return v.payin, problem.New(problem.ProcessorRefused, "The processor refused the order: "+failureMessage(v.failure))
	case v.differs != nil:
		return v.payin, problem.New(problem.ProcessorRefused, "The processor's charge is not shown"+reasonOf(v.differs)+". The order exists; the operator has a case for it.").With(v.differs)
	case v.payin.Status != payment.PayinPending || inRegistration(&v.payin, &v.work):
		return v.payin, nil
	default:
		return v.payin, chargeTimeout(v.cause)
	}
}

// newWork is the work on the charge of a new pay-in, claimed by a node that is alive.
func newWork(p *payment.Payin, node payment.ID, l *store.Loaded) store.Charge {
	v := store.Charge{Merchant: p.Merchant, Payin: p.ID, Number: 1, Account: p.Processor, State: store.ChargeWanted, NextAt: l.Now()}
	if l.NodeAlive(node) {
		v = claimWork(v, node)
	}
	return v
}

// claimWork claims work for a node: from now on its call may have an effect.
func claimWork(v store.Charge, node payment.ID) store.Charge {
	v.ClaimedBy, v.NextAt = node, time.Time{}
	v.MayExist = true
	return v
}

// endCharge ends the work on the charge of an order that was canceled or has expired: a
// charge that may exist is canceled at its processor, in time.
func endCharge(l *store.Loaded, c *store.Changes, p *payment.Payin) {
	v, ok := l.Charge(p.Merchant, p.ID)
	if !ok || v.State == store.ChargeToCancel || v.State == store.ChargeEnded {
		return
	}
	switch {
	case !v.ClaimedBy.IsZero(): // the result of its call decides
		v.State = store.ChargeToCancel
	case v.MayExist:
		v.State, v.Attempts, v.NextAt = store.ChargeToCancel, 0, l.Now()
	default:
		v.State, v.NextAt = store.ChargeEnded, time.Time{}
	}
	c.SetCharge(v)
}

// claimCharge claims the work on the charge of an order whose request was repeated, if it
// is due.
type claimCharge struct {
	merchant, id, node payment.ID

	charge store.Charge // as it was claimed, MayExist as before; zero if it was not
	stored store.Charge
}

// Merchant implements [write.Operation].
func (v *claimCharge) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *claimCharge) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimCharge) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	n.Charge(v.merchant, v.id)
}

// Decide implements [write.Operation].
func (v *claimCharge) Decide(l *store.Loaded, c *store.Changes) error {
	v.charge = store.Charge{}
	row, ok := l.Charge(v.merchant, v.id)
	v.stored = row
	wanted := row.State == store.ChargeWanted || row.State == store.ChargeWithheld
	if !ok || !wanted || !row.ClaimedBy.IsZero() || row.NextAt.After(l.Now()) || !l.NodeAlive(v.node) {
		return nil
	}
	before := row.MayExist
	row.State = store.ChargeWanted
	claimed := claimWork(row, v.node)
	c.SetCharge(claimed)
	claimed.MayExist = before
	v.charge = claimed
	return nil
}
