package ledger

import "github.com/porteira/porteira/internal/money"

// Kind names the recipe of an entry, and so the fact that it books.
type Kind string

// The recipes.
const (
	Funded             Kind = "funded"              // the operator put money in
	Received           Kind = "received"            // a payer's money, available at once
	ReceivedPending    Kind = "received_pending"    // a payer's money, settles later
	ReceivedUnapplied  Kind = "received_unapplied"  // money for an order beyond its amount
	Settled            Kind = "settled"             // pending became available
	CostBooked         Kind = "cost_booked"         // a processor charged a fee, of a payment or another one
	CostReturned       Kind = "cost_returned"       // a processor gave a fee back
	PayoutHeld         Kind = "payout_held"         // set aside for a payout
	PayoutPaid         Kind = "payout_paid"         // left through the processor
	PayoutReleased     Kind = "payout_released"     // did not leave; released
	PayoutReturned     Kind = "payout_returned"     // the receiver's bank sent it back
	PayoutFound        Kind = "payout_found"        // left in a past that a restored backup lacks
	PayoutAdopted      Kind = "payout_adopted"      // its payout was requested again
	FoundReturned      Kind = "found_returned"      // a found transfer, or a part of it, came back
	RefundHeld         Kind = "refund_held"         // set aside for a refund
	Refunded           Kind = "refunded"            // went back to the payer
	RefundReleased     Kind = "refund_released"     // did not go back; released
	RefundFound        Kind = "refund_found"        // set aside for a refund that nobody requested here
	RefundTakenBack    Kind = "refund_taken_back"   // went back to the payer, and came back
	FeeRefunded        Kind = "fee_refunded"        // the fee on refunded money went back to the merchant
	FeeRecharged       Kind = "fee_recharged"       // the same fee again: the refund came back
	DisputeOpened      Kind = "dispute_opened"      // set aside while it is contested
	DisputeWon         Kind = "dispute_won"         // the payer lost; released
	ChargedBack        Kind = "charged_back"        // the payer won; taken by the payer's bank
	ChargebackReversed Kind = "chargeback_reversed" // returned by the payer's bank
	OwedRepaid         Kind = "owed_repaid"         // available money paid a debt

	ReceivedUnidentified Kind = "received_unidentified" // money that names no order
	UnidentifiedReturned Kind = "unidentified_returned" // it went back to its payer, at the processor
	UnidentifiedBack     Kind = "unidentified_back"     // the same, and it came back
	// Of the resolutions of cases.
	UnappliedApplied    Kind = "unapplied_applied"     // unapplied money paid an order
	UnappliedReleased   Kind = "unapplied_released"    // unapplied money became available
	UnappliedWrittenOff Kind = "unapplied_written_off" // unapplied money went to the platform
	UnappliedBack       Kind = "unapplied_back"        // written-off money is unapplied again
	UnidentifiedMoved   Kind = "unidentified_moved"    // unidentified money left the platform for a merchant
	UnidentifiedArrived Kind = "unidentified_arrived"  // the same, at the merchant
	UnidentifiedKept    Kind = "unidentified_kept"     // unidentified money was written off
	PayoutPaidLate      Kind = "payout_paid_late"      // left after its hold was released; the merchant bears it
	PayoutWrittenOff    Kind = "payout_written_off"    // the same; the platform bears it
	FoundWrittenOff     Kind = "found_written_off"     // a found transfer that the platform bears, not the merchant
	PayoutRecovered     Kind = "payout_recovered"      // the platform does not bear a transfer any more
)

// Recipe describes one kind for people: the docs print it.
type Recipe struct {
	Kind    Kind
	Moves   string // from account to account
	Meaning string
}

// Recipes lists every kind of entry there is, in the order of an order's life.
var Recipes = []Recipe{
	{Funded, "clearing → available", "the operator credits money that it has at the processor"},
	{Received, "clearing → available (fee → fees)", "an order was paid; the money is available at once"},
	{ReceivedPending, "clearing → pending (fee → fees)", "an order was paid; the money settles later"},
	{ReceivedUnapplied, "clearing → unapplied", "a payment, or a part of it, exceeds its order"},
	{ReceivedUnidentified, "clearing → unidentified", "a payment names no order; on the platform's accounts only"},
	{UnidentifiedReturned, "unidentified → clearing", "money that names no order was given back to its payer at the processor, or taken by a dispute; on the platform's accounts only"},
	{UnidentifiedBack, "clearing → unidentified", "the same, and it came back"},
	{CostBooked, "costs → clearing", "the processor kept its own fee of a payment, or charged another one (on the platform's accounts): the platform bears it, never the merchant's money"},
	{CostReturned, "clearing → costs (then written_off)", "the processor gave a fee back, also one that this ledger had not booked; on the platform's accounts only"},
	{Settled, "pending → available", "the settlement date is reached"},
	{PayoutHeld, "available → held", "a payout was accepted: amount and fee"},
	{PayoutPaid, "held → clearing (fee → fees)", "the processor proved that the payout was paid"},
	{PayoutReleased, "held → available", "the payout was canceled or definitively not paid"},
	{PayoutReturned, "clearing → available", "the receiver's bank returned a payout, or a part of it"},
	{PayoutFound, "available (then owed) → clearing", "the processor lists a transfer that a restored backup lacks, or paid a payout twice; a shortfall becomes debt"},
	{PayoutAdopted, "clearing → owed, then available", "the payout of a found transfer was requested again, and holds its money"},
	{FoundReturned, "clearing → owed, then available", "a found transfer, or one that left after its payout's release, failed or was returned by the receiver's bank, in full or in part"},
	{RefundHeld, "pending of the order, then available (then owed, at most the fee that comes back with it), or unapplied → held", "a refund was accepted"},
	{Refunded, "held → clearing", "the processor proved that the refund was paid"},
	{RefundReleased, "held → pending of the order, and available (or unapplied)", "the refund, or a part of it, was definitively not paid"},
	{RefundFound, "unapplied of the payment, then pending of the order, then available (then owed) → held", "the processor lists a refund that nobody requested here, or paid one after its release; a shortfall becomes debt"},
	{RefundTakenBack, "clearing → pending of the order, then owed, then available (or unapplied)", "a refund, or a part of it, failed after the processor had reported it paid"},
	{FeeRefunded, "fees → owed, then available", "a refund was paid, and the price gives its part of the fee back"},
	{FeeRecharged, "available (then owed) → fees", "a refund came back, and its part of the fee is charged again"},
	{DisputeOpened, "pending of the order, then available (then owed) → disputed", "a payer disputes; a shortfall becomes debt"},
	{DisputeWon, "disputed → pending of the order, then owed, then available", "the dispute was won; money that was pending is pending again, and debt is repaid first"},
	{ChargedBack, "disputed → clearing", "the dispute was lost"},
	{ChargebackReversed, "clearing → pending of the order, then owed, then available", "the payer's bank reversed the chargeback; the money returns as after a won dispute"},
	{OwedRepaid, "available → owed", "available money repays debt"},
	{UnappliedApplied, "unapplied → available or pending (fee → fees)", "an operator applied unapplied money to an order"},
	{UnappliedReleased, "unapplied → available", "an operator made unapplied money available"},
	{UnappliedWrittenOff, "unapplied → written_off", "an operator wrote unapplied money off: the platform keeps it"},
	{UnappliedBack, "written_off → unapplied", "the payer disputes unapplied money that was written off, or its processor gave it back"},
	{UnidentifiedMoved, "unidentified → clearing", "an operator assigned unidentified money to a merchant; on the platform's accounts only"},
	{UnidentifiedArrived, "clearing → unapplied", "the same, on the merchant's accounts"},
	{UnidentifiedKept, "unidentified → written_off", "an operator wrote unidentified money off: the platform keeps it"},
	{PayoutPaidLate, "available (then owed) → clearing (fee → fees)", "a payout left after its hold was released: the merchant bears it and its fee; a shortfall becomes debt"},
	{PayoutWrittenOff, "written_off → clearing", "the same, and an operator decided that the platform bears it"},
	{FoundWrittenOff, "written_off → owed, then available", "an operator decided that the platform bears a found transfer"},
	{PayoutRecovered, "clearing → written_off", "a transfer that the platform bore failed or was returned, in full or in part, or its payout was requested again"},
}

// Known reports whether k is one of the recipes.
func (k Kind) Known() bool {
	for i := range Recipes {
		if Recipes[i].Kind == k {
			return true
		}
	}
	return false
}

// Move is the plain entry from one account to another. Recipes with more than two
// legs have their own functions. The amount must be above zero: Check rejects a
// negative one, which would run the recipe backwards.
func Move(kind Kind, from, to Account, amount money.Cents) Entry {
	if amount <= 0 {
		return Entry{Kind: kind}
	}
	return Entry{Kind: kind, Postings: []Posting{{from, -amount}, {to, amount}}}
}

// Fund credits the operator's own money to the merchant.
func Fund(processor string, amount money.Cents) Entry {
	return Move(Funded, Clearing(processor), Available, amount)
}

// Receive credits a receipt of an order to available, less the fee, which is at most the
// receipt.
func Receive(processor string, amount, fee money.Cents) Entry {
	return withFee(Received, Clearing(processor), Available, amount, fee)
}

// ReceiveLater credits a receipt of an order to pending, less the fee.
func ReceiveLater(processor string, amount, fee money.Cents) Entry {
	return withFee(ReceivedPending, Clearing(processor), Pending, amount, fee)
}

// ReceiveUnapplied credits money for an order beyond its amount.
func ReceiveUnapplied(processor string, amount money.Cents) Entry {
	return Move(ReceivedUnapplied, Clearing(processor), Unapplied, amount)
}

// ReceiveUnidentified credits money that names no order to the platform.
func ReceiveUnidentified(processor string, amount money.Cents) Entry {
	return Move(ReceivedUnidentified, Clearing(processor), Unidentified, amount)
}

// BookCost books what a processor charged for itself.
func BookCost(processor string, amount money.Cents) Entry {
	return Move(CostBooked, Costs, Clearing(processor), amount)
}

// ReturnCost books a return of a processor's charges. An amount beyond the costs so far (zero or
// below) was charged before the ledger knew it: it is the platform's gain.
func ReturnCost(processor string, costs, amount money.Cents) Entry {
	known := min(amount, -costs)
	if known <= 0 {
		return Move(CostReturned, Clearing(processor), WrittenOff, amount)
	}
	return withPart(Move(CostReturned, Clearing(processor), Costs, known), WrittenOff, Clearing(processor), amount-known)
}

// Settle makes pending money available.
func Settle(amount money.Cents) Entry { return Move(Settled, Pending, Available, amount) }

// HoldPayout sets a payout's amount and fee aside.
func HoldPayout(amount, fee money.Cents) Entry {
	return Move(PayoutHeld, Available, Held, amount+fee)
}

// PayPayout books a payout that the processor proved to be paid.
func PayPayout(processor string, amount, fee money.Cents) Entry {
	return withFee(PayoutPaid, Held, Clearing(processor), amount+fee, fee)
}

// ReleasePayout releases a payout's hold.
func ReleasePayout(amount, fee money.Cents) Entry {
	return Move(PayoutReleased, Held, Available, amount+fee)
}

// ReturnPayout books money that the receiver's bank sent back.
func ReturnPayout(processor string, amount money.Cents) Entry {
	return Move(PayoutReturned, Clearing(processor), Available, amount)
}

// FindPayout books a transfer that no payout has: from available as far as possible, and
// as debt beyond.
func FindPayout(processor string, available, amount money.Cents) Entry {
	return drawn(PayoutFound, Clearing(processor), available, amount)
}

// AdoptPayout takes a found transfer back, for the payout that now has it; debt (owed,
// zero or below) is repaid first.
func AdoptPayout(processor string, owed, amount money.Cents) Entry {
	return repaid(PayoutAdopted, Clearing(processor), owed, amount)
}

// ReturnFound books the amount of a found transfer that came back; debt (owed, zero or below)
// is repaid first.
func ReturnFound(processor string, owed, amount money.Cents) Entry {
	return repaid(FoundReturned, Clearing(processor), owed, amount)
}

// Parts are the parts of a refund that are not of available money, in cents.
type Parts struct{ Unapplied, Pending money.Cents }

// rest is what remains of an amount; below zero if the parts are none of it.
func (p Parts) rest(amount money.Cents) money.Cents {
	if p.Unapplied < 0 || p.Pending < 0 {
		return -1
	}
	return amount - p.Unapplied - p.Pending
}

// from adds to an entry what its parts move to another account.
func (p Parts) from(e Entry, to Account) Entry {
	return withPart(withPart(e, Pending, to, -p.Pending), Unapplied, to, -p.Unapplied)
}

// back adds to an entry what another account moves back to the parts.
func (p Parts) back(e Entry, from Account) Entry {
	return withPart(withPart(e, Pending, from, p.Pending), Unapplied, from, p.Unapplied)
}

// HoldRefund sets a refund's amount aside: beside its parts from available, and at most the fee that comes
// back with the refund as debt, which it then repays.
func HoldRefund(of Parts, available, feeBack, amount money.Cents) Entry {
	rest := of.rest(amount)
	if rest < 0 || feeBack < 0 {
		return Entry{Kind: RefundHeld}
	}
	debt := min(max(rest-max(available, 0), 0), feeBack)
	return of.from(drawn(RefundHeld, Held, rest-debt, rest), Held)
}

// PayRefund books a refund that the processor proved to be paid.
func PayRefund(processor string, amount money.Cents) Entry {
	return Move(Refunded, Held, Clearing(processor), amount)
}

// ReleaseRefund releases a refund's hold.
func ReleaseRefund(of Parts, amount money.Cents) Entry {
	rest := of.rest(amount)
	if rest < 0 {
		return Entry{Kind: RefundReleased}
	}
	return of.back(Move(RefundReleased, Held, Available, rest), Held)
}

// FindRefund sets the amount of a refund aside that nobody requested here: beside its parts
// from available as far as possible, and as debt beyond.
func FindRefund(of Parts, available, amount money.Cents) Entry {
	rest := of.rest(amount)
	if rest < 0 {
		return Entry{Kind: RefundFound}
	}
	return of.from(drawn(RefundFound, Held, available, rest), Held)
}

// TakeBackRefund books a refund that came back after it was paid; of what is not of its parts
// debt (owed, zero or below) is repaid first.
func TakeBackRefund(processor string, of Parts, owed, amount money.Cents) Entry {
	rest := of.rest(amount)
	if rest < 0 {
		return Entry{Kind: RefundTakenBack}
	}
	return of.back(repaid(RefundTakenBack, Clearing(processor), owed, rest), Clearing(processor))
}

// RefundFee gives a fee back to the merchant; debt (owed, zero or below) is repaid first.
func RefundFee(owed, amount money.Cents) Entry { return repaid(FeeRefunded, Fees, owed, amount) }

// RechargeFee charges a fee again: from available as far as possible, and as debt beyond.
func RechargeFee(available, amount money.Cents) Entry {
	return drawn(FeeRecharged, Fees, available, amount)
}

// OpenDispute sets the contested amount aside: pending cents of it from pending, the rest
// from available as far as possible, and as debt beyond.
func OpenDispute(pending, available, amount money.Cents) Entry {
	if pending < 0 || pending > amount {
		return Entry{Kind: DisputeOpened}
	}
	return withPart(drawn(DisputeOpened, Disputed, available, amount-pending), Pending, Disputed, -pending)
}

// WinDispute returns contested money: pending cents of it to pending, and of the rest debt
// (owed, zero or below) is repaid first.
func WinDispute(pending, owed, amount money.Cents) Entry {
	if pending < 0 || pending > amount {
		return Entry{Kind: DisputeWon}
	}
	return withPart(repaid(DisputeWon, Disputed, owed, amount-pending), Pending, Disputed, pending)
}

// LoseDispute books contested money that the payer's bank took.
func LoseDispute(processor string, amount money.Cents) Entry {
	return Move(ChargedBack, Disputed, Clearing(processor), amount)
}

// ReverseChargeback books a reversed chargeback, as WinDispute.
func ReverseChargeback(processor string, pending, owed, amount money.Cents) Entry {
	if pending < 0 || pending > amount {
		return Entry{Kind: ChargebackReversed}
	}
	return withPart(repaid(ChargebackReversed, Clearing(processor), owed, amount-pending), Pending, Clearing(processor), pending)
}

// ApplyUnapplied pays an order from unapplied money, less the fee: pending cents of it settle
// later, and the rest is available.
func ApplyUnapplied(amount, fee, pending money.Cents) Entry {
	if fee < 0 || pending < 0 || fee+pending > amount {
		return Entry{Kind: UnappliedApplied}
	}
	return withPart(withFee(UnappliedApplied, Unapplied, Available, amount-pending, fee), Pending, Unapplied, pending)
}

// ReleaseUnapplied makes unapplied money available.
func ReleaseUnapplied(amount money.Cents) Entry {
	return Move(UnappliedReleased, Unapplied, Available, amount)
}

// WriteOffUnapplied gives unapplied money to the platform.
func WriteOffUnapplied(amount money.Cents) Entry {
	return Move(UnappliedWrittenOff, Unapplied, WrittenOff, amount)
}

// BringBackUnapplied undoes WriteOffUnapplied.
func BringBackUnapplied(amount money.Cents) Entry {
	return Move(UnappliedBack, WrittenOff, Unapplied, amount)
}

// ReturnUnidentified books unidentified money that went back to its payer.
func ReturnUnidentified(processor string, amount money.Cents) Entry {
	return Move(UnidentifiedReturned, Unidentified, Clearing(processor), amount)
}

// TakeBackUnidentified is ReturnUnidentified that came back.
func TakeBackUnidentified(processor string, amount money.Cents) Entry {
	return Move(UnidentifiedBack, Clearing(processor), Unidentified, amount)
}

// MoveUnidentified takes unidentified money off the platform's accounts, for a merchant.
func MoveUnidentified(processor string, amount money.Cents) Entry {
	return Move(UnidentifiedMoved, Unidentified, Clearing(processor), amount)
}

// TakeUnidentified is the other half of MoveUnidentified, on the merchant's accounts.
func TakeUnidentified(processor string, amount money.Cents) Entry {
	return Move(UnidentifiedArrived, Clearing(processor), Unapplied, amount)
}

// WriteOffUnidentified leaves unidentified money to the platform.
func WriteOffUnidentified(amount money.Cents) Entry {
	return Move(UnidentifiedKept, Unidentified, WrittenOff, amount)
}

// PayPayoutLate books a payout that left after its hold was released, and its fee: from
// available as far as possible, and as debt beyond.
func PayPayoutLate(processor string, available, amount, fee money.Cents) Entry {
	if amount <= 0 || fee < 0 {
		return Entry{Kind: PayoutPaidLate}
	}
	e := drawn(PayoutPaidLate, Clearing(processor), available, amount+fee)
	if fee > 0 {
		e.Postings[len(e.Postings)-1].Amount -= fee
		e.Postings = append(e.Postings, Posting{Fees, fee})
	}
	return e
}

// WriteOffPayout is PayPayoutLate at the expense of the platform.
func WriteOffPayout(processor string, amount money.Cents) Entry {
	return Move(PayoutWrittenOff, WrittenOff, Clearing(processor), amount)
}

// WriteOffFound gives a merchant the amount of a found transfer that the platform bears; debt
// (owed, zero or below) is repaid first.
func WriteOffFound(owed, amount money.Cents) Entry {
	return repaid(FoundWrittenOff, WrittenOff, owed, amount)
}

// RecoverPayout books the amount of a transfer that the platform bore and that came back, or
// that the merchant bears after all.
func RecoverPayout(processor string, amount money.Cents) Entry {
	return Move(PayoutRecovered, Clearing(processor), WrittenOff, amount)
}

// RepayOwed repays as much debt (owed, zero or below) as available can; ok is
// false if there is nothing to repay.
func RepayOwed(available, owed money.Cents) (e Entry, ok bool) {
	amount := min(available, -owed)
	if amount <= 0 {
		return Entry{}, false
	}
	return Move(OwedRepaid, Available, Owed, amount), true
}

// withFee moves gross from one account to another; the fee, which is a part of it, goes to
// the platform.
func withFee(kind Kind, from, to Account, gross, fee money.Cents) Entry {
	if gross <= 0 || fee < 0 || fee > gross {
		return Entry{Kind: kind}
	}
	e := Entry{Kind: kind, Postings: make([]Posting, 0, 3)}
	e.Postings = append(e.Postings, Posting{from, -gross})
	if gross != fee {
		e.Postings = append(e.Postings, Posting{to, gross - fee})
	}
	if fee != 0 {
		e.Postings = append(e.Postings, Posting{Fees, fee})
	}
	return e
}

// withPart adds to an entry an amount that another account moves to an account, or from it
// if the amount is negative. An entry without postings begins with it.
func withPart(e Entry, account, other Account, amount money.Cents) Entry {
	if amount == 0 {
		return e
	}
	e.Postings = append(e.Postings, Posting{account, amount})
	for i := range e.Postings {
		if p := &e.Postings[i]; p.Account == other {
			p.Amount -= amount
			return e
		}
	}
	e.Postings = append(e.Postings, Posting{other, -amount})
	return e
}

// drawn takes amount from available, and the shortfall from owed.
func drawn(kind Kind, to Account, available, amount money.Cents) Entry {
	if amount <= 0 {
		return Entry{Kind: kind}
	}
	fromAvailable := min(max(available, 0), amount)
	e := Entry{Kind: kind, Postings: make([]Posting, 0, 3)}
	if fromAvailable > 0 {
		e.Postings = append(e.Postings, Posting{Available, -fromAvailable})
	}
	if debt := amount - fromAvailable; debt > 0 {
		e.Postings = append(e.Postings, Posting{Owed, -debt})
	}
	e.Postings = append(e.Postings, Posting{to, amount})
	return e
}

// repaid credits amount: to owed first, as far as there is debt.
func repaid(kind Kind, from Account, owed, amount money.Cents) Entry {
	if amount <= 0 {
		return Entry{Kind: kind}
	}
	debt := min(-owed, amount)
	e := Entry{Kind: kind, Postings: make([]Posting, 0, 3)}
	e.Postings = append(e.Postings, Posting{from, -amount})
	if debt > 0 {
		e.Postings = append(e.Postings, Posting{Owed, debt})
	}
	if rest := amount - max(debt, 0); rest > 0 {
		e.Postings = append(e.Postings, Posting{Available, rest})
	}
	return e
}
