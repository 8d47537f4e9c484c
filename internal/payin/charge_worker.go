package payin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
	"github.com/porteira/porteira/internal/write"
)

// Calls about charges in flight at once, and work that one run claims, both per account: an account
// that hangs delays no other.
const (
	chargeSlots      = 64
	chargesPerWorker = 16
)

// Charge is the step of the worker that continues charges whose request got no answer in time, and
// cancels charges of orders that ended. At a suspended account it only looks up.
func (s *Service) Charge(ctx context.Context) (int, error) {
	if !s.Node.Lease.Valid() {
		return 0, nil
	}
	err := s.retryRecords(ctx)
	accounts, listErr := s.Store.AccountsWithCharges(ctx, s.Env.Clock.Now())
	errs := []error{err, listErr}
	did := 0
	for _, account := range worker.Order(&s.turn, accounts, func(id string) string { return id }, strings.Compare) {
		charger, profile, err := s.charger(account)
		followed := s.Processors.Allows(account, payment.UseCharge) != nil // a look-up has no effect: every state allows it
		if err != nil || followed && s.Processors.Refused(account) {
			continue // another process may open the account
		}
		pool := s.calls.Of(account, profile.Charge.Slots)
		n := min(chargesPerWorker, pool.Free())
		if n > 0 {
			n = s.breakers.Allow(account, n)
		}
		if n == 0 {
			continue
		}
		op := &claimDue{account: account, followed: followed, limit: n, node: s.Node.ID()}
		if err := s.Writer.DoWithoutCancel(ctx, op); err != nil { // the claim of Decide may not be committed
			errs = append(errs, err)
			continue
		}
		did += len(op.claimed)
		s.turn.Served(account)
		for _, c := range op.claimed {
			w := &chargeWork{Charge: c, charger: charger, profile: profile, canceling: c.State == store.ChargeToCancel, following: c.State == store.ChargeFollowed}
			pool.Run(func() { s.work(ctx, w) })
		}
	}
	return did, errors.Join(errs...)
}

// retryRecords records results of requests that could not be recorded before.
func (s *Service) retryRecords(ctx context.Context) error {
	s.mu.Lock()
	list := s.unrecorded
	s.unrecorded = nil
	s.mu.Unlock()
	var errs []error
	for _, op := range list {
		op.announce = true
		if err := s.record(ctx, op); err != nil {
			errs = append(errs, err)
			s.mu.Lock()
			s.unrecorded = append(s.unrecorded, op)
			s.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

// claimDue claims due work on the charges of an account.
type claimDue struct {
	account  string
	followed bool // only charges that are looked up
	limit    int
	node     payment.ID
	claimed  []store.Charge // MayExist as before
}

// Merchant implements [write.Operation].
func (v *claimDue) Merchant() payment.ID { return payment.ID{} }

// Class implements [write.Operation].
func (v *claimDue) Class() commit.Class { return commit.Claim }

// Needs implements [write.Operation].
func (v *claimDue) Needs(n *store.Needs) {
	n.ClaimingNode(v.node)
	if v.followed {
		n.FollowedCharges(v.account, v.limit)
	} else {
		n.DueCharges(v.account, v.limit)
	}
}

// Decide implements [write.Operation].
func (v *claimDue) Decide(l *store.Loaded, c *store.Changes) error {
	v.claimed = nil
	if !l.NodeAlive(v.node) {
		return write.ErrNodeDead
	}
	list := l.DueCharges(v.account)
	if v.followed {
		list = l.FollowedCharges(v.account)
	}
	for _, row := range list[:min(v.limit, len(list))] { // others in this commit may claim too
		before := row.MayExist
		row = claimWork(row, v.node)
		c.SetCharge(row)
		row.MayExist = before
		v.claimed = append(v.claimed, row)
	}
	return nil
}

// work makes one call about a charge that was claimed, and records its result.
func (s *Service) work(ctx context.Context, w *chargeWork) {
	p, err := s.prepare(ctx, w)
	switch {
	case store.Lasting(err):
		s.Log.ErrorContext(ctx, "charge cannot be processed", "payin", w.Payin, "error", err)
		s.Recorder.Record(ctx, "damaged charge", func(ctx context.Context) error { return s.Writer.Do(ctx, &parkCharge{w.Charge}) })
		return
	case err != nil:
		w.notSent(err)
	case w.canceling:
		s.cancelCharge(ctx, w, &p)
	case w.following:
		s.lookUpFollowed(ctx, w, &p)
	case p.Ready() || p.Status != payment.PayinPending:
		w.Outcome = outcomeOrderEnded
	default:
		limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), w.profile.Charge.Timeout)
		s.call(limited, w)
		cancel()
	}
	op := s.newRecord(p, w)
	op.payin.Merchant, op.payin.ID, op.announce = w.Merchant, w.Payin, true
	s.Recorder.Record(ctx, "result of charge", func(ctx context.Context) error { return s.record(ctx, op) })
}

// prepare reads the data that the calls of the work need.
func (s *Service) prepare(ctx context.Context, w *chargeWork) (payment.Payin, error) {
	p, err := s.Store.Payin(ctx, w.Merchant, w.Payin)
	if err != nil || w.canceling || w.following {
		return p, err
	}
	m, err := s.Store.Merchant(ctx, w.Merchant)
	if err != nil {
		return p, err
	}
	personal, err := s.Store.PayinPersonal(ctx, w.Merchant, w.Payin)
	w.request, w.restored = chargeRequest(&m, &p, personal), s.restoredLately()
	if m.Damaged == nil { // else its routes may be another's
		w.others = s.otherAccounts(ctx, &m, &p, &w.Charge)
	}
	return p, err
}

// cancelCharge cancels the charge of an order that ended. A charge that is paid meanwhile
// is booked as any payment.
func (s *Service) cancelCharge(ctx context.Context, w *chargeWork, p *payment.Payin) {
	canceler, ok := w.charger.(processor.ChargeCanceler)
	if !ok || !slices.Contains(w.profile.CancelsCharges, p.Method) {
		w.State, w.Outcome = store.ChargeEnded, outcomeNoCancel
		return
	}
	limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), w.profile.Charge.Timeout)
	defer cancel()
	r := processor.CancelRequest{ExternalID: p.ExternalID, ProcessorID: w.ProcessorID, Method: p.Method}
	a := worker.Call(func() processor.CancelAnswer { return canceler.CancelCharge(limited, r, s.guard(w)) },
		func(cause error) processor.CancelAnswer { return processor.CancelAnswer{Cause: cause} })
	s.breakers.Record(w.Account, a.NotFound || a.Outcome != processor.NotSent && (a.Outcome != processor.Unknown || limited.Err() == nil))
	w.takeCancel(a, s.Env.Clock.Now())
	if w.State == store.ChargeToCancel {
		s.Log.WarnContext(ctx, "charge not canceled", "processor", w.Account, "externalId", p.ExternalID, "outcome", w.Outcome, "cause", w.cause)
	}
}

// takeCancel takes the answer to a cancellation. A charge that is not found may still be in
// progress, until the quiet period after its last request.
func (w *chargeWork) takeCancel(a processor.CancelAnswer, now time.Time) {
	w.Attempts++
	w.Outcome, w.cause, w.wait = a.Outcome.String(), a.Cause, a.Wait
	quiet := w.lastSent().Add(w.profile.Charge.Timeout + w.profile.Charge.QuietPeriod)
	switch {
	case a.NotFound && now.Before(quiet) && w.ProcessorID == "":
		w.Outcome, w.wait = processor.Later.String(), quiet.Sub(now)
	case a.NotFound:
		w.State, w.Outcome = store.ChargeEnded, outcomeNotFound
	case a.Outcome == processor.Done || a.Outcome == processor.Refused:
		w.State = store.ChargeEnded
	}
}

// parkCharge stops the work on a charge whose order cannot be opened, with a case, so that
// it delays no other.
type parkCharge struct{ work store.Charge }

// Merchant implements [write.Operation].
func (v *parkCharge) Merchant() payment.ID { return v.work.Merchant }

// Class implements [write.Operation].
func (v *parkCharge) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *parkCharge) Needs(n *store.Needs) { n.Charge(v.work.Merchant, v.work.Payin) }

// Decide implements [write.Operation].
func (v *parkCharge) Decide(l *store.Loaded, c *store.Changes) error {
	row, ok := l.Charge(v.work.Merchant, v.work.Payin)
	if !ok || row.ClaimedBy != v.work.ClaimedBy || row.ClaimedBy.IsZero() {
		return nil
	}
	row.ClaimedBy, row.MayExist = payment.ID{}, v.work.MayExist
	c.SetCharge(row)
	c.OpenCase(store.DamagedCase(row.Merchant, row.Payin, "charges"))
	return nil
}
