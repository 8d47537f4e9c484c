package review

import (
	"context"
	"slices"
	"strconv"

	"github.com/porteira/porteira/internal/outgoing"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// eventOfCase reads the number of the event that the case names, if it names one.
func eventOfCase(ctx context.Context, s *Service, v *Resolve) error {
	if number := v.opened.Params["number"]; number != "" {
		n, err := strconv.ParseInt(number, 10, 64)
		v.event = n
		return err
	}
	public := v.opened.Params["event"]
	if public == "" {
		return nil
	}
	id, err := payment.ParseEventID(public)
	if err != nil {
		return err
	}
	e, err := s.Store.Event(ctx, v.opened.Merchant, id)
	v.event = e.Number
	return err
}

// openDamaged reads the row that a case about damage names. The secret of an endpoint must open
// again.
func openDamaged(ctx context.Context, s *Service, v *Resolve) error {
	switch v.opened.Params["table"] {
	case "webhook_endpoints":
	case "refund_parts":
		return findRefund(ctx, s, v)
	default:
		return eventOfCase(ctx, s, v)
	}
	e, err := s.Store.EndpointOf(ctx, v.opened.Merchant, v.opened.Subject)
	if err == nil {
		_, _, err = s.Store.EndpointSecrets(&e)
	}
	return err
}

// retryNotice makes a dead letter due again.
func retryNotice(v *Resolve, _ *store.Loaded, c *store.Changes) error {
	c.RetryNotice(v.opened.Params["processor"], v.opened.Params["notice"])
	return nil
}

// retryDeliveries makes the deliveries due again that were given up with the case.
func retryDeliveries(v *Resolve, _ *store.Loaded, c *store.Changes) error {
	c.RetryDeliveries(v.opened.Merchant, v.event, v.opened.ID)
	return nil
}

// needsDamaged reads the damaged row. If it still cannot be opened, the operation cannot be
// committed.
func needsDamaged(v *Resolve, n *store.Needs) {
	switch v.opened.Params["table"] {
	case "payouts":
		n.Payout(v.opened.Merchant, v.opened.Subject)
		n.Sends(v.opened.Merchant, v.opened.Subject)
		n.OpenCasesAbout(v.opened.Merchant, v.opened.Subject, store.CasePayoutUnknown)
		n.OpenCasesAbout(v.opened.Merchant, v.opened.Subject, store.CaseContradiction)
	case "payins":
		n.Payin(v.opened.Merchant, v.opened.Subject)
	case "charges":
		n.Charge(v.opened.Merchant, v.opened.Subject)
	case "refund_parts":
		n.OpenCasesAbout(v.opened.Merchant, v.opened.Subject, store.CaseDamaged)
		needsRefund(v, n)
	case "receivables":
		n.Receivable(v.opened.Merchant, v.opened.Subject)
	case "webhook_endpoints":
		n.Endpoints(v.opened.Merchant)
	}
}

// hasParkingCase reports whether a payout is parked under another case too, about its outcome. Then
// only a decision about that case continues it, as it may take two people. A payout without an
// answer, or still in progress, is not parked for that: look-ups continue.
func hasParkingCase(l *store.Loaded, p *payment.Payout) bool {
	return len(l.OpenCasesAbout(p.Merchant, p.ID, store.CaseContradiction)) > 0 ||
		slices.ContainsFunc(l.OpenCasesAbout(p.Merchant, p.ID, store.CasePayoutUnknown), func(v store.Case) bool { return needsReview(v.Params.Reason()) })
}

// hasParkingRefundCase is hasParkingCase for the part of a refund.
func hasParkingRefundCase(l *store.Loaded, p *payment.RefundPart) bool {
	return slices.ContainsFunc(outgoing.CasesOfPart(l, p, store.CaseRefundUnknown), func(v store.Case) bool { return needsReview(store.CaseReason(v.Params["cause"])) })
}

func needsReview(reason store.CaseReason) bool {
	return reason != store.ReasonNoAnswer && reason != store.ReasonStillProcessing && reason != store.ReasonUnconfirmed
}

// retryDamaged continues the work on a row that was repaired.
func retryDamaged(v *Resolve, l *store.Loaded, c *store.Changes) error {
	m, subject := v.opened.Merchant, v.opened.Subject
	switch v.opened.Params["table"] {
	case "payouts":
		p, ok := l.Payout(m, subject)
		if !ok {
			return store.ErrNotFound
		}
		waits := p.Step == payment.StepApproval && p.NextAt.IsZero()         // for approval, without an end
		if waits || p.Step == payment.StepReview && !hasParkingCase(l, &p) { // else it has ended, goes on, or waits under another case
			if err := outgoing.Repaired(l, c, &p); err != nil {
				return err
			}
		}
		c.IndexAgain(m, payment.OperationPayout, subject)
	case "payins":
		p, ok := l.Payin(m, subject)
		if !ok {
			return store.ErrNotFound
		}
		c.SetPayin(p) // which schedules its expiry
		c.IndexAgain(m, payment.OperationPayin, subject)
	case "refund_parts":
		p, err := v.part(l)
		if err != nil {
			return err
		}
		if p.State == payment.StepReview && !hasParkingRefundCase(l, &p) { // else a report of the processor has continued it, or it waits under another case
			return outgoing.RepairedRefund(l, c, p)
		}
	case "receivables":
		r, ok := l.Receivable(m, subject)
		if !ok {
			return store.ErrNotFound
		}
		if r.State == store.ReceivableParked {
			r.State = store.ReceivablePending
			c.SetReceivable(r)
		}
	case "charges":
		w, ok := l.Charge(m, subject)
		if !ok {
			return store.ErrNotFound
		}
		if w.ClaimedBy.IsZero() && (w.State == store.ChargeWanted || w.State == store.ChargeToCancel || w.State == store.ChargeFollowed) {
			w.NextAt = l.Now() // if the row is still damaged, it is parked again
			c.SetCharge(w)
		}
		c.IndexAgain(m, payment.OperationPayin, subject)
	case "webhook_endpoints":
		e, ok := l.Endpoint(m, subject)
		if !ok {
			return store.ErrNotFound
		}
		e.Version++ // all nodes open it again
		c.SetEndpoint(e)
	case "events":
		return retryDeliveries(v, l, c)
	default:
		return problem.New(problem.InvalidState, "The rows of this table are not processed by a worker: repair them and close the case with a later version.")
	}
	return nil
}
