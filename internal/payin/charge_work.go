package payin

import (
	"context"
	"errors"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// The outcomes of calls about charges that a processor.Outcome does not name.
const (
	outcomeRegistering  = "registering"    // the processor has the charge, which cannot be paid yet
	outcomeNotFound     = "not_found"      // by a look-up beyond the quiet period: the next call may make it
	outcomeNotFoundOnce = "not_found_once" // the same, if a repeat is unsafe: it counts the second time
	outcomeDiffers      = "differs"        // the charge is not the order's
	outcomeOrderEnded   = "order_ended"    // no call was made any more
	outcomeNoCancel     = "not_cancelable"
)

// laterAfter is the shortest wait before a processor is called again that asked for a later
// call, and longestLater the longest.
const (
	laterAfter   = 5 * time.Second
	longestLater = 6 * time.Hour
)

// chargeWork is the work on one charge that this process has claimed. Its calls change it, and then
// it is recorded. MayExist has its value from before the claim.
type chargeWork struct {
	store.Charge

	charger processor.Charger
	profile processor.Profile
	request processor.ChargeRequest

	made    processor.Charge
	failure *payment.Failure // of a refusal
	differs error            // from the order
	cause   error
	wait    time.Duration // that the processor named
	asked   bool          // the last call was a look-up
	others  []string      // accounts that may be tried if this one takes no charge, in order
	// restored: not long ago, so a charge may exist that the database lacks.
	restored bool
	// canceling: the charge is to be canceled. following: its order is PROCESSING or disputed.
	canceling, following bool
	// reports are those of a charge that has payments, or a state of its own: of this account or,
	// if its order is disputed, of each account that has the dispute.
	reports []accountReport
}

// accountReport is an account's report of a charge.
type accountReport struct {
	account string
	report  processor.ChargeReport
}

// cancelAgainAfter is the schedule of further calls to cancel a charge, by the number of calls
// so far. After cancelsBeforeCase calls, about five hours, a case is opened.
var cancelAgainAfter = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 24 * time.Hour,
}

const cancelsBeforeCase = 12

// callAgain reports whether the processor may be called again at once.
func (w *chargeWork) callAgain() bool {
	return w.State == store.ChargeWanted && w.Outcome != outcomeRegistering && w.Outcome != outcomeNotFoundOnce && w.Outcome != processor.Later.String() &&
		!errors.Is(w.cause, errClaimLost) && !w.movable()
}

// pauses reports whether the processor asked for a later call, and no other account may be tried meanwhile.
func (w *chargeWork) pauses() bool {
	return w.State == store.ChargeWanted && w.Outcome == processor.Later.String() && w.wait > 0 && !w.movable()
}

// call makes one call, and takes its answer: the charge is requested, under the same id, if
// that is safe; else it is looked up.
func (w *chargeWork) call(ctx context.Context, clock env.Clock, guard func() error) {
	now := clock.Now()
	w.Attempts++
	if w.asked = w.toLookUp(now); w.asked {
		w.takeReport(worker.Call(func() processor.ChargeReport {
			return w.charger.QueryCharge(ctx, w.request.ExternalID)
		}, func(cause error) processor.ChargeReport { return processor.ChargeReport{Cause: cause} }), clock.Now())
		return
	}
	answer := worker.Call(func() processor.ChargeAnswer {
		return w.charger.Charge(ctx, w.request, guard)
	}, func(cause error) processor.ChargeAnswer { return processor.ChargeAnswer{Cause: cause} })
	if answer.Outcome != processor.NotSent {
		w.SentAt = now
		if w.FirstSentAt.IsZero() {
			w.FirstSentAt = now
		}
	}
	w.take(answer)
}

// toLookUp reports whether the next call must be a look-up: an earlier call may have made the
// charge, so a second call would make a second charge, or the call has been answered already. After
// an unknown answer the next call is a look-up even if a repeat is safe: the processor may refuse
// the repeat because it has the charge under other terms, from a past that a restored backup lacks.
// If a repeat is unsafe, that past is looked up before the first request, too.
func (w *chargeWork) toLookUp(now time.Time) bool {
	switch {
	case !w.MayExist && w.FirstSentAt.IsZero() && (w.profile.Charge.LookUpFirst || !w.profile.Charge.Repeat.Safe()):
		return w.Outcome != outcomeNotFound
	case !w.MayExist:
		return false
	case w.Outcome == processor.Unknown.String() && !w.asked:
		return true
	case w.Outcome == processor.Known.String() || w.Outcome == processor.Refused.String() || w.Outcome == outcomeRegistering:
		return true
	default:
		return !w.profile.Charge.Repeatable(w.FirstSentAt, now)
	}
}

// take takes the answer to a request of the charge. A refusal is final only if every
// earlier request had no effect.
func (w *chargeWork) take(a processor.ChargeAnswer) {
	w.Outcome, w.cause, w.wait = a.Outcome.String(), a.Cause, a.Wait
	switch a.Outcome {
	case processor.Done:
		w.found(a.Registering, a.Charge)
	case processor.Refused:
		if !w.MayExist {
			w.State, w.failure = store.ChargeEnded, a.Failure
		}
	case processor.NotSent, processor.Later:
	default:
		w.MayExist = true
	}
}

// takeReport takes the answer to a look-up. A charge that can still be paid becomes the order's,
// even if it has payments, which may be booked elsewhere already. A charge that failed or was
// canceled unpaid ends the order.
func (w *chargeWork) takeReport(r processor.ChargeReport, now time.Time) {
	w.cause, w.wait = r.Cause, 0
	c := r.Charge
	found, paid, payable := r.Lookup == processor.Found, len(r.Payments)+len(r.Disputes) > 0, c.PIX != nil || c.Boleto != nil || c.Card != nil
	if found && (paid || r.State == processor.ChargeAnalysis || r.State == processor.ChargeExpired && !payable) {
		w.reports = []accountReport{{w.Account, r}}
	}
	switch {
	case found && !paid && (r.State == processor.ChargeFailed || r.State == processor.ChargeCanceled):
		w.State, w.Outcome, w.MayExist, w.failure = store.ChargeEnded, processor.Refused.String(), false, r.Failure
		if r.State == processor.ChargeCanceled {
			w.failure = &payment.Failure{Code: "charge_canceled", Message: "The charge was canceled at the processor."}
		}
	case found && r.State == processor.ChargeRegistering:
		w.found(true, c)
	case found && payable:
		if c.PIX != nil && !c.PIX.ExpiresAt.IsZero() && c.PIX.ExpiresAt.Before(w.request.ExpiresAt) { // from a past that a restored backup lacks
			w.request.ExpiresAt = c.PIX.ExpiresAt
		}
		w.found(false, c)
	case r.Lookup == processor.NotFound && (w.proved(now) || w.provedTwice(now) || !w.MayExist):
		w.Outcome, w.MayExist = outcomeNotFound, false
	case r.Lookup == processor.NotFound && w.noted():
	case w.Outcome == processor.Known.String() || w.Outcome == processor.Refused.String() || w.Outcome == outcomeRegistering: // it is looked up again
	default: // a charge that is not found may still be under way
		w.Outcome = processor.Unknown.String()
	}
}

// proved reports whether a "not found" now proves that no earlier request made the charge, and that
// a further request is safe in any case.
func (w *chargeWork) proved(now time.Time) bool {
	e := w.profile.Charge
	return e.Repeatable(w.FirstSentAt, now) && e.Visible(w.FirstSentAt, now) && !now.Before(w.lastSent().Add(e.Timeout+e.QuietPeriod))
}

// provedTwice reports whether a "not found" now is the second one, at least
// [processor.Effect].Confirm after the first, so that another request is made although a repeat is
// unsafe. If the first request made a charge nevertheless, no payer was shown it, and it is
// canceled with the order. The first "not found" is noted: the time of its row is the time of that
// look-up.
func (w *chargeWork) provedTwice(now time.Time) bool {
	e := w.profile.Charge
	if e.Repeat.Safe() || e.Confirm == 0 || !e.Visible(w.FirstSentAt, now) || now.Before(w.lastSent().Add(e.Timeout+e.QuietPeriod)) {
		return false
	}
	if !w.noted() {
		w.Outcome, w.UpdatedAt = outcomeNotFoundOnce, now
		return false
	}
	return !now.Before(w.UpdatedAt.Add(e.Confirm))
}

// lastSent is when the last request may have been sent. A process that claimed a new charge and
// died has not recorded its request.
func (w *chargeWork) lastSent() time.Time {
	if w.SentAt.IsZero() {
		return w.CreatedAt
	}
	return w.SentAt
}

// noted reports whether the last call was a first "not found".
func (w *chargeWork) noted() bool { return w.Outcome == outcomeNotFoundOnce }

// found takes a charge that the processor has. A charge that differs from the order is withheld.
func (w *chargeWork) found(registering bool, c processor.Charge) {
	w.MayExist = true
	if registering {
		w.Outcome = outcomeRegistering
		return
	}
	if c.PIX != nil && c.PIX.ExpiresAt.IsZero() {
		own := *c.PIX
		own.ExpiresAt = w.request.ExpiresAt
		c.PIX = &own
	}
	w.Outcome, w.ProcessorID = processor.Done.String(), worker.Short(c.ProcessorID)
	if w.differs = processor.CheckCharge(&w.profile, &w.request, &c); w.differs != nil {
		w.State, w.Outcome, w.cause = store.ChargeWithheld, outcomeDiffers, w.differs
		return
	}
	w.State, w.made = store.ChargeMade, c
}

// notSent takes the end of work without a call.
func (w *chargeWork) notSent(cause error) {
	w.Outcome, w.cause = processor.NotSent.String(), cause
	w.Attempts++
}

// next is the wait before the next call.
func (w *chargeWork) next(j worker.Jitter) time.Duration {
	switch {
	case w.following:
		return j.Of(worker.After(followAfter, w.Attempts))
	case w.canceling:
		return max(j.Of(worker.After(cancelAgainAfter, w.Attempts-1)), min(w.wait, longestLater))
	case !w.asked && (w.Outcome == processor.Known.String() || w.Outcome == processor.Refused.String()):
		return 0 // it is looked up
	case w.noted():
		return w.profile.Charge.Confirm
	case w.Outcome == processor.Later.String():
		return max(j.Of(max(laterAfter, worker.After(chargeAgainAfter, w.Attempts))), min(w.wait, longestLater))
	default:
		return j.Of(max(time.Second, worker.After(chargeAgainAfter, w.Attempts)))
	}
}
