package payment

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/money"
)

// RefundOrigin says who requested a refund.
type RefundOrigin string

// The origins of refunds.
const (
	RefundByMerchant  RefundOrigin = "merchant"  // by the API
	RefundByProcessor RefundOrigin = "processor" // at the processor's own panel
	// RefundByCase gives unapplied money back to its payer: an operator decided it.
	RefundByCase RefundOrigin = "case"
)

// Refund gives a pay-in's money, or a part of it, back to the payer. Times as in Payin.
type Refund struct {
	Merchant    ID
	ID          ID
	Payin       ID
	ExternalID  string
	ReferenceID string // "" if it was not requested by the API
	Origin      RefundOrigin
	Amount      money.Cents
	Status      RefundStatus
	Version     int64
	Reason      string
	WebhookURL  string // of the pay-in

	WebhookDisabled bool // as in Payin

	RefundedAmount money.Cents // what has reached the payer
	EndToEndID     string      // of the return, if it has one
	Failure        *Failure

	CompletedAt time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// RefundPartOutcome is how the last call about a part of a refund ended, and how the part
// itself ended.
type RefundPartOutcome string

// The outcomes of a part that has ended. Others are those of calls.
const (
	PartPaid      RefundPartOutcome = "paid"
	PartFailed    RefundPartOutcome = "failed" // or refused
	PartTakenBack RefundPartOutcome = "taken_back"
)

// RefundPart is the part of a refund that gives one received payment back: one order at the
// processor, with one external id for life.
type RefundPart struct {
	Merchant   ID
	Refund     ID
	Number     int64 // from 1
	Payin      ID
	Receipt    ID
	Processor  string
	PaymentID  string // the processor's id of the payment
	ExternalID string
	Amount     money.Cents
	// Where its money comes from: Unapplied of it is money that exceeded the order and was not
	// applied to anything since; Took is what had not settled of the order. The rest is of
	// available money.
	Unapplied money.Cents
	Took      Takes
	// Surplus: the rest is not of what was paid for the order either, so the pay-in does not show it.
	Surplus bool
	// FeeRefunded is the part of the order's fee that was given back with it.
	FeeRefunded money.Cents

	ProcessorID string
	EndToEndID  string
	Outcome     RefundPartOutcome // "" until a call has ended
	Evidence    string

	effect.Effect // its Result is the outcome

	ClaimedBy ID
	History   int64 // of the database, in which it was last decided; 0: in none after a cold start
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Ended reports whether the part was paid, or definitively not.
func (p *RefundPart) Ended() bool { return !p.Live() }

// InUse is how much of its payment the part has given back, or may still give back.
func (p *RefundPart) InUse() money.Cents {
	if p.Outcome == PartFailed || p.Outcome == PartTakenBack {
		return 0
	}
	return p.Amount
}

// OfOrder is InUse of what was applied to the order.
func (p *RefundPart) OfOrder() money.Cents {
	if p.InUse() == 0 {
		return 0
	}
	return p.Amount - p.Unapplied
}

// RefundSource is a received payment that can be given back.
type RefundSource struct {
	Receipt Receipt
	Applied money.Cents // of the order's amount, not given back
	Surplus money.Cents // what exceeded the order, not given back
}

// Left is what is left of the payment.
func (s *RefundSource) Left() money.Cents { return s.Applied + s.Surplus }

// RefundSources lists what is left of the payments of a pay-in, of which parts were given
// back, oldest first. A part of the order that is more than was applied to it of its payment
// is of surplus that was applied later.
func RefundSources(receipts []Receipt, parts []RefundPart) []RefundSource {
	list := make([]RefundSource, 0, len(receipts))
	for i := range receipts {
		s := RefundSource{Receipt: receipts[i], Applied: receipts[i].Applied, Surplus: receipts[i].Amount - receipts[i].Applied}
		for j := range parts {
			if parts[j].Receipt == receipts[i].ID {
				s.Applied -= parts[j].OfOrder()
				s.Surplus -= parts[j].InUse() - parts[j].OfOrder()
			}
		}
		s.Surplus = max(s.Surplus+min(s.Applied, 0), 0)
		s.Applied = max(s.Applied, 0)
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b RefundSource) int {
		if c := a.Receipt.PaidAt.Compare(b.Receipt.PaidAt); c != 0 {
			return c
		}
		return CompareIDs(a.Receipt.ID, b.Receipt.ID)
	})
	return list
}

// RefundSlice is an amount that is taken from one payment.
type RefundSlice struct {
	Receipt Receipt
	Amount  money.Cents
}

// SplitRefund divides an amount of an order among its payments: one payment if one suffices,
// else the oldest first; what exceeded the order comes last, without what is still unapplied
// of it. ok is false if they do not reach.
func SplitRefund(amount money.Cents, list []RefundSource, unapplied money.Cents) (slicesOf []RefundSlice, ok bool) {
	surplus := -unapplied // that was applied to the order later
	for i := range list {
		surplus += list[i].Surplus
	}
	return split(amount, list, func(s *RefundSource) money.Cents { return s.Applied }, max(surplus, 0))
}

// SplitUnapplied divides unapplied money of an order among the payments that exceeded it, as
// SplitRefund does.
func SplitUnapplied(amount money.Cents, list []RefundSource) (slicesOf []RefundSlice, ok bool) {
	return split(amount, list, func(s *RefundSource) money.Cents { return s.Surplus }, 0)
}

// split takes an amount of payments, and then up to surplus cents of what exceeded the order.
func split(amount money.Cents, list []RefundSource, of func(*RefundSource) money.Cents, surplus money.Cents) (slicesOf []RefundSlice, ok bool) {
	for i := range list {
		if of(&list[i]) >= amount {
			return []RefundSlice{{list[i].Receipt, amount}}, true
		}
	}
	took := make([]money.Cents, len(list))
	for i := range list {
		took[i] = min(amount, of(&list[i]))
		amount -= took[i]
	}
	for i := range list {
		n := min(amount, surplus, list[i].Left()-took[i])
		took[i] += n
		amount, surplus = amount-n, surplus-n
	}
	for i := range list {
		if took[i] > 0 {
			slicesOf = append(slicesOf, RefundSlice{list[i].Receipt, took[i]})
		}
	}
	return slicesOf, amount == 0
}

// RefundLeft is how much of a pay-in can still be refunded: what was paid, less the parts of refunds
// that are paid or in flight, and less what its disputes have. Disputes have first what exceeded the
// order, but for what a refund takes of that now, which the parts do not have yet.
func RefundLeft(p *Payin, receipts []Receipt, parts []RefundPart, taken money.Cents) money.Cents {
	left, surplus := p.PaidAmount, -p.PaidAmount-taken
	for i := range receipts {
		surplus += receipts[i].Amount
	}
	for i := range parts {
		ofOrder := parts[i].OfOrder()
		if parts[i].Surplus {
			ofOrder = 0
		}
		left -= ofOrder
		surplus -= parts[i].InUse() - ofOrder
	}
	return max(left-max(p.DisputedAmount-max(surplus, 0), 0), 0)
}

// SurplusLeft is how much of what exceeded a pay-in can still be given back: of what was received, what
// refunds have not given back, and disputes do not have.
func SurplusLeft(p *Payin, receipts []Receipt, parts []RefundPart) money.Cents {
	left := -p.DisputedAmount
	for i := range receipts {
		left += receipts[i].Amount
	}
	for i := range parts {
		given := parts[i].InUse()
		if parts[i].Surplus {
			given -= parts[i].OfOrder()
		}
		left -= given
	}
	return max(left, 0)
}

// PartEnd is how a part of a refund ended, now.
type PartEnd int

// The ends of a part of a refund. It may be taken back after it was paid.
const (
	EndPaid PartEnd = iota
	EndFailed
	EndTakenBack
)

// RefundTrigger picks the trigger of a refund, one of whose parts ends: the others decide
// whether the status changes.
func RefundTrigger(status RefundStatus, others []RefundPart, end PartEnd) Trigger {
	open, failed := false, false
	for i := range others {
		open = open || !others[i].Ended()
		failed = failed || others[i].Ended() && others[i].Outcome != PartPaid
	}
	inFlight := open && status == RefundProcessing
	switch {
	case end == EndTakenBack && inFlight:
		return OnTakeBackPart
	case end == EndTakenBack:
		return OnTakeBack
	case end == EndFailed && inFlight:
		return OnFailPart
	case end == EndFailed:
		return OnFail
	case inFlight:
		return OnCompletePart
	case open || failed:
		return OnCompleteFailed
	default:
		return OnComplete
	}
}

// PayinRefundTrigger picks the trigger of a pay-in whose refunded amount has become refunded;
// before is what it was.
func PayinRefundTrigger(p *Payin, before money.Cents) Trigger {
	switch {
	case p.RefundedAmount < before && (p.RefundedAmount == 0 || p.PaidInFull() && p.refundedOfFull() == 0):
		return OnRefundUndone
	case p.RefundedAmount < before:
		return OnRefundUndonePart
	case p.RefundedAmount >= p.PaidAmount:
		return OnRefundAll
	default:
		return OnRefundPart
	}
}
