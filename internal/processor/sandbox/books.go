package sandbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// books are what the journal says: nothing changes them but apply, so that
// reading the journal again makes the same books.
type books struct {
	offset    time.Duration
	charges   map[string]*charge
	payments  []*paid  // in order of arrival
	changes   []change // disputes and returns, in their order
	byPayment map[string]*paid
	orders    map[orderKey]*order
	transfers []*order // those that were taken, in order
	delayed   map[orderKey]*orderDelayed
	notices   map[string]*notice // still to be delivered
	listeners []listenerMoved    // in order of their first registration
}

// orderKey names an order: transfers and refunds have ids of their own each.
type orderKey struct {
	kind       processor.Subject
	externalID string
}

// charge is a charge that the bank has seen.
type charge struct {
	externalID  string
	terms       chargeTerms
	state       processor.ChargeState
	failure     failureCode
	payments    []*paid
	attempt     int         // of a card, the last that was decided or is in analysis
	challenge   *cardPaused // an attempt that waits for its payer
	analysis    *cardPaused // one that waits for the issuer
	analyzedAt  time.Time
	notifyFault Kind
	reordered   bool // its first notice was held back
}

// paid is money that came in.
type paid struct {
	paymentMade
	paidAt   time.Time
	disputes []*disputeMoved
	refunds  []*order
}

// order is money that goes, or was refused to go, out.
type order struct {
	orderMade
	state     processor.TransferState
	returned  money.Cents
	failure   failureCode
	createdAt time.Time
	changedAt time.Time
	reordered bool
}

// change is money that moved again after it was paid or sent.
type change struct {
	subject    processor.Subject
	externalID string
	returned   money.Cents   // of a transfer, in all
	dispute    *disputeMoved // of a charge
}

// notice is news for a gateway.
type notice struct {
	id         string
	subject    processor.Subject
	externalID string
	payment    *paid // where the news is a payment
	createdAt  time.Time
	fault      Kind
}

func newBooks() *books {
	return &books{
		charges:   make(map[string]*charge),
		byPayment: make(map[string]*paid),
		orders:    make(map[orderKey]*order),
		delayed:   make(map[orderKey]*orderDelayed),
		notices:   make(map[string]*notice),
	}
}

// errRecord says that a record does not fit the books.
var errRecord = errors.New("record does not fit the books")

// apply changes the books as the record says, or returns errRecord.
func (b *books) apply(r *record) error {
	switch {
	case r.Charge != nil:
		return b.applyCharge(r)
	case r.ChargeEnd != nil:
		return b.applyChargeEnd(r)
	case r.Payment != nil:
		return b.applyPayment(r)
	case r.Dispute != nil:
		return b.applyDispute(r)
	case r.Challenge != nil:
		return b.applyPause(r, r.Challenge)
	case r.Analysis != nil:
		return b.applyPause(r, r.Analysis)
	case r.Order != nil:
		return b.applyOrder(r)
	case r.OrderEnd != nil:
		return b.applyOrderEnd(r)
	case r.Delayed != nil:
		b.delayed[orderKey{r.Delayed.Order.Kind, r.Delayed.Order.ExternalID}] = r.Delayed
	case r.Listener != nil:
		b.applyListener(r.Listener)
	case r.Offset != 0:
		b.offset = time.Duration(r.Offset) * time.Microsecond
	default:
		for _, id := range r.Settled {
			delete(b.notices, id)
		}
	}
	return nil
}

func (b *books) applyCharge(r *record) error {
	made := r.Charge
	if b.charges[made.ExternalID] != nil {
		return fmt.Errorf("%w: charge made twice", errRecord)
	}
	c := &charge{
		externalID: made.ExternalID, terms: made.Terms, state: processor.ChargeOpen,
		failure: made.Refusal, notifyFault: made.NotifyFault,
	}
	if made.Refusal != "" {
		c.state = processor.ChargeFailed
	}
	b.charges[made.ExternalID] = c
	return nil
}

func (b *books) applyChargeEnd(r *record) error {
	c := b.charges[r.ChargeEnd.ExternalID]
	if c == nil {
		return fmt.Errorf("%w: end of no charge", errRecord)
	}
	c.state, c.failure = r.ChargeEnd.State, r.ChargeEnd.Failure
	c.decided(r.ChargeEnd.Attempt)
	b.announceCharge(r, c, nil)
	return nil
}

func (b *books) applyPayment(r *record) error {
	c := b.charges[r.Payment.ExternalID]
	if c == nil || b.byPayment[r.Payment.ID] != nil {
		return fmt.Errorf("%w: payment of no charge, or twice", errRecord)
	}
	p := &paid{paymentMade: *r.Payment, paidAt: r.At}
	c.payments = append(c.payments, p)
	if c.analysis != nil {
		c.state = processor.ChargeOpen
	}
	c.decided(r.Payment.Attempt)
	b.payments = append(b.payments, p)
	b.byPayment[p.ID] = p
	b.announceCharge(r, c, p)
	return nil
}

// decided ends what waited of a card's attempts.
func (c *charge) decided(attempt int) {
	c.attempt, c.challenge, c.analysis = max(c.attempt, attempt), nil, nil
}

// applyPause lets an attempt wait. In analysis it counts, and is announced.
func (b *books) applyPause(r *record, paused *cardPaused) error {
	c := b.charges[paused.ExternalID]
	if c == nil {
		return fmt.Errorf("%w: card for no charge", errRecord)
	}
	if r.Challenge != nil {
		c.challenge = paused
		return nil
	}
	c.analysis, c.analyzedAt, c.attempt = paused, r.At, paused.Attempt
	c.state, c.failure = processor.ChargeAnalysis, ""
	b.announceCharge(r, c, nil)
	return nil
}

func (b *books) applyDispute(r *record) error {
	c, p := b.charges[r.Dispute.ExternalID], b.byPayment[r.Dispute.PaymentID]
	if c == nil || p == nil {
		return fmt.Errorf("%w: dispute of no payment", errRecord)
	}
	b.announceCharge(r, c, nil)
	b.changes = append(b.changes, change{subject: processor.SubjectCharge, externalID: c.externalID, dispute: r.Dispute})
	for i, d := range p.disputes {
		if d.ID == r.Dispute.ID {
			p.disputes[i] = r.Dispute
			return nil
		}
	}
	p.disputes = append(p.disputes, r.Dispute)
	return nil
}

func (b *books) applyOrder(r *record) error {
	key := orderKey{r.Order.Kind, r.Order.ExternalID}
	if b.orders[key] != nil {
		return fmt.Errorf("%w: %s made twice", errRecord, r.Order.Kind)
	}
	o := &order{
		orderMade: *r.Order, state: processor.TransferProcessing,
		failure: r.Order.Refusal, createdAt: r.At, changedAt: r.At,
	}
	if o.Kind == processor.SubjectRefund {
		if p := b.byPayment[o.PaymentID]; p != nil {
			p.refunds = append(p.refunds, o)
		} else if o.Refusal == "" {
			return fmt.Errorf("%w: refund of no payment", errRecord)
		}
	}
	switch {
	case o.Refusal != "":
		o.state = processor.TransferFailed
	case o.Kind == processor.SubjectTransfer:
		b.transfers = append(b.transfers, o)
	}
	b.orders[key] = o
	delete(b.delayed, key)
	return nil
}

func (b *books) applyOrderEnd(r *record) error {
	o := b.orders[orderKey{r.OrderEnd.Kind, r.OrderEnd.ExternalID}]
	if o == nil {
		return fmt.Errorf("%w: end of no order", errRecord)
	}
	if r.OrderEnd.Returned > o.returned {
		b.changes = append(b.changes, change{subject: o.Kind, externalID: o.ExternalID, returned: r.OrderEnd.Returned})
	}
	o.state, o.returned, o.failure = r.OrderEnd.State, r.OrderEnd.Returned, r.OrderEnd.Failure
	o.changedAt = r.At
	b.announce(r, &notice{subject: o.Kind, externalID: o.ExternalID}, o.NotifyFault, &o.reordered)
	return nil
}

func (b *books) applyListener(l *listenerMoved) {
	for i := range b.listeners {
		if b.listeners[i].URL == l.URL {
			b.listeners[i].Expires = l.Expires
			return
		}
	}
	b.listeners = append(b.listeners, *l)
}

func (b *books) announceCharge(r *record, c *charge, p *paid) {
	n := &notice{subject: processor.SubjectCharge, externalID: c.externalID, payment: p}
	b.announce(r, n, c.notifyFault, &c.reordered)
}

// announce files the notice of r. Of an object whose notices are to come in
// another order, the first is held back.
func (b *books) announce(r *record, n *notice, fault Kind, reordered *bool) {
	if fault == NotifyReordered {
		if *reordered {
			fault = ""
		}
		*reordered = true
	}
	if r.Notice == "" || fault == NotifyNever {
		return
	}
	n.id, n.createdAt, n.fault = r.Notice, r.At, fault
	b.notices[n.id] = n
}

// stateAt is the charge's state at the bank's time: an unpaid charge expires
// by itself.
func (c *charge) stateAt(now time.Time) processor.ChargeState {
	if c.state == processor.ChargeOpen && len(c.payments) == 0 && !now.Before(c.terms.ExpiresAt) {
		return processor.ChargeExpired
	}
	return c.state
}

// refundable is what of the payment may still be refunded: neither refunded,
// nor on its way, nor lost in a dispute.
func (p *paid) refundable() money.Cents {
	left := p.Amount
	for _, o := range p.refunds {
		if o.state != processor.TransferFailed {
			left -= o.Amount
		}
	}
	for _, d := range p.disputes {
		if d.State == processor.DisputeOpen || d.State == processor.DisputeLost {
			left -= d.Amount
		}
	}
	return left
}

// lastDispute is the payment's latest dispute, or nil.
func (p *paid) lastDispute() *disputeMoved {
	if len(p.disputes) == 0 {
		return nil
	}
	return p.disputes[len(p.disputes)-1]
}

// sameTerms says whether two charges are the same one asked for twice. The
// merchant's name is no part of it: it may have been corrected in between.
func (t chargeTerms) sameTerms(other chargeTerms) bool {
	return t.Method == other.Method && t.Amount == other.Amount &&
		t.DueDate == other.DueDate && t.ExpiresAt.Equal(other.ExpiresAt)
}

// isPaymentMethod says whether the method exists.
func isPaymentMethod(m payment.Method) bool {
	return m == payment.PIX || m == payment.Boleto || m == payment.CreditCard
}
