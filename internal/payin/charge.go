package payin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

func chargeRequest(m *store.Merchant, p *payment.Payin, personal payment.PersonalData) processor.ChargeRequest {
	return processor.ChargeRequest{
		ExternalID: p.ExternalID, Method: p.Method, Amount: p.Amount, ExpiresAt: p.ExpiresAt,
		DueDate: p.Details.DueDate, Installments: p.Details.Installments, Description: strings.TrimSpace(p.Details.Description),
		MerchantName: m.Name, MerchantCity: m.City, Personal: personal,
	}
}

// setCharge stores the data that the payer needs to pay.
func setCharge(p *payment.Payin, c processor.Charge) {
	p.ProcessorID = c.ProcessorID
	p.Details.PIX, p.Details.Boleto, p.Details.Card = c.PIX, c.Boleto, c.Card
}

// charging is the registration of one order that is in progress in this process.
type charging struct {
	done    chan struct{} // closed at its end
	waiting int           // requests, besides the one that calls
	payin   payment.Payin
	err     error
}

// begin announces the registration of an order. From now on other requests of the order wait for
// it; first is false if one is in progress already.
func (s *Service) begin(id payment.ID) (c *charging, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c = s.charging[id]; c != nil {
		return c, false
	}
	c = &charging{done: make(chan struct{}), err: errChargeEnded}
	s.charging[id] = c
	return c, true
}

// end ends a registration, even if the processor's package panics.
func (s *Service) end(id payment.ID, c *charging) {
	s.mu.Lock()
	delete(s.charging, id)
	s.mu.Unlock()
	close(c.done)
}

// chargeOnce runs the registration of a stored order whose request was repeated. Requests
// that arrive meanwhile wait for the result and make no call of their own.
func (s *Service) chargeOnce(p payment.Payin, register func() (payment.Payin, error)) (payment.Payin, error) {
	c, first := s.begin(p.ID)
	if !first {
		s.mu.Lock()
		c.waiting++
		s.mu.Unlock()
		<-c.done // bounded by requestLimit
		return c.payin, c.err
	}
	defer s.end(p.ID, c)
	c.payin, c.err = register()
	return c.payin, c.err
}

// errChargeEnded is the result of a registration that panicked.
var errChargeEnded = errors.New("payin: the registration of the order ended without a result")

// A request waits requestLimit for its order's charge, at all accounts together; a driver may allow
// more to calls of the worker. With less than moveMin left, the worker tries the next account: a
// call that is cut off proves nothing about it.
const (
	requestLimit = 4 * time.Second
	moveMin      = time.Second
)

// register registers an order at its account, and at the next ones of its merchant's routes
// while each takes no charge. claimed is zero if the request was repeated: its charge is announced,
// as the first answer lacked it.
func (s *Service) register(ctx context.Context, m *store.Merchant, p payment.Payin, claimed store.Charge, personal payment.PersonalData) (payment.Payin, error) {
	repeated := claimed.ClaimedBy.IsZero()
	for began, left := s.Env.Clock.Monotonic(), requestLimit; ; {
		op, answer, err := s.registerHere(ctx, m, p, claimed, personal, left, repeated)
		if op == nil || op.movedTo == "" {
			return answer, err
		}
		p, claimed = op.payin, store.Charge{}
		if left = requestLimit - (s.Env.Clock.Monotonic() - began); left < moveMin {
			s.ChargeWaker.Wake()
			return answer, err
		}
	}
}

// registerHere registers an order at the account that the order names, if this process has claimed
// the work, or can claim it now. Otherwise another process works on it, or it waits. op is nil if
// no call was recorded. left is the time that the request has.
func (s *Service) registerHere(ctx context.Context, m *store.Merchant, p payment.Payin, claimed store.Charge, personal payment.PersonalData, left time.Duration, announce bool) (op *recordCharge, answer payment.Payin, err error) {
	charger, profile, err := s.charger(p.Processor)
	if claimed.ClaimedBy.IsZero() {
		if err != nil {
			return nil, p, err
		}
		if err := s.Processors.Allows(p.Processor, payment.UseCharge); err != nil {
			return nil, p, err
		}
		claim := &claimCharge{merchant: p.Merchant, id: p.ID, node: s.Node.ID()}
		if err := s.Writer.DoWithoutCancel(ctx, claim); err != nil {
			return nil, p, err
		}
		if claimed = claim.charge; claimed.ClaimedBy.IsZero() {
			answer, err := s.unclaimed(ctx, p, claim.stored, left)
			return nil, answer, err
		}
	}
	w := &chargeWork{
		Charge: claimed, charger: charger, profile: profile, request: chargeRequest(m, &p, personal),
		others: s.otherAccounts(ctx, m, &p, &claimed), restored: s.restoredLately(),
	}
	if err != nil {
		w.notSent(err)
	} else {
		s.callUntil(ctx, w, min(left, profile.Charge.Timeout))
	}
	op = s.newRecord(p, w)
	op.announce = announce
	if err := s.record(ctx, op); err != nil {
		s.mu.Lock()
		s.unrecorded = append(s.unrecorded, op)
		s.mu.Unlock()
		return nil, p, err
	}
	answer, err = op.answer()
	return op, answer, err
}

// readAgainAfter is the wait between two reads of an order that another process works on.
const readAgainAfter = 100 * time.Millisecond

// unclaimed is the answer to a request whose order another process works on, whose result is
// awaited, or whose next call is not due.
func (s *Service) unclaimed(ctx context.Context, p payment.Payin, c store.Charge, limit time.Duration) (payment.Payin, error) {
	limited, cancel := s.Env.Clock.WithTimeout(ctx, limit)
	defer cancel()
	for {
		p, err := s.Store.Payin(ctx, p.Merchant, p.ID)
		switch {
		case err != nil:
			return p, store.Problem(err)
		case p.Ready() || p.Status != payment.PayinPending || inRegistration(&p, &c):
			return p, nil
		case c.ClaimedBy.IsZero() || limited.Err() != nil:
			return p, chargeTimeout(fmt.Errorf("charge is %s, last outcome %q", c.State, c.Outcome))
		}
		timer := s.Env.Clock.NewTimer(readAgainAfter)
		select {
		case <-timer.C():
		case <-limited.Done():
			timer.Stop()
		}
		if c, err = s.Store.ChargeOf(ctx, p.Merchant, p.ID); err != nil {
			return p, store.Problem(err)
		}
	}
}

// inRegistration reports whether the order may be answered without its charge: a boleto whose
// registration is in progress or comes later.
func inRegistration(p *payment.Payin, c *store.Charge) bool {
	return p.Method == payment.Boleto && (c.Outcome == outcomeRegistering || c.Outcome == processor.Later.String())
}

// chargeAgainAfter is the schedule of further calls for a charge, by the number of calls so far. A
// request makes the first ones, within the processor's timeout.
var chargeAgainAfter = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
	2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
}

var (
	errBreakerOpen = errors.New("payin: the processor did not answer other requests")
	errNoSlot      = errors.New("payin: all calls that the account allows are in flight")
	errClaimLost   = errors.New("payin: this process may have lost its claim")
)

// callUntil calls the processor within a time, until the charge is known or refused, or must be
// called for later than the time allows. A processor whose breaker is open is not called.
func (s *Service) callUntil(ctx context.Context, w *chargeWork, limit time.Duration) {
	limited, cancel := s.Env.Clock.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if s.breakers.Allow(w.Account, 1) == 0 { // else requests would wait for it in every slot of the API
		w.notSent(errBreakerOpen)
		return
	}
	pool := s.calls.Of(w.Account, w.profile.Charge.Slots)
	if !pool.Acquire(limited) {
		w.notSent(errNoSlot)
		return
	}
	defer pool.Release(1)
	began := s.Env.Clock.Monotonic()
	for calls := 0; ; calls++ {
		s.call(limited, w)
		wait := chargeAgainAfter[min(calls, len(chargeAgainAfter)-1)]
		switch left := limit - (s.Env.Clock.Monotonic() - began); {
		case w.callAgain():
		case w.pauses() && w.wait+moveMin/2 <= left:
			wait = w.wait
		default:
			return
		}
		timer := s.Env.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-limited.Done():
			timer.Stop()
		}
		if limited.Err() != nil { // checked on its own: select picks any of two ready cases
			return
		}
	}
}

// guard returns the check right before the first byte of a request. If a repeat is unsafe, the
// request is made only if this process still has its claim.
func (s *Service) guard(w *chargeWork) func() error {
	return func() error {
		if !w.profile.Charge.Repeat.Safe() && (!s.Node.Lease.Valid() || s.Node.ID() != w.ClaimedBy) {
			return errClaimLost
		}
		return nil
	}
}

// call makes one call of the work. It makes two, a look-up and the request that the look-up allows,
// if that is the first request or a repeat is unsafe.
func (s *Service) call(ctx context.Context, w *chargeWork) {
	w.call(ctx, s.Env.Clock, s.guard(w))
	if w.asked && w.Outcome == outcomeNotFound && (w.FirstSentAt.IsZero() || !w.profile.Charge.Repeat.Safe()) {
		w.call(ctx, s.Env.Clock, s.guard(w))
	}
	if errors.Is(w.cause, errClaimLost) { // which proves nothing about the processor
		return
	}
	s.breakers.Record(w.Account, w.Outcome != processor.NotSent.String() && (w.Outcome != processor.Unknown.String() || ctx.Err() == nil))
	if w.State == store.ChargeWanted && w.Outcome != outcomeRegistering {
		s.Log.WarnContext(ctx, "charge not confirmed", "processor", w.Account, "externalId", w.request.ExternalID, "outcome", w.Outcome, "cause", w.cause)
	}
}

func chargeTimeout(cause error) error {
	return problem.New(problem.ProcessorTimeout, "The processor did not answer within the timeout. The order exists; send the same request again to continue.").With(cause)
}

func failureMessage(f *payment.Failure) string {
	if f == nil || f.Message == "" {
		return "it gave no reason."
	}
	return f.Message
}
