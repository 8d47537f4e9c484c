// Package processor defines what a payment processor can do for the gateway:
// capability interfaces, outcomes (done, refused, not sent, later, known, unknown), accounts,
// routing.
//
// A processor's package is a stateless translation: request out, answer in. It
// makes no decisions, stores nothing and never repeats a call. Anything unproved
// is Unknown.
package processor

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Outcome classifies how a call ended. The zero value is Unknown, so that a
// forgotten assignment cannot cause a second transfer or a lost hold.
type Outcome int

// The outcomes.
const (
	// Unknown: bytes may have left, and nothing proves their effect (timeout, reset,
	// 5xx, unreadable answer, 401 after sending). The effect is looked up, never
	// repeated blindly.
	Unknown Outcome = iota
	// Done: the processor proved that it accepted the request.
	Done
	// Refused: the processor proved that the request has and will have no effect.
	Refused
	// NotSent: no byte of the request can have reached the processor (dial
	// refused, DNS failure, our own guard). Sending again is safe.
	NotSent
	// Later: the processor proved that the request has no effect, and that the cause is
	// not in it: too many requests, no balance at the processor, maintenance. Sending
	// again after a wait is safe.
	Later
	// Known: the processor already has a request under our id. This one has no effect;
	// what the earlier one did is looked up.
	Known
)

// String names the outcome as in logs and the database.
func (o Outcome) String() string {
	switch o {
	case Done:
		return "done"
	case Refused:
		return "refused"
	case NotSent:
		return "not_sent"
	case Later:
		return "later"
	case Known:
		return "known"
	default:
		return "unknown"
	}
}

// ErrCredentials is the cause of a call that a processor refused because of the account's
// credentials, or of the token that they got.
var ErrCredentials = errors.New("the processor refuses the account's credentials")

// ErrBudget is the cause of a call that is Later because the account's own budget of
// requests is used up: the processor has not been called.
var ErrBudget = errors.New("the account's budget of requests is used up")

// Lookup is the result of looking up one of our ids. The zero value is
// LookupUnknown.
type Lookup int

// The results of a look-up.
const (
	LookupUnknown Lookup = iota // no answer
	Found
	NotFound
)

// Profile is what a processor guarantees, so that no other package depends on its
// name.
type Profile struct {
	Name    string
	Methods []payment.Method
	// ChecksDocuments: CPF, CNPJ and Pix keys must carry right check digits.
	ChecksDocuments bool
	CodeHosts       []string // in the URLs of the processor's dynamic BR Codes; empty: any
	CodeKey         string   // the receiver's Pix key; without it there are no static BR Codes
	// OwnTxIDs: the processor chooses the txids of its dynamic codes, which name an order by
	// their URL only.
	OwnTxIDs bool
	// NoticeIDsRepeat: notices about one subject have one id, so that a later one is not
	// another copy of the first.
	NoticeIDsRepeat bool
	// CancelsCharges are the methods whose charges can be canceled, by [ChargeCanceler].
	CancelsCharges []payment.Method
	// RefundWindows are the methods whose payments can be given back by [Refunder], and for
	// how long after the payment; 0 is forever.
	RefundWindows map[payment.Method]time.Duration
	// What the processor guarantees for each kind of effect.
	Transfer, Charge, Refund, Defense Effect
}

// Repeat is the result of a request that is sent again under the same id.
type Repeat int

// The results of a repeated request. The zero value is RepeatUnsafe.
const (
	RepeatUnsafe       Repeat = iota // a second effect: it is never sent again by rule
	RepeatReturnsFirst               // the answer to the first, without a second effect
	RepeatRejected                   // an error, without a second effect; its outcome is Known
)

// Safe reports whether a repeated request has no second effect.
func (r Repeat) Safe() bool { return r != RepeatUnsafe }

// Effect is what a processor guarantees for one kind of effect.
type Effect struct {
	Repeat Repeat
	// Life is how long after the first request the processor recognises its id; 0 is
	// forever. Later the request is not repeated by rule.
	Life time.Duration
	// QuietPeriod is how long after sending a "not found" proves nothing, as the
	// request may still be in one of the processor's queues.
	QuietPeriod time.Duration
	// Confirm: after the quiet period "not found" about a request that may have arrived counts
	// only twice, at least this far apart; 0: once. A charge is then requested again although a
	// repeat is unsafe: a second one moves no money by itself.
	Confirm time.Duration
	// LookUpFirst: our id is looked up before the first request.
	LookUpFirst bool
	// LookBack is how long after the first request a look-up finds it; 0 is forever.
	// Later a "not found" proves nothing.
	LookBack time.Duration
	// Consent: the processor, an [Authorizer], asks before it executes a transfer. Consent is
	// given to one transfer per id. So it is sent again by rule although a repeat is unsafe,
	// if the account is proved to ask.
	Consent bool
	// Timeout bounds one call.
	Timeout time.Duration
	// Slots bounds the calls in flight at the account by each process; 0 is the gateway's default.
	Slots int
	// Serial: of all processes together only one transfer is in flight at the account.
	Serial bool
}

// Repeatable reports whether a request that was first sent at first may be repeated at
// now.
func (e Effect) Repeatable(first, now time.Time) bool {
	return e.Repeat.Safe() && (e.Life == 0 || now.Before(first.Add(e.Life)))
}

// Visible reports whether a look-up at now would find a request first sent at first.
func (e Effect) Visible(first, now time.Time) bool {
	return e.LookBack == 0 || now.Before(first.Add(e.LookBack))
}

// Processor is implemented by every processor; the capabilities below are
// optional.
type Processor interface {
	Profile() Profile
}

// ChargeRequest requests a charge for a pay-in.
type ChargeRequest struct {
	ExternalID   string // ours; the processor's idempotent id
	Method       payment.Method
	Amount       money.Cents
	ExpiresAt    time.Time // UTC
	DueDate      string    // BOLETO: YYYY-MM-DD
	Installments int       // CREDIT_CARD: the most that the payer may choose
	Description  string
	MerchantName string
	MerchantCity string
	Personal     payment.PersonalData
}

// Charge is what the payer needs to pay.
type Charge struct {
	ProcessorID string
	Amount      money.Cents        // that the processor names; 0: none
	PIXKey      string             // of the receiver, that the processor names; "": none
	PIX         *payment.PIXDetail // without ExpiresAt, it is the order's
	Boleto      *payment.BoletoDetail
	Card        *payment.CardDetail
}

// ChargeAnswer is how a Charge call ended; Charge is set if it is Done, Failure
// if it is Refused; Wait, if the processor named one, if it is Later.
type ChargeAnswer struct {
	Outcome Outcome
	// Registering: the outcome is Done, and the processor is still registering the charge,
	// which [Charger.QueryCharge] reports later.
	Registering bool
	Wait        time.Duration
	Charge      Charge
	Failure     *payment.Failure
	Cause       error // for the operator's log only
}

// Charger creates charges. The same ExternalID again must return the same charge.
type Charger interface {
	// guard is called right before the first byte leaves; if it fails nothing is sent and the
	// outcome is NotSent.
	Charge(ctx context.Context, r ChargeRequest, guard func() error) ChargeAnswer
	// QueryCharge looks up a charge. A static BR Code has only the first 25
	// characters of externalID.
	QueryCharge(ctx context.Context, externalID string) ChargeReport
}

// ChargeCanceler cancels charges, so that they can no longer be paid. Its calls may be
// repeated.
type ChargeCanceler interface {
	CancelCharge(ctx context.Context, r CancelRequest, guard func() error) CancelAnswer
}

// CancelRequest names a charge to be canceled.
type CancelRequest struct {
	ExternalID  string // ours
	ProcessorID string // "" if it is not known
	Method      payment.Method
}

// CancelAnswer is how a CancelCharge call ended: Done if the charge can no longer be paid,
// Refused if it was paid already. NotFound means that the processor has no such charge; the
// outcome does not count then.
type CancelAnswer struct {
	Outcome  Outcome
	NotFound bool
	Wait     time.Duration // that the processor named, if it is Later
	Cause    error
}

// OfflineCharger generates charges offline: creation is then one local commit. ok is
// false if this charge needs a call. A charge fits its order: nothing compares it.
type OfflineCharger interface {
	NewCharge(r ChargeRequest) (c Charge, ok bool)
}

// ChargeState is the state of a charge at the processor.
type ChargeState string

// The states of a charge. Payments are reported separately.
const (
	ChargeRegistering ChargeState = "registering" // it cannot be paid yet; Charge is empty
	ChargeOpen        ChargeState = "open"
	ChargeAnalysis    ChargeState = "analysis" // card or bill received, not cleared
	ChargeExpired     ChargeState = "expired"
	ChargeCanceled    ChargeState = "canceled" // by our request
	ChargeFailed      ChargeState = "failed"
)

// ChargeReport is a processor's report about a charge.
type ChargeReport struct {
	Lookup   Lookup
	State    ChargeState
	Charge   Charge
	Payments []Payment
	Disputes []Dispute
	Failure  *payment.Failure // of the charge, or of the last refused attempt
	Attempt  int              // the number of that attempt, from 1; 0 if the processor does not count
	// Incomplete is why Disputes may lack some; nil if it has all. The rest is complete.
	Incomplete error
	Cause      error
}

// TestCard is a published test card number. It belongs to nobody and cannot pay.
type TestCard struct {
	Number string // digits
	Brand  string // visa, mastercard, elo, amex, hipercard
	// Result is the result of paying with it: approved, challenge (approved once the
	// payer has confirmed), analysis_approved, analysis_refused, or the code of a
	// failure.
	Result string
	// SplitResult is the result of paying in instalments; "" means Result.
	SplitResult string
}

// TestCardPayment is a payment with a test card. It has no card number: a number
// never leaves the page on which it was typed.
type TestCardPayment struct {
	Result string // of the test card
	Card   payment.CardDetail
}

// TestCardRequest is one attempt to pay with a test card.
type TestCardRequest struct {
	Charge  ChargeRequest
	Attempt int // from 1
	Payment TestCardPayment
}

// TestCardAnswer is how an attempt ended: Done if the processor has decided it
// or, with Challenge, waits for the payer's confirmation. QueryCharge reports the
// decision.
type TestCardAnswer struct {
	Outcome   Outcome
	Challenge bool
	Cause     error
}

// TestCardTaker accepts test cards on the gateway's own page. Only sandboxes
// implement it: a real processor accepts cards on its own page
// (CardDetail.HostedURL). A repeated attempt has no second effect.
type TestCardTaker interface {
	// TestCards lists the only numbers that the page accepts. The caller must not
	// change the list.
	TestCards() []TestCard
	PayByTestCard(ctx context.Context, r TestCardRequest) TestCardAnswer
	ConfirmTestCard(ctx context.Context, externalID string, attempt int, approve bool) TestCardAnswer
}

// Payment is money received, independent of the charge's state.
type Payment struct {
	ID         string // unique at the processor: endToEndId for Pix
	ExternalID string // the order that it names; may be unknown to us
	EndToEndID string
	Amount     money.Cents
	PaidAt     time.Time
	Card       *payment.CardDetail // Installments is 0 if the list that has the payment does not show them
	// Cost is what the processor charges for the payment; it may be more than the amount. It is
	// booked with the payment; a cost that is reported later is not.
	Cost money.Cents
}

// DisputeState is the state of a dispute.
type DisputeState string

// The states of a dispute.
const (
	DisputeOpen     DisputeState = "open"
	DisputeWon      DisputeState = "won"
	DisputeLost     DisputeState = "lost"
	DisputeReversed DisputeState = "reversed" // lost, then returned
)

// Dispute is a payer's dispute of a payment.
type Dispute struct {
	ID        string
	PaymentID string              // of the payment, as in [Payment]; "" if the processor does not name it
	Kind      payment.DisputeKind // "" if the processor does not say
	Reason    string              // the processor's; may be ""
	Amount    money.Cents
	State     DisputeState
	RespondBy time.Time // until when it can be defended; zero if the processor names no time
	// Blocked: the processor keeps the payment's money back, and there is no dispute of it yet.
	// It is open; if the money is released, it is won.
	Blocked bool
	// Lost is what the payer's bank took of a dispute that was lost, perhaps more than Amount; 0 is all of it.
	Lost     money.Cents
	ReturnID string // of the return that it led to: ID, if the processor shows only that; "" if it led to none
	// Current: the processor shows only the present dispute of a payment, under an ID that all
	// disputes of the payment share. One that is open, or lost, after the last one ended in the
	// merchant's favor is another one.
	Current bool
}

// TransferRequest requests a Pix to any key.
type TransferRequest struct {
	ExternalID  string // ours, one for the payout's life
	Amount      money.Cents
	KeyType     string
	Key         string // normal form
	Name        string
	Document    string
	Description string
}

// TransferState is the state of a transfer.
type TransferState string

// The states of a transfer.
const (
	TransferProcessing TransferState = "processing"
	TransferPaid       TransferState = "paid"
	TransferFailed     TransferState = "failed"
)

// TransferReport is a processor's report about a transfer.
type TransferReport struct {
	Lookup      Lookup
	State       TransferState
	ProcessorID string
	PaymentID   string // of a refund; "" if the processor does not say it
	EndToEndID  string
	Amount      money.Cents
	Returned    money.Cents // sent back by the receiver's bank
	Person      bool        // it is processing, and a person must confirm it at the processor
	Failure     *payment.Failure
	Evidence    string // the processor's answer that proves it, without personal data
	Cause       error
}

// TransferAnswer is how a Transfer call ended. Report is set if it is Done;
// Failure and Evidence if it is Refused; Wait, if the processor named one, if it is
// Later.
type TransferAnswer struct {
	Outcome  Outcome
	Wait     time.Duration
	Person   bool // it is Later until a person changes a setting at the processor
	Report   TransferReport
	Failure  *payment.Failure
	Evidence string
	Cause    error
}

// Transferrer sends money.
type Transferrer interface {
	// Transfer sends once. guard is called right before the first byte leaves; if it
	// fails nothing is sent and the outcome is NotSent.
	Transfer(ctx context.Context, r TransferRequest, guard func() error) TransferAnswer
	// QueryTransfer looks up our id.
	QueryTransfer(ctx context.Context, externalID string) TransferReport
}

// RefundRequest requests a refund to the payer.
type RefundRequest struct {
	ExternalID string // ours
	PaymentID  string // the processor's id of the payment
	Amount     money.Cents
}

// Refunder gives payments back to their payers. A report of a refund is that of a transfer;
// its EndToEndID is the return's own, if it has one. A refund that was paid may fail later.
type Refunder interface {
	// Refund sends once, as Transfer does.
	Refund(ctx context.Context, r RefundRequest, guard func() error) TransferAnswer
	// QueryRefund looks up our id, among the refunds of a payment.
	QueryRefund(ctx context.Context, paymentID, externalID string) TransferReport
}

// DefenseRequest answers a dispute.
type DefenseRequest struct {
	DisputeID string // the processor's
	Accept    bool   // the merchant gives up: no text, and no files
	Text      string
	Files     []DefenseFile
}

// DefenseFile is a document of a defense.
type DefenseFile struct {
	Name    string
	Type    string // application/pdf, image/png or image/jpeg
	Content []byte
}

// Defender takes answers to disputes. A dispute has one answer; its outcome is in the reports
// of its charge.
type Defender interface {
	// Defend sends once, as Transfer does; Done means that the processor has the answer.
	Defend(ctx context.Context, r DefenseRequest, guard func() error) TransferAnswer
	// QueryDefense looks up whether the processor has our answer to a dispute.
	QueryDefense(ctx context.Context, r DefenseRequest) TransferReport
}

// Subject is what a notice is about.
type Subject string

// The subjects of notices.
const (
	SubjectCharge   Subject = "charge"
	SubjectTransfer Subject = "transfer"
	SubjectRefund   Subject = "refund"
)

// Hint is the content of a notice: the id to look up. It moves nothing by itself
// if the processor can be queried.
type Hint struct {
	Subject    Subject
	ExternalID string
	// ProcessorID is the processor's id of the charge or transfer, and PaymentID that of the
	// payment which a refund gives back; "" if the notice does not name it.
	ProcessorID string
	PaymentID   string
	// Payment is the payment that the notice reports, and Transfer the state of a
	// transfer; nil and "" if it reports none. The notice is applied again later if the
	// answer to the query does not show it.
	Payment  *Payment
	Transfer TransferState
	Reason   string // why the transfer failed, for the merchant; "" if the notice names none
}

// Notifier reads notices. It has no default: a processor without it cannot be
// compiled as one that sends notices.
type Notifier interface {
	// VerifyNotice authenticates the raw request and returns the processor's id of
	// the notice. Any doubt is an error.
	VerifyNotice(h http.Header, body []byte, now time.Time) (noticeID string, err error)
	// ParseNotice reads a verified body.
	ParseNotice(body []byte) ([]Hint, error)
}
