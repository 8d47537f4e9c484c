package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// DisputeKind is how a payer disputes a payment.
type DisputeKind string

// The kinds of disputes.
const (
	KindChargeback DisputeKind = "CHARGEBACK" // of a card
	KindMED        DisputeKind = "MED"        // the special return of a Pix
)

// DisputeKinds lists every kind of disputes.
var DisputeKinds = []DisputeKind{KindChargeback, KindMED}

// DisputeKindOf is the kind of a dispute of a method, if its processor names none.
func DisputeKindOf(m Method) DisputeKind {
	if m == PIX {
		return KindMED
	}
	return KindChargeback
}

// Dispute is a payer's dispute of a pay-in, or of one of its payments, as its processor
// reports it. Times as in Payin.
type Dispute struct {
	Merchant   ID
	ID         ID
	Payin      ID
	Processor  string
	ExternalID string // the processor's id
	PaymentID  string // the processor's id of the payment; "" if it names none
	ReturnID   string // the processor's id of the return that it led to; "" if it led to none
	Kind       DisputeKind
	Reason     string      // the processor's; may be ""
	Amount     money.Cents // what is disputed
	// Taken is what was set aside of it: less than Amount if no more was left of the order.
	// Took is the part of it that had not settled, and Returned what came back of it while
	// the rest was lost.
	Taken    money.Cents
	Took     Takes
	Returned money.Cents
	Lost     money.Cents // what the payer's bank took, if it was lost
	Status   DisputeStatus
	Version  int64
	// Blocked: the processor keeps the payment's money back, and there is no dispute of it yet.
	Blocked bool
	// Accepted: the merchant gave up. A dispute that is won nevertheless is reversed.
	Accepted bool

	RespondBy   time.Time // until when it can be defended; zero if the processor names no time
	SubmittedAt time.Time // when it was defended
	ClosedAt    time.Time
	RemindAt    time.Time // of the next case: about its deadline, or because it is not decided
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Defense is a merchant's answer to a dispute.
type Defense struct {
	Text  string
	Files []DefenseFile
}

// DefenseFile is a document of a defense.
type DefenseFile struct {
	Name string
	Type string // media type, by its content
	Size int    // bytes
}

// AnswerAction is what an answer to a dispute does.
type AnswerAction string

// The answers.
const (
	AnswerDefend AnswerAction = "defend"
	AnswerAccept AnswerAction = "accept" // the merchant gives up
)

// DisputeAnswer is a merchant's answer to a dispute, on its way to the processor. Its steps are
// those of a payout: queued, intent, unknown, review and done.
type DisputeAnswer struct {
	Merchant   ID
	Dispute    ID
	Number     int64 // from 1
	Payin      ID
	Processor  string
	ExternalID string // the processor's id of the dispute
	Action     AnswerAction

	Step        PayoutStep
	Outcome     string // how the last call ended; "" until one has
	Evidence    string
	MayExist    bool // an earlier send may have arrived
	Sends       int
	Lookups     int // since it was last sent
	NextAt      time.Time
	ClaimedBy   ID
	FirstSentAt time.Time // the first send that may have arrived
	SentAt      time.Time // the last one
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Live reports whether the dispute is not decided.
func (d *Dispute) Live() bool { return d.Status == DisputeOpen || d.Status == DisputeSubmitted }

// InUse is what the dispute has of the order's money: set aside, or charged back.
func (d *Dispute) InUse() money.Cents {
	if d.Live() || d.Status == DisputeLost {
		return d.Taken - d.Returned
	}
	return 0
}

// Missing is what is disputed, or charged back, and was not taken.
func (d *Dispute) Missing() money.Cents {
	switch {
	case d.Live():
		return max(d.Amount-d.InUse(), 0)
	case d.Status == DisputeLost:
		return max(d.Lost-d.InUse(), 0)
	default:
		return 0
	}
}
