package store

import (
	"slices"

	"github.com/porteira/porteira/internal/payment"
)

// receiptParam is the payment that unapplied money is of.
const receiptParam = "receipt"

// Parameters of a case about a transfer that a processor lists. Personal data is masked.
const (
	ParamEndToEndID = "endToEndId"
	ParamSentAt     = "sentAt" // RFC 3339
	ParamPIXKey     = "pixKey"
	ParamReceiver   = "receiver"
)

// OfReceipt are the parameters of a case about unapplied money: the payment that it is of. A dispute
// may name none; then the zero id gives none.
func OfReceipt(receipt payment.ID) Params {
	if receipt.IsZero() {
		return nil
	}
	return Params{receiptParam: receipt.String()}
}

// Rest is a case about the rest of a case's unapplied money, in cents.
func (v *Case) Rest(amount cents) Case {
	rest := Case{Merchant: v.Merchant, Kind: CaseOverpaid, Subject: v.Subject, Amount: amount}
	if of := v.Params[receiptParam]; of != "" {
		rest.Params = Params{receiptParam: of}
	}
	return rest
}

// MayBeOf reports whether the unapplied money that a case is about is of a payment, or names none.
func (v *Case) MayBeOf(receipt payment.ID) bool {
	of := v.Params[receiptParam]
	return of == "" || of == receipt.String()
}

// overpaidDisputed are the pay-ins whose disputes were loaded, and of one of whose payments more was
// received than was applied to them.
func (l *Loaded) overpaidDisputed(n *Needs) []Ref {
	return slices.DeleteFunc(l.disputedPayins(n), func(ref Ref) bool { return !l.overpaid[ref] })
}

// WrittenOff is what operators have written off of the surplus of a payment, or of all payments if
// receipt is zero, of a pay-in whose disputes were loaded, less what was brought back since, in cents.
func (l *Loaded) WrittenOff(merchant, payin, receipt payment.ID) (sum cents) {
	for _, v := range l.cases.rows {
		if v.Merchant != merchant || v.Subject != payin || v.Kind != CaseOverpaid || !receipt.IsZero() && !v.MayBeOf(receipt) {
			continue
		}
		if v.Resolution == ResolvedWriteOff {
			sum += v.Amount
		}
		if reason := v.Params.Reason(); reason == ReasonDisputed || reason == ReasonGivenBack {
			sum -= v.Amount
		}
	}
	return sum
}
