package dispute

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// Find returns the dispute of a report, among all disputes of its pay-in; known is false for a new
// dispute. A processor may show only the present dispute of a payment, or only the return after a
// dispute: Find changes such a report to a report about the dispute.
func Find(list []payment.Dispute, processorName string, r *processor.Dispute) (d payment.Dispute, known bool) {
	of := func(match func(d *payment.Dispute) bool) (payment.Dispute, bool) {
		i := slices.IndexFunc(list, func(d payment.Dispute) bool { return d.Processor == processorName && match(&d) })
		if i < 0 {
			return payment.Dispute{}, false
		}
		return list[i], true
	}
	d, known = of(func(d *payment.Dispute) bool { return d.ExternalID == r.ID })
	switch {
	case r.Current && known:
		return current(d, of, r)
	case r.ReturnID == "":
		return d, known
	}
	booked, isBooked := of(func(v *payment.Dispute) bool {
		return v.ID != d.ID && (v.ReturnID == r.ReturnID || v.ExternalID == r.ReturnID) && !(inFavor(v) && r.State == processor.DisputeLost)
	})
	switch shown := r.ID != r.ReturnID; {
	case shown && known:
		return ledToReturn(d, booked, isBooked, r)
	case known:
		return d, true
	case isBooked && shown:
		r.ID = booked.ExternalID
		return booked, true
	case isBooked:
		rewrite(r, &booked)
		return booked, true
	case !shown && r.State != processor.DisputeWon:
		return hidden(of, r)
	default:
		return d, false
	}
}

// ledToReturn returns the dispute of a report that names a known dispute and the return that it led
// to.
func ledToReturn(d, booked payment.Dispute, isBooked bool, r *processor.Dispute) (payment.Dispute, bool) {
	switch {
	case r.State != processor.DisputeLost:
		return d, true
	case isBooked && d.ReturnID == "": // the money left once
		r.State, r.ReturnID, r.Lost = processor.DisputeWon, "", 0
		return d, true
	case isBooked && d.ReturnID != r.ReturnID: // both are booked, with the other's return
		r.State, r.ReturnID, r.Lost = processor.DisputeOpen, "", 0
		return d, true
	case inFavor(&d): // it was decided before: the return is of something else
		r.ID, r.Amount, r.Lost = r.ReturnID, cmp.Or(r.Lost, r.Amount), 0
		return booked, isBooked
	default:
		return d, true
	}
}

// hidden returns the dispute of a return without a booking: a dispute of the same payment that the
// processor does not show now, for example without a permission. A lost dispute is preferred.
func hidden(of func(func(d *payment.Dispute) bool) (payment.Dispute, bool), r *processor.Dispute) (payment.Dispute, bool) {
	for _, live := range []bool{false, true} {
		d, ok := of(func(d *payment.Dispute) bool {
			return d.PaymentID == r.PaymentID && d.ReturnID == "" && !inFavor(d) && d.Live() == live
		})
		if ok {
			rewrite(r, &d)
			return d, true
		}
	}
	return payment.Dispute{}, false
}

// rewrite makes a report of a return a report of the dispute that led to the return.
func rewrite(r *processor.Dispute, d *payment.Dispute) {
	r.ID, r.Reason, r.RespondBy, r.Blocked = d.ExternalID, d.Reason, d.RespondBy, d.Blocked
	if r.State == processor.DisputeLost {
		r.Lost = r.Amount
	}
}

// current is the last dispute under the id of a report. For a report of another dispute, known is
// false and the report gets a new id.
func current(d payment.Dispute, of func(func(d *payment.Dispute) bool) (payment.Dispute, bool), r *processor.Dispute) (payment.Dispute, bool) {
	id := r.ID
	for n := 2; ; n++ {
		r.ID = fmt.Sprintf("%s#%d", id, n) // of the nth dispute of a payment whose disputes share an id
		next, more := of(func(d *payment.Dispute) bool { return d.ExternalID == r.ID })
		if !more {
			break
		}
		d = next
	}
	if inFavor(&d) && (r.State == processor.DisputeOpen || r.State == processor.DisputeLost) {
		return payment.Dispute{}, false
	}
	r.ID = d.ExternalID
	return d, true
}

// inFavor reports whether a dispute ended in the merchant's favor.
func inFavor(d *payment.Dispute) bool {
	return d.Status == payment.DisputeWon || d.Status == payment.DisputeReversed
}

// Shows reports whether a dispute has the reported state or a later state.
func Shows(d *payment.Dispute, r *processor.Dispute) bool {
	switch {
	case d.Live() && d.Blocked && !r.Blocked: // a block may have become a dispute
		return false
	case r.ReturnID != "" && d.ReturnID != r.ReturnID, lossDiffers(d, r):
		return false
	}
	switch r.State {
	case processor.DisputeWon:
		return inFavor(d)
	case processor.DisputeLost:
		return d.Status == payment.DisputeLost || d.Status == payment.DisputeReversed
	case processor.DisputeReversed:
		return d.Status == payment.DisputeReversed
	default: // any state is later than "open"
		return true
	}
}
