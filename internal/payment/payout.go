package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// Approval is whether a payout needs, or had, an operator's approval.
type Approval string

// The approvals.
const (
	ApprovalNone     Approval = "none"
	ApprovalRequired Approval = "required"
	ApprovalApproved Approval = "approved"
	ApprovalRejected Approval = "rejected"
)

// Counters are the counters of limits that a payout was added to, as bits.
type Counters int64

// The counters.
const (
	CounterDay    Counters = 1 << iota // of the merchant's payouts of a day
	CounterNight                       // and of a night
	CounterKeyDay                      // of its payouts to one Pix key of a day
	CounterKey                         // and of all days
)

// EachCounter lists every counter.
var EachCounter = []Counters{CounterDay, CounterNight, CounterKeyDay, CounterKey}

// ByKey are the counters of payouts to one Pix key.
const ByKey = CounterKeyDay | CounterKey

// Beneficiary is the recipient of a payout: personal data, which the store seals
// as one JSON document.
type Beneficiary struct {
	Name      string
	Document  string
	PIXKey    string // as the merchant sent it
	NormalKey string // as sent to a processor; absent if the two are equal
}

// Key is the Pix key in the form that is sent to a processor.
func (b Beneficiary) Key() string {
	if b.NormalKey != "" {
		return b.NormalKey
	}
	return b.PIXKey
}

// Payout is an order to send a Pix. Times as in Payin.
type Payout struct {
	Merchant    ID
	ID          ID
	ExternalID  string
	ReferenceID string
	Amount      money.Cents
	Fee         money.Cents
	Status      PayoutStatus
	Step        PayoutStep
	Version     int64
	Processor   string
	ProcessorID string
	PIXKeyType  string
	WebhookURL  string
	Approval    Approval
	Beneficiary Beneficiary

	WebhookDisabled bool // as in Payin

	Batch     ID // zero if it was requested alone
	Counters  Counters
	CountedAt time.Time // when it was approved, if limits count it in another day or night since
	KeyHash   ID        // 16 bytes of a keyed hash of the Pix key; zero if no counter is by key

	ReturnedAmount money.Cents
	EndToEndID     string
	Failure        *Failure

	// State of the executor, which merchants do not see.
	Lookups   int       // look-ups since it was last sent
	NextAt    time.Time // when it is next due
	ClaimedBy ID        // the node that has claimed it

	SentAt      time.Time // when bytes may first have left
	CompletedAt time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// CountedBy is the time whose day and night limits count the payout in.
func (p *Payout) CountedBy() time.Time {
	if !p.CountedAt.IsZero() {
		return p.CountedAt
	}
	return p.CreatedAt
}

// approvalTime is how long after its creation a payout can be approved.
const approvalTime = 72 * time.Hour

// ApprovalEnds is when a payout that needs approval is canceled if nobody has decided.
func ApprovalEnds(p *Payout) time.Time { return p.CreatedAt.Add(approvalTime) }

// Approvals are how many approvals a payout has, and how many it needs. Expired: they did not come
// in time.
type Approvals struct {
	Given, Needed int64
	Expired       bool
}

// Missing are the approvals of a payout that was read before them and waits: it lacks one at least.
func (a Approvals) Missing() Approvals {
	a.Given = max(0, min(a.Given, a.Needed-1))
	return a
}

// Waits reports whether a payout waits for approval.
func (p *Payout) Waits() bool {
	return p.Status == PayoutPending && p.Approval == ApprovalRequired
}

// Undecided reports whether a payout waits for approval, or has ended without it.
func (p *Payout) Undecided() bool {
	return p.Waits() || p.Status == PayoutCanceled && p.Approval == ApprovalRequired
}

// ShownApproval is the approval of a payout as it is shown. A transfer that its processor has was
// sent, so it was approved, by a decision that the database lost in a restore.
func (p *Payout) ShownApproval() Approval {
	sent := p.Status == PayoutCompleted || p.Status == PayoutReturned || p.Status == PayoutProcessing && p.Step == StepAccepted
	if sent && p.Approval == ApprovalRequired {
		return ApprovalApproved
	}
	return p.Approval
}

// Unapproved reports whether a payout needs approval and does not have it: it must not be
// sent.
func (p *Payout) Unapproved() bool {
	return p.Approval == ApprovalRequired || p.Approval == ApprovalRejected
}
