package sandboxbank

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// ledger is the state that the journal describes. Only apply changes it, so that
// reading the journal again rebuilds the same ledger.
type ledger struct {
	offset    time.Duration
	charges   map[string]*charge
	payments  []*receipt       // in order of arrival
	changes   []bankapi.Change // disputes and returns, in their order
	byPayment map[string]*receipt
	disputed  map[string]*receipt // by the id of a dispute
	defenses  map[string]*defense // by the id of their dispute
	orders    map[orderKey]*order
	transfers []*order              // that were accepted, in order
	refunds   []bankapi.RefundEntry // that were paid, and those that failed afterwards, in their order
	delayed   map[orderKey]*orderDelayed
	notices   map[string]*notice // still to be delivered
	listeners []listenerAdded    // in order of their first registration
}

// orderKey identifies an order: transfers and refunds have separate name spaces.
type orderKey struct {
	subject    bankapi.Subject
	externalID string
	copy       int // 0, then one for each that was requested again under the id
}

// charge is a charge that the bank has seen.
type charge struct {
	externalID  string
	terms       bankapi.ChargeTerms
	state       bankapi.ChargeState
	failure     bankapi.Code
	payments    []*receipt
	attempt     int          // by card, the last that was decided or is in analysis
	challenge   *cardPending // an attempt that waits for its payer
	analysis    *cardPending // one that waits for the issuer
	analyzedAt  time.Time
	readyAt     time.Time // its registration takes until then
	notifyFault bankapi.FaultKind
	reordered   bool // its first notice was delayed
}

// receipt is a received payment.
type receipt struct {
	paymentReceived

	paidAt   time.Time
	disputes []*disputeChanged
	refunds  []*order
}

// defense is the answer to a dispute.
type defense struct {
	defenseReceived

	createdAt time.Time
}

// order is a transfer or refund that was accepted or refused.
type order struct {
	orderCreated

	state     bankapi.OrderState
	returned  money.Cents
	failure   bankapi.Code
	createdAt time.Time
	changedAt time.Time
	// approvedAt is when consent to the transfer came; zero without it.
	approvedAt time.Time
	reordered  bool
}

// notice is a notice that no gateway has accepted yet.
type notice struct {
	id         string
	subject    bankapi.Subject
	externalID string
	payment    *receipt // nil unless it announces one
	createdAt  time.Time
	fault      bankapi.FaultKind
}

func newLedger() *ledger {
	return &ledger{
		charges:   make(map[string]*charge),
		byPayment: make(map[string]*receipt),
		disputed:  make(map[string]*receipt),
		defenses:  make(map[string]*defense),
		orders:    make(map[orderKey]*order),
		delayed:   make(map[orderKey]*orderDelayed),
		notices:   make(map[string]*notice),
	}
}

// errRecord means that a record does not fit the ledger.
var errRecord = errors.New("record does not fit the ledger")

// apply makes the record's change, or returns errRecord.
func (l *ledger) apply(r *record) error {
	switch {
	case r.Charge != nil:
		return l.applyCharge(r)
	case r.ChargeEnd != nil:
		return l.applyChargeEnd(r)
	case r.Payment != nil:
		return l.applyPayment(r)
	case r.Dispute != nil:
		return l.applyDispute(r)
	case r.Defense != nil:
		if l.disputed[r.Defense.DisputeID] == nil {
			return fmt.Errorf("%w: defense of no dispute", errRecord)
		}
		l.defenses[r.Defense.DisputeID] = &defense{*r.Defense, r.At}
	case r.Challenge != nil:
		return l.applyPending(r, r.Challenge)
	case r.Analysis != nil:
		return l.applyPending(r, r.Analysis)
	case r.Order != nil:
		return l.applyOrder(r)
	case r.OrderEnd != nil:
		return l.applyOrderEnd(r)
	case r.Delayed != nil:
		l.delayed[r.Delayed.Order.key()] = r.Delayed
	case r.Approval != nil:
		return l.applyApproval(r)
	case r.Listener != nil:
		l.applyListener(r.Listener)
	case r.Offset != 0:
		l.offset = time.Duration(r.Offset) * time.Microsecond
	default:
		for _, id := range r.Closed {
			delete(l.notices, id)
		}
	}
	return nil
}

func (l *ledger) applyCharge(r *record) error {
	created := r.Charge
	if l.charges[created.ExternalID] != nil {
		return fmt.Errorf("%w: charge created twice", errRecord)
	}
	c := &charge{
		externalID: created.ExternalID, terms: created.Terms, state: bankapi.ChargeOpen,
		failure: created.Refusal, notifyFault: created.NotifyFault, readyAt: created.ReadyAt,
	}
	if created.Refusal != "" {
		c.state = bankapi.ChargeFailed
	}
	l.charges[created.ExternalID] = c
	return nil
}

func (l *ledger) applyChargeEnd(r *record) error {
	c := l.charges[r.ChargeEnd.ExternalID]
	if c == nil {
		return fmt.Errorf("%w: end of no charge", errRecord)
	}
	c.state, c.failure = r.ChargeEnd.State, r.ChargeEnd.Failure
	c.decided(r.ChargeEnd.Attempt)
	l.announceCharge(r, c, nil)
	return nil
}

func (l *ledger) applyPayment(r *record) error {
	c := l.charges[r.Payment.ExternalID]
	if c == nil || l.byPayment[r.Payment.ID] != nil {
		return fmt.Errorf("%w: payment of no charge, or twice", errRecord)
	}
	p := &receipt{paymentReceived: *r.Payment, paidAt: r.At}
	c.payments = append(c.payments, p)
	if c.analysis != nil {
		c.state = bankapi.ChargeOpen
	}
	c.decided(r.Payment.Attempt)
	l.payments = append(l.payments, p)
	l.byPayment[p.ID] = p
	l.announceCharge(r, c, p)
	return nil
}

// decided ends the pending attempts by card.
func (c *charge) decided(attempt int) {
	c.attempt, c.challenge, c.analysis = max(c.attempt, attempt), nil, nil
}

// applyPending makes an attempt wait. In analysis it counts, and is announced.
func (l *ledger) applyPending(r *record, pending *cardPending) error {
	c := l.charges[pending.ExternalID]
	if c == nil {
		return fmt.Errorf("%w: card for no charge", errRecord)
	}
	if r.Challenge != nil {
		c.challenge = pending
		return nil
	}
	c.analysis, c.analyzedAt, c.attempt = pending, r.At, pending.Attempt
	c.state, c.failure = bankapi.ChargeAnalysis, ""
	l.announceCharge(r, c, nil)
	return nil
}

func (l *ledger) applyDispute(r *record) error {
	c, p := l.charges[r.Dispute.ExternalID], l.byPayment[r.Dispute.PaymentID]
	if c == nil || p == nil {
		return fmt.Errorf("%w: dispute of no payment", errRecord)
	}
	l.announceCharge(r, c, nil)
	shown := r.Dispute.shown()
	l.changes = append(l.changes, bankapi.Change{Subject: bankapi.SubjectCharge, ExternalID: c.externalID, Dispute: &shown})
	for i, d := range p.disputes {
		if d.ID == r.Dispute.ID {
			p.disputes[i] = r.Dispute
			return nil
		}
	}
	p.disputes = append(p.disputes, r.Dispute)
	l.disputed[r.Dispute.ID] = p
	return nil
}

func (l *ledger) applyOrder(r *record) error {
	key := r.Order.key()
	if l.orders[key] != nil {
		return fmt.Errorf("%w: %s created twice", errRecord, key.subject)
	}
	o := &order{
		orderCreated: *r.Order, state: bankapi.OrderProcessing,
		failure: r.Order.Refusal, createdAt: r.At, changedAt: r.At,
	}
	if o.Subject == bankapi.SubjectRefund {
		if p := l.byPayment[o.PaymentID]; p != nil {
			p.refunds = append(p.refunds, o)
		} else if o.Refusal == "" {
			return fmt.Errorf("%w: refund of no payment", errRecord)
		}
	}
	switch {
	case o.Refusal != "":
		o.state = bankapi.OrderFailed
	case o.Subject == bankapi.SubjectTransfer:
		l.transfers = append(l.transfers, o)
	}
	l.orders[key] = o
	delete(l.delayed, key)
	return nil
}

func (l *ledger) applyOrderEnd(r *record) error {
	o := l.orders[r.OrderEnd.key()]
	if o == nil {
		return fmt.Errorf("%w: end of no order", errRecord)
	}
	if r.OrderEnd.Returned > o.returned {
		l.changes = append(l.changes, bankapi.Change{Subject: o.Subject, ExternalID: o.ExternalID, Returned: r.OrderEnd.Returned})
	}
	if paid := bankapi.OrderPaid; o.Subject == bankapi.SubjectRefund && (r.OrderEnd.State == paid) != (o.state == paid) {
		l.refunds = append(l.refunds, bankapi.RefundEntry{
			ExternalID: o.ExternalID, PaymentID: o.PaymentID, EndToEndID: o.EndToEndID, State: r.OrderEnd.State, Amount: o.Amount,
			Failure: r.OrderEnd.Failure.Failure(),
		})
	}
	o.state, o.returned, o.failure = r.OrderEnd.State, r.OrderEnd.Returned, r.OrderEnd.Failure
	o.changedAt = r.At
	l.announce(r, &notice{subject: o.Subject, externalID: o.ExternalID}, o.NotifyFault, &o.reordered)
	return nil
}

func (l *ledger) applyApproval(r *record) error {
	o := l.orders[r.Approval.key()]
	if o == nil || o.state != bankapi.OrderProcessing || !o.approvedAt.IsZero() {
		return fmt.Errorf("%w: consent to no transfer, or twice", errRecord)
	}
	o.approvedAt = r.At
	return nil
}

func (l *ledger) applyListener(added *listenerAdded) {
	for i := range l.listeners {
		if l.listeners[i].URL == added.URL {
			l.listeners[i].Expires = added.Expires
			return
		}
	}
	l.listeners = append(l.listeners, *added)
}

func (l *ledger) announceCharge(r *record, c *charge, p *receipt) {
	n := &notice{subject: bankapi.SubjectCharge, externalID: c.externalID, payment: p}
	l.announce(r, n, c.notifyFault, &c.reordered)
}

// announce adds the record's notice. The first notice of an object with the
// fault NotifyReordered keeps the fault, which delays it.
func (l *ledger) announce(r *record, n *notice, fault bankapi.FaultKind, reordered *bool) {
	if fault == bankapi.NotifyReordered {
		if *reordered {
			fault = ""
		}
		*reordered = true
	}
	if r.Notice == "" || fault == bankapi.NotifyNever {
		return
	}
	n.id, n.createdAt, n.fault = r.Notice, r.At, fault
	l.notices[n.id] = n
}

// stateAt is the charge's state at the bank's time: an unpaid charge expires by
// itself.
func (c *charge) stateAt(now time.Time) bankapi.ChargeState {
	if c.state == bankapi.ChargeOpen && len(c.payments) == 0 && !now.Before(c.terms.ExpiresAt) {
		return bankapi.ChargeExpired
	}
	if c.state == bankapi.ChargeOpen && now.Before(c.readyAt) {
		return bankapi.ChargeRegistering
	}
	return c.state
}

// refundable is the amount of the payment that is neither refunded, nor being
// refunded, nor disputed, nor lost in a dispute.
func (p *receipt) refundable() money.Cents {
	left := p.Amount
	for _, o := range p.refunds {
		if o.state != bankapi.OrderFailed {
			left -= o.Amount
		}
	}
	for _, d := range p.disputes {
		if d.State == bankapi.DisputeOpen {
			left -= d.Amount
		}
		left -= d.taken()
	}
	return left
}

// lastDispute is the payment's latest dispute in a state, or nil.
func (p *receipt) lastDispute(state bankapi.DisputeState) *disputeChanged {
	for _, d := range slices.Backward(p.disputes) {
		if d.State == state {
			return d
		}
	}
	return nil
}
