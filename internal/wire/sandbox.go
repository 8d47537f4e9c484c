package wire

import (
	"slices"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Limits of the sandbox's controls.
const (
	faultCountMax = 1_000_000
	advanceMax    = 10 * 365 * 24 * time.Hour
)

const (
	faultRegistering = "registering" // a fault of charges only
	faultCredentials = "credentials" // an operation that is refused only
)

var (
	faultOperations = []string{"charge", "transfer", "refund", "defense", "query", faultCredentials}
	faultKinds      = []string{
		"refuse", "not_sent", "later", "known", "timeout_before", "timeout_after", "server_error_after", "late", "rubbish",
		"notify_twice", "notify_reordered", "notify_never", faultRegistering,
	}
)

// SandboxPayin is the body of POST /sandbox/payin/{id}/{action}. A field is zero if it was not
// sent.
type SandboxPayin struct {
	Amount           money.Cents         // of pay, dispute, block and lose
	Kind             payment.DisputeKind // of dispute and block
	Reason           string              // of dispute and block
	RespondInSeconds int64               // of dispute
}

// sandboxFields are the fields that each action may have; others have none.
var sandboxFields = map[string][]string{
	"pay": {"amount"}, "dispute": {"kind", "amount", "reason", "respondInSeconds"}, "block": {"kind", "amount", "reason"}, "lose": {"amount"},
}

// respondInMax is the longest time in which a dispute of the sandbox can be defended.
const respondInMax = 365 * 24 * 60 * 60

// DecodeSandboxPayin decodes the body of POST /sandbox/payin/{id}/{action}. The body may be
// empty.
func DecodeSandboxPayin(body []byte, action string) (p SandboxPayin, invalid *problem.Error) {
	if len(body) == 0 {
		return p, nil
	}
	var amount, respondIn Field[int64]
	var kind, reason Field[string]
	invalid = decode(body, func(body value) {
		errs := &body.r.errs
		for v := range body.children() {
			switch name := v.name(); name {
			case "amount":
				amount = v.cents()
			case "kind":
				kind = v.text()
			case "reason":
				reason = v.text()
			case "respondInSeconds":
				respondIn = v.integer()
			default:
				v.failUnknown()
				continue
			}
			if !slices.Contains(sandboxFields[action], v.name()) {
				errs.Add(At("", v.name()), problem.CodeNotAllowed, "is not allowed for "+action)
			}
		}
		if amount.Set {
			errs.number(At("", "amount"), amount.V, 1, int64(money.Max))
		}
		if kind.Set {
			errs.oneOf(At("", "kind"), kind, []string{string(payment.KindChargeback), string(payment.KindMED)})
		}
		if reason.Set {
			errs.text(At("", "reason"), reason.V, textMax)
		}
		if respondIn.Set {
			errs.number(At("", "respondInSeconds"), respondIn.V, 1, respondInMax)
		}
	})
	return SandboxPayin{money.Cents(amount.V), payment.DisputeKind(kind.V), reason.V, respondIn.V}, invalid
}

// SandboxFault is the body of POST /sandbox/faults.
type SandboxFault struct {
	Operation string
	Kind      string
	Count     int    // calls that it affects
	Account   string // whose calls; "" is the bank's own contract
}

// DecodeSandboxFault decodes and validates the body of POST /sandbox/faults.
func DecodeSandboxFault(body []byte) (SandboxFault, *problem.Error) {
	var operation, kind, account Field[string]
	count := Some[int64](1)
	err := decode(body, func(body value) {
		for v := range body.children() {
			switch v.name() {
			case "operation":
				operation = v.text()
			case "kind":
				kind = v.text()
			case "count":
				if sent := v.integer(); sent.Set {
					count = sent
				}
			case "account":
				account = v.text()
			default:
				v.failUnknown()
			}
		}
		errs := &body.r.errs
		errs.number(At("", "count"), count.V, 1, faultCountMax)
		errs.oneOf(At("", "operation"), operation, faultOperations)
		errs.oneOf(At("", "kind"), kind, faultKinds)
		if kind.V == faultRegistering && operation.V != faultOperations[0] {
			errs.Add(At("", "kind"), problem.CodeNotAllowed, "is only allowed for charge")
		}
		if operation.V == faultCredentials && kind.V != faultKinds[0] {
			errs.Add(At("", "kind"), problem.CodeNotAllowed, "must be refuse for credentials")
		}
	})
	return SandboxFault{operation.V, kind.V, int(count.V), account.V}, err
}

// DecodeSandboxClock decodes the body of POST /sandbox/clock: how far to advance
// the clock.
func DecodeSandboxClock(body []byte) (time.Duration, *problem.Error) {
	var advance Field[int64]
	err := decode(body, func(body value) {
		for v := range body.children() {
			if v.name() == "advance" {
				advance = v.integer()
			} else {
				v.failUnknown()
			}
		}
		if p, errs := At("", "advance"), &body.r.errs; errs.require(p, advance.Set) {
			errs.number(p, advance.V, 1, int64(advanceMax/time.Second))
		}
	})
	return time.Duration(advance.V) * time.Second, err
}

// SandboxTransfer is a transfer in the ledger of the sandbox's bank.
type SandboxTransfer struct {
	ExternalID string
	Amount     money.Cents
	PIXKey     string
	EndToEndID string
	Status     string // processing, paid, failed or returned
	CreatedAt  time.Time
}

type sandboxTransferView struct {
	ExternalID string      `json:"externalId"`
	Amount     money.Cents `json:"amount"`
	PIXKey     string      `json:"pixKey"`
	EndToEndID string      `json:"endToEndId"`
	Status     string      `json:"status"`
	CreatedAt  Timestamp   `json:"createdAt"`
}

// SandboxTransfers is the answer of GET /sandbox/processor/transfers.
func SandboxTransfers(list []SandboxTransfer) ([]byte, error) {
	views := make([]sandboxTransferView, len(list))
	for i, t := range list {
		views[i] = sandboxTransferView{t.ExternalID, t.Amount, t.PIXKey, t.EndToEndID, t.Status, TimestampOf(t.CreatedAt)}
	}
	return marshalList(views)
}
