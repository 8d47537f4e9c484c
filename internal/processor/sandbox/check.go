package sandbox

import (
	"slices"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// The gateway stores a bank's answers only if they pass these checks. Without
// them a value could fail forever (a NUL, which PostgreSQL rejects). The charge
// that a payer is shown is compared with the order by [processor.CheckCharge], for all drivers.

// Longest texts of a bank, in bytes.
const (
	tokenMax   = 64
	messageMax = 500
)

// isToken reports whether s can be an id or a code: visible ASCII.
func isToken(s string) bool {
	if s == "" || len(s) > tokenMax {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func isTokenOrNone(s string) bool { return s == "" || isToken(s) }

func isAmount(c money.Cents) bool { return c >= 1 && c <= money.Max }

// validPayment reports whether the payment can be booked.
func validPayment(p *bankapi.Payment) bool {
	return isToken(p.ID) && bankapi.IsExternalID(p.ExternalID) && isTokenOrNone(p.EndToEndID) && isAmount(p.Amount)
}

func validDispute(d bankapi.Dispute) bool {
	return isToken(d.ID) && isTokenOrNone(d.PaymentID) && isAmount(d.Amount) && d.Lost >= 0 && d.Lost <= d.Amount &&
		(d.Kind == "" || slices.Contains(payment.DisputeKinds, payment.DisputeKind(d.Kind))) && len(d.Reason) <= messageMax && bankapi.IsText(d.Reason)
}

// validFailure is the failure if it can be shown, else nil.
func validFailure(f *bankapi.Failure) *payment.Failure {
	if f == nil || !isToken(f.Code) || len(f.Message) > messageMax || !bankapi.IsText(f.Message) {
		return nil
	}
	return (*payment.Failure)(f)
}
