package payment

import (
	"github.com/porteira/porteira/internal/effect"
	"github.com/porteira/porteira/internal/ledger"
)

// PayinStatus is the public status of a pay-in.
type PayinStatus string

// The statuses of a pay-in.
const (
	PayinPending           PayinStatus = "PENDING"
	PayinProcessing        PayinStatus = "PROCESSING"
	PayinPaid              PayinStatus = "PAID"
	PayinExpired           PayinStatus = "EXPIRED"
	PayinCanceled          PayinStatus = "CANCELED"
	PayinFailed            PayinStatus = "FAILED"
	PayinPartiallyRefunded PayinStatus = "PARTIALLY_REFUNDED"
	PayinRefunded          PayinStatus = "REFUNDED"
	PayinDisputed          PayinStatus = "DISPUTED"
	PayinChargeback        PayinStatus = "CHARGEBACK"
)

// PayinStatuses lists every status of a pay-in, in the order of its life.
var PayinStatuses = []PayinStatus{
	PayinPending, PayinProcessing, PayinPaid, PayinExpired, PayinCanceled, PayinFailed,
	PayinPartiallyRefunded, PayinRefunded, PayinDisputed, PayinChargeback,
}

// PayoutStatus is the public status of a payout.
type PayoutStatus string

// The statuses of a payout.
const (
	PayoutPending    PayoutStatus = "PENDING"
	PayoutProcessing PayoutStatus = "PROCESSING"
	PayoutCompleted  PayoutStatus = "COMPLETED"
	PayoutFailed     PayoutStatus = "FAILED"
	PayoutCanceled   PayoutStatus = "CANCELED"
	PayoutReturned   PayoutStatus = "RETURNED"
)

// PayoutStatuses lists every status of a payout, in the order of its life.
var PayoutStatuses = []PayoutStatus{
	PayoutPending, PayoutProcessing, PayoutCompleted, PayoutFailed, PayoutCanceled, PayoutReturned,
}

// PayoutStep is the executor's state of a payout; merchants see only the status.
type PayoutStep = effect.State

// The steps of the executor.
const (
	StepApproval PayoutStep = "approval"      // held, to be approved before it is queued
	StepQueued              = effect.Queued   // held, not yet sent
	StepIntent   PayoutStep = "intent"        // durable intent; bytes may be leaving
	StepAccepted            = effect.Accepted // the processor has it; its result is pending
	StepUnknown             = effect.Unknown  // outcome unknown: look up, do not send
	StepReview              = effect.Review   // look-ups were inconclusive: an operator decides
	StepDone                = effect.Done     // final
	// StepPaidLate is final too: it was paid after its hold was released, and an operator
	// decided who bears it.
	StepPaidLate PayoutStep = "paid_late"
)

// RefundStatus is the public status of a refund.
type RefundStatus string

// The statuses of a refund.
const (
	RefundPending    RefundStatus = "PENDING"
	RefundProcessing RefundStatus = "PROCESSING"
	RefundCompleted  RefundStatus = "COMPLETED"
	RefundFailed     RefundStatus = "FAILED"
)

// RefundStatuses lists every status of a refund.
var RefundStatuses = []RefundStatus{RefundPending, RefundProcessing, RefundCompleted, RefundFailed}

// DisputeStatus is the public status of a dispute.
type DisputeStatus string

// The statuses of a dispute.
const (
	DisputeOpen      DisputeStatus = "OPEN"
	DisputeSubmitted DisputeStatus = "SUBMITTED" // it is defended
	DisputeWon       DisputeStatus = "WON"       // by the merchant
	DisputeLost      DisputeStatus = "LOST"
	DisputeReversed  DisputeStatus = "REVERSED" // it was lost, and the money came back
)

// DisputeStatuses lists every status of a dispute.
var DisputeStatuses = []DisputeStatus{DisputeOpen, DisputeSubmitted, DisputeWon, DisputeLost, DisputeReversed}

// EventType names what an event announces to the merchant.
type EventType string

// The events. *.created is sent only to endpoints that subscribe to it.
const (
	EventPayinCreated           EventType = "payin.created"
	EventPayinProcessing        EventType = "payin.processing"
	EventPayinPaid              EventType = "payin.paid"
	EventPayinExpired           EventType = "payin.expired"
	EventPayinCanceled          EventType = "payin.canceled"
	EventPayinFailed            EventType = "payin.failed"
	EventPayinPartiallyRefunded EventType = "payin.partially_refunded"
	EventPayinRefunded          EventType = "payin.refunded"
	EventPayinDisputed          EventType = "payin.disputed"
	EventPayinDisputeWon        EventType = "payin.dispute_won"
	EventPayinChargeback        EventType = "payin.chargeback"
	EventPayinUnderpaid         EventType = "payin.underpaid"
	EventPayinOverpaid          EventType = "payin.overpaid"
	EventPayinUpdated           EventType = "payin.updated" // its charge is there, after the answer
	EventPayoutCreated          EventType = "payout.created"
	EventPayoutProcessing       EventType = "payout.processing"
	EventPayoutCompleted        EventType = "payout.completed"
	EventPayoutFailed           EventType = "payout.failed"
	EventPayoutCanceled         EventType = "payout.canceled"
	EventPayoutReturned         EventType = "payout.returned"
	EventRefundCompleted        EventType = "refund.completed"
	EventRefundFailed           EventType = "refund.failed"
	EventDisputeOpened          EventType = "dispute.opened"
	EventDisputeSubmitted       EventType = "dispute.submitted"
	EventDisputeClosed          EventType = "dispute.closed"
)

// Trigger names what happened to an order: the column of a transition table.
type Trigger string

// Transition is one legal cell of a transition table: From and On decide To,
// the ledger recipe that is posted with it ("" posts nothing) and the event
// that announces it ("" announces nothing).
type Transition[S ~string] struct {
	From   S
	On     Trigger
	To     S
	Recipe ledger.Kind
	Event  EventType
}

// Table is a state machine: every cell that is not listed is illegal.
type Table[S ~string] []Transition[S]

// Next finds the cell of (from, on); ok is false if it is illegal.
func (t Table[S]) Next(from S, on Trigger) (Transition[S], bool) {
	for i := range t {
		if t[i].From == from && t[i].On == on {
			return t[i], true
		}
	}
	return Transition[S]{}, false
}

// The triggers of pay-ins.
const (
	OnProcess            Trigger = "process"              // the processor is reviewing it
	OnPay                Trigger = "pay"                  // receipts reach the amount
	OnPayShort           Trigger = "pay_short"            // a receipt is less than the amount
	OnPayMore            Trigger = "pay_more"             // a receipt, or a part of it, is too much
	OnApply              Trigger = "apply"                // unapplied money, applied by an operator, reaches the amount
	OnApplyShort         Trigger = "apply_short"          // it is less than the amount
	OnExpire             Trigger = "expire"               // its lifetime ended
	OnCancel             Trigger = "cancel"               // the merchant cancels it
	OnFail               Trigger = "fail"                 // the processor refuses the order
	OnAttemptRefused     Trigger = "attempt_refused"      // a card was refused; the payer may try again
	OnRegister           Trigger = "register"             // the processor has registered its charge, after the answer
	OnRefundPart         Trigger = "refund_part"          // a partial refund
	OnRefundAll          Trigger = "refund_all"           // refunds reach what was paid
	OnRefundUndone       Trigger = "refund_undone"        // its last refund failed after it was completed
	OnRefundUndonePart   Trigger = "refund_undone_part"   // the same, of one of several refunds
	OnPaidAgain          Trigger = "paid_again"           // the same, and what was paid reaches the amount with it
	OnDispute            Trigger = "dispute"              // the payer disputes it
	OnDisputeMore        Trigger = "dispute_more"         // the payer disputes more of it, or it is not paid in full
	OnDisputedBefore     Trigger = "disputed_before"      // it was paid in full, and disputes have a part of it
	OnChargedBackBefore  Trigger = "charged_back_before"  // the same, and none of them is open
	OnWin                Trigger = "win"                  // the merchant won the last dispute, and lost none
	OnWinRefunded        Trigger = "win_refunded"         // the same, and a part was refunded before
	OnWinRefundedAll     Trigger = "win_refunded_all"     // the same, and all that was paid was refunded before
	OnWinChargedBack     Trigger = "win_charged_back"     // the merchant won the last open dispute, and lost another one
	OnWinPart            Trigger = "win_part"             // the merchant won a dispute; others decide the status
	OnLose               Trigger = "lose"                 // the merchant lost the last open dispute
	OnLosePart           Trigger = "lose_part"            // the merchant lost a dispute; others decide the status
	OnReverse            Trigger = "reverse"              // the payer's bank reversed the last chargeback
	OnReverseRefunded    Trigger = "reverse_refunded"     // the same, and a part was refunded before
	OnReverseRefundedAll Trigger = "reverse_refunded_all" // the same, and all that was paid was refunded before
	OnReversePart        Trigger = "reverse_part"         // the payer's bank reversed a chargeback; others decide the status. Disputes: it took less than was charged back
	OnSend               Trigger = "send"                 // payouts, refunds: intent to send it to the processor
	OnComplete           Trigger = "complete"             // payouts, refunds: proof that it was paid
	OnReturn             Trigger = "return"               // payouts: all of it came back
	OnReturnPart         Trigger = "return_part"          // payouts: a part of it came back
	OnCompletePart       Trigger = "complete_part"        // refunds: a part of it was paid; others decide the status
	OnCompleteFailed     Trigger = "complete_failed"      // refunds: the last part was paid, and another one had failed
	OnFailPart           Trigger = "fail_part"            // refunds: a part of it was definitively not paid; others are in flight
	OnTakeBack           Trigger = "take_back"            // refunds: a part that was paid came back, after the refund was completed
	OnTakeBackPart       Trigger = "take_back_part"       // refunds: the same, of one that is not completed
	OnSubmit             Trigger = "submit"               // disputes: the merchant defends it
	OnAccept             Trigger = "accept"               // disputes: the merchant gives up
)

// PayinTable is the state machine of a pay-in. Its refund cells post nothing:
// the refund's own table does, in the same commit.
var PayinTable = Table[PayinStatus]{
	{PayinPending, OnProcess, PayinProcessing, "", EventPayinProcessing},
	{PayinPending, OnPay, PayinPaid, ledger.Received, EventPayinPaid},
	{PayinPending, OnPayShort, PayinPending, ledger.Received, EventPayinUnderpaid},
	{PayinPending, OnApply, PayinPaid, ledger.UnappliedApplied, EventPayinPaid},
	{PayinPending, OnApplyShort, PayinPending, ledger.UnappliedApplied, EventPayinUnderpaid},
	{PayinPending, OnRefundPart, PayinPending, "", EventPayinPartiallyRefunded},
	{PayinPending, OnRefundAll, PayinPending, "", EventPayinRefunded},
	{PayinPending, OnRefundUndone, PayinPending, "", EventPayinUpdated},
	{PayinPending, OnRefundUndonePart, PayinPending, "", EventPayinPartiallyRefunded},
	{PayinPending, OnPaidAgain, PayinPaid, "", EventPayinPaid},
	{PayinPending, OnDisputeMore, PayinPending, ledger.DisputeOpened, EventPayinDisputed},
	{PayinPending, OnWinPart, PayinPending, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinPending, OnLosePart, PayinPending, ledger.ChargedBack, EventPayinChargeback},
	{PayinPending, OnReversePart, PayinPending, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinPending, OnExpire, PayinExpired, "", EventPayinExpired},
	{PayinPending, OnCancel, PayinCanceled, "", EventPayinCanceled},
	{PayinPending, OnFail, PayinFailed, "", EventPayinFailed},
	{PayinPending, OnAttemptRefused, PayinPending, "", ""},
	{PayinPending, OnRegister, PayinPending, "", EventPayinUpdated},

	{PayinProcessing, OnPay, PayinPaid, ledger.Received, EventPayinPaid},
	{PayinProcessing, OnPayShort, PayinProcessing, ledger.Received, EventPayinUnderpaid},
	{PayinProcessing, OnApply, PayinPaid, ledger.UnappliedApplied, EventPayinPaid},
	{PayinProcessing, OnApplyShort, PayinProcessing, ledger.UnappliedApplied, EventPayinUnderpaid},
	{PayinProcessing, OnRefundPart, PayinProcessing, "", EventPayinPartiallyRefunded},
	{PayinProcessing, OnRefundAll, PayinProcessing, "", EventPayinRefunded},
	{PayinProcessing, OnRefundUndone, PayinProcessing, "", EventPayinUpdated},
	{PayinProcessing, OnRefundUndonePart, PayinProcessing, "", EventPayinPartiallyRefunded},
	{PayinProcessing, OnPaidAgain, PayinPaid, "", EventPayinPaid},
	{PayinProcessing, OnDisputeMore, PayinProcessing, ledger.DisputeOpened, EventPayinDisputed},
	{PayinProcessing, OnWinPart, PayinProcessing, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinProcessing, OnLosePart, PayinProcessing, ledger.ChargedBack, EventPayinChargeback},
	{PayinProcessing, OnReversePart, PayinProcessing, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinProcessing, OnFail, PayinFailed, "", EventPayinFailed},

	{PayinExpired, OnPay, PayinPaid, ledger.Received, EventPayinPaid},
	{PayinExpired, OnPayShort, PayinExpired, ledger.Received, EventPayinUnderpaid},
	{PayinExpired, OnApply, PayinPaid, ledger.UnappliedApplied, EventPayinPaid},
	{PayinExpired, OnApplyShort, PayinExpired, ledger.UnappliedApplied, EventPayinUnderpaid},
	{PayinExpired, OnRefundPart, PayinExpired, "", EventPayinPartiallyRefunded},
	{PayinExpired, OnRefundAll, PayinExpired, "", EventPayinRefunded},
	{PayinExpired, OnRefundUndone, PayinExpired, "", EventPayinUpdated},
	{PayinExpired, OnRefundUndonePart, PayinExpired, "", EventPayinPartiallyRefunded},
	{PayinExpired, OnPaidAgain, PayinPaid, "", EventPayinPaid},
	{PayinExpired, OnDisputeMore, PayinExpired, ledger.DisputeOpened, EventPayinDisputed},
	{PayinExpired, OnWinPart, PayinExpired, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinExpired, OnLosePart, PayinExpired, ledger.ChargedBack, EventPayinChargeback},
	{PayinExpired, OnReversePart, PayinExpired, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinCanceled, OnPay, PayinPaid, ledger.Received, EventPayinPaid},
	{PayinCanceled, OnPayShort, PayinCanceled, ledger.Received, EventPayinUnderpaid},
	{PayinCanceled, OnApply, PayinPaid, ledger.UnappliedApplied, EventPayinPaid},
	{PayinCanceled, OnApplyShort, PayinCanceled, ledger.UnappliedApplied, EventPayinUnderpaid},
	{PayinCanceled, OnRefundPart, PayinCanceled, "", EventPayinPartiallyRefunded},
	{PayinCanceled, OnRefundAll, PayinCanceled, "", EventPayinRefunded},
	{PayinCanceled, OnRefundUndone, PayinCanceled, "", EventPayinUpdated},
	{PayinCanceled, OnRefundUndonePart, PayinCanceled, "", EventPayinPartiallyRefunded},
	{PayinCanceled, OnPaidAgain, PayinPaid, "", EventPayinPaid},
	{PayinCanceled, OnDisputeMore, PayinCanceled, ledger.DisputeOpened, EventPayinDisputed},
	{PayinCanceled, OnWinPart, PayinCanceled, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinCanceled, OnLosePart, PayinCanceled, ledger.ChargedBack, EventPayinChargeback},
	{PayinCanceled, OnReversePart, PayinCanceled, ledger.ChargebackReversed, EventPayinDisputeWon},

	{PayinPaid, OnPayMore, PayinPaid, ledger.ReceivedUnapplied, EventPayinOverpaid},
	{PayinPaid, OnRefundPart, PayinPartiallyRefunded, "", EventPayinPartiallyRefunded},
	{PayinPaid, OnRefundAll, PayinRefunded, "", EventPayinRefunded},
	{PayinPaid, OnRefundUndone, PayinPaid, "", EventPayinUpdated},
	{PayinPaid, OnDispute, PayinDisputed, ledger.DisputeOpened, EventPayinDisputed},
	{PayinPaid, OnDisputedBefore, PayinDisputed, "", EventPayinDisputed},

	{PayinPartiallyRefunded, OnPayMore, PayinPartiallyRefunded, ledger.ReceivedUnapplied, EventPayinOverpaid},
	{PayinPartiallyRefunded, OnRefundPart, PayinPartiallyRefunded, "", EventPayinPartiallyRefunded},
	{PayinPartiallyRefunded, OnRefundAll, PayinRefunded, "", EventPayinRefunded},
	{PayinPartiallyRefunded, OnRefundUndone, PayinPaid, "", EventPayinUpdated},
	{PayinPartiallyRefunded, OnRefundUndonePart, PayinPartiallyRefunded, "", EventPayinPartiallyRefunded},
	{PayinPartiallyRefunded, OnDispute, PayinDisputed, ledger.DisputeOpened, EventPayinDisputed},

	{PayinDisputed, OnPayMore, PayinDisputed, ledger.ReceivedUnapplied, EventPayinOverpaid},
	{PayinDisputed, OnRefundPart, PayinDisputed, "", EventPayinPartiallyRefunded},
	{PayinDisputed, OnRefundAll, PayinDisputed, "", EventPayinRefunded},
	{PayinDisputed, OnRefundUndone, PayinDisputed, "", EventPayinUpdated},
	{PayinDisputed, OnRefundUndonePart, PayinDisputed, "", EventPayinPartiallyRefunded},
	{PayinDisputed, OnChargedBackBefore, PayinChargeback, "", EventPayinChargeback},
	{PayinDisputed, OnDisputeMore, PayinDisputed, ledger.DisputeOpened, EventPayinDisputed},
	{PayinDisputed, OnWin, PayinPaid, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinDisputed, OnWinRefunded, PayinPartiallyRefunded, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinDisputed, OnWinRefundedAll, PayinRefunded, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinDisputed, OnWinChargedBack, PayinChargeback, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinDisputed, OnWinPart, PayinDisputed, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinDisputed, OnLose, PayinChargeback, ledger.ChargedBack, EventPayinChargeback},
	{PayinDisputed, OnLosePart, PayinDisputed, ledger.ChargedBack, EventPayinChargeback},
	{PayinDisputed, OnReversePart, PayinDisputed, ledger.ChargebackReversed, EventPayinDisputeWon},

	{PayinChargeback, OnPayMore, PayinChargeback, ledger.ReceivedUnapplied, EventPayinOverpaid},
	{PayinChargeback, OnRefundPart, PayinChargeback, "", EventPayinPartiallyRefunded},
	{PayinChargeback, OnRefundAll, PayinChargeback, "", EventPayinRefunded},
	{PayinChargeback, OnRefundUndone, PayinChargeback, "", EventPayinUpdated},
	{PayinChargeback, OnRefundUndonePart, PayinChargeback, "", EventPayinPartiallyRefunded},
	{PayinChargeback, OnDisputeMore, PayinChargeback, ledger.DisputeOpened, EventPayinDisputed},
	{PayinChargeback, OnWin, PayinPaid, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinChargeback, OnWinRefunded, PayinPartiallyRefunded, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinChargeback, OnWinRefundedAll, PayinRefunded, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinChargeback, OnWinPart, PayinChargeback, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinChargeback, OnLosePart, PayinChargeback, ledger.ChargedBack, EventPayinChargeback},
	{PayinChargeback, OnReversePart, PayinChargeback, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinChargeback, OnReverse, PayinPaid, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinChargeback, OnReverseRefunded, PayinPartiallyRefunded, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinChargeback, OnReverseRefundedAll, PayinRefunded, ledger.ChargebackReversed, EventPayinDisputeWon},

	{PayinFailed, OnPayMore, PayinFailed, ledger.ReceivedUnapplied, EventPayinOverpaid},
	{PayinFailed, OnRefundPart, PayinFailed, "", EventPayinPartiallyRefunded},
	{PayinFailed, OnRefundAll, PayinFailed, "", EventPayinRefunded},
	{PayinFailed, OnRefundUndone, PayinFailed, "", EventPayinUpdated},
	{PayinFailed, OnRefundUndonePart, PayinFailed, "", EventPayinPartiallyRefunded},
	{PayinFailed, OnDisputeMore, PayinFailed, ledger.DisputeOpened, EventPayinDisputed},
	{PayinFailed, OnWinPart, PayinFailed, ledger.DisputeWon, EventPayinDisputeWon},
	{PayinFailed, OnLosePart, PayinFailed, ledger.ChargedBack, EventPayinChargeback},
	{PayinFailed, OnReversePart, PayinFailed, ledger.ChargebackReversed, EventPayinDisputeWon},
	{PayinRefunded, OnPayMore, PayinRefunded, ledger.ReceivedUnapplied, EventPayinOverpaid},
	{PayinRefunded, OnDispute, PayinDisputed, ledger.DisputeOpened, EventPayinDisputed},
	{PayinRefunded, OnRefundUndone, PayinPaid, "", EventPayinUpdated},
	{PayinRefunded, OnRefundUndonePart, PayinPartiallyRefunded, "", EventPayinPartiallyRefunded},
}

// PayinTriggers lists what can happen to a pay-in.
var PayinTriggers = []Trigger{
	OnProcess, OnPay, OnPayShort, OnApply, OnApplyShort, OnPayMore, OnExpire, OnCancel, OnFail, OnAttemptRefused,
	OnRegister, OnRefundPart, OnRefundAll, OnRefundUndone, OnRefundUndonePart, OnPaidAgain, OnDispute, OnDisputeMore, OnDisputedBefore, OnChargedBackBefore,
	OnWin, OnWinRefunded, OnWinRefundedAll, OnWinChargedBack, OnWinPart, OnLose, OnLosePart,
	OnReverse, OnReverseRefunded, OnReverseRefundedAll, OnReversePart,
}

// PayoutTable is the state machine of a payout. Its creation posts PayoutHeld.
var PayoutTable = Table[PayoutStatus]{
	{PayoutPending, OnSend, PayoutProcessing, "", EventPayoutProcessing},
	{PayoutPending, OnCancel, PayoutCanceled, ledger.PayoutReleased, EventPayoutCanceled},
	{PayoutPending, OnFail, PayoutFailed, ledger.PayoutReleased, EventPayoutFailed},

	{PayoutProcessing, OnComplete, PayoutCompleted, ledger.PayoutPaid, EventPayoutCompleted},
	{PayoutProcessing, OnFail, PayoutFailed, ledger.PayoutReleased, EventPayoutFailed},

	{PayoutCompleted, OnReturn, PayoutReturned, ledger.PayoutReturned, EventPayoutReturned},
	{PayoutCompleted, OnReturnPart, PayoutCompleted, ledger.PayoutReturned, EventPayoutReturned},
}

// PayoutTriggers lists what can happen to a payout.
var PayoutTriggers = []Trigger{OnSend, OnCancel, OnFail, OnComplete, OnReturn, OnReturnPart}

// RefundTable is the state machine of a refund. Its creation posts RefundHeld, or
// RefundFound if the processor lists a refund that nobody requested here. A refund of a
// pay-in with several payments has several parts: each posts its own entry.
var RefundTable = Table[RefundStatus]{
	{RefundPending, OnSend, RefundProcessing, "", ""},
	{RefundPending, OnFail, RefundFailed, ledger.RefundReleased, EventRefundFailed},

	{RefundProcessing, OnComplete, RefundCompleted, ledger.Refunded, EventRefundCompleted},
	{RefundProcessing, OnCompletePart, RefundProcessing, ledger.Refunded, ""},
	{RefundProcessing, OnCompleteFailed, RefundFailed, ledger.Refunded, EventRefundFailed},
	{RefundProcessing, OnFail, RefundFailed, ledger.RefundReleased, EventRefundFailed},
	{RefundProcessing, OnFailPart, RefundProcessing, ledger.RefundReleased, ""},
	{RefundProcessing, OnTakeBackPart, RefundProcessing, ledger.RefundTakenBack, ""},

	{RefundCompleted, OnTakeBack, RefundFailed, ledger.RefundTakenBack, EventRefundFailed},

	{RefundFailed, OnComplete, RefundCompleted, ledger.Refunded, EventRefundCompleted},
	{RefundFailed, OnCompleteFailed, RefundFailed, ledger.Refunded, EventRefundFailed},
	{RefundFailed, OnTakeBack, RefundFailed, ledger.RefundTakenBack, EventRefundFailed},
}

// RefundTriggers lists what can happen to a refund.
var RefundTriggers = []Trigger{
	OnSend, OnFail, OnFailPart, OnComplete, OnCompletePart, OnCompleteFailed, OnTakeBack, OnTakeBackPart,
}

// DisputeTable is the state machine of a dispute. It posts nothing: the pay-in's own cell does,
// in the same commit.
var DisputeTable = Table[DisputeStatus]{
	{DisputeOpen, OnDispute, DisputeOpen, "", EventDisputeOpened},
	{DisputeOpen, OnSubmit, DisputeSubmitted, "", EventDisputeSubmitted},
	{DisputeOpen, OnAccept, DisputeLost, "", EventDisputeClosed},
	{DisputeOpen, OnWin, DisputeWon, "", EventDisputeClosed},
	{DisputeOpen, OnLose, DisputeLost, "", EventDisputeClosed},

	{DisputeSubmitted, OnAccept, DisputeLost, "", EventDisputeClosed},
	{DisputeSubmitted, OnWin, DisputeWon, "", EventDisputeClosed},
	{DisputeSubmitted, OnLose, DisputeLost, "", EventDisputeClosed},

	{DisputeLost, OnReverse, DisputeReversed, "", EventDisputeClosed},
	{DisputeLost, OnReversePart, DisputeLost, "", EventDisputeClosed},
}

// DisputeTriggers lists what can happen to a dispute.
var DisputeTriggers = []Trigger{OnDispute, OnSubmit, OnAccept, OnWin, OnLose, OnReverse, OnReversePart}
