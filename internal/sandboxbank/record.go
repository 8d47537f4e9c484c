package sandboxbank

import (
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// record is one line of the journal: one atomic change of the ledger. Exactly
// one of its parts is set, besides At and Notice.
type record struct {
	At        time.Time        `json:"at"` // the bank's time, UTC
	Charge    *chargeCreated   `json:"charge,omitempty"`
	ChargeEnd *chargeEnded     `json:"chargeEnd,omitempty"`
	Payment   *paymentReceived `json:"payment,omitempty"`
	Dispute   *disputeChanged  `json:"dispute,omitempty"`
	Defense   *defenseReceived `json:"defense,omitempty"`
	Challenge *cardPending     `json:"challenge,omitempty"`
	Analysis  *cardPending     `json:"analysis,omitempty"`
	Order     *orderCreated    `json:"order,omitempty"`
	OrderEnd  *orderChanged    `json:"orderEnd,omitempty"`
	Delayed   *orderDelayed    `json:"delayed,omitempty"`
	Approval  *orderApproved   `json:"approval,omitempty"`
	Listener  *listenerAdded   `json:"listener,omitempty"`
	// Offset is how far the bank's clock runs ahead, in microseconds.
	Offset int64 `json:"offset,omitzero"`
	// Closed are ids of notices that were delivered or given up.
	Closed []string `json:"closed,omitempty"`
	// Notice is the id of the notice that announces the change, if there is one.
	Notice string `json:"notice,omitempty"`
}

// chargeCreated registers a charge or, with Refusal, records that it was
// refused, which is final.
type chargeCreated struct {
	ExternalID  string              `json:"externalId"`
	Terms       bankapi.ChargeTerms `json:"terms"`
	Refusal     bankapi.Code        `json:"refusal,omitempty"`
	NotifyFault bankapi.FaultKind   `json:"notifyFault,omitempty"`
	ReadyAt     time.Time           `json:"readyAt,omitzero"` // its registration takes until then
}

// chargeEnded expires or fails a charge. An attempt that failed leaves it open.
type chargeEnded struct {
	ExternalID string              `json:"externalId"`
	State      bankapi.ChargeState `json:"state"`
	Failure    bankapi.Code        `json:"failure,omitempty"`
	Attempt    int                 `json:"attempt,omitzero"` // by card, from 1
}

// paymentReceived is money received for a charge.
type paymentReceived struct {
	ID         string        `json:"id"`
	ExternalID string        `json:"externalId"`
	EndToEndID string        `json:"endToEndId,omitempty"`
	Amount     money.Cents   `json:"amount"`
	Card       *bankapi.Card `json:"card,omitempty"`
	Attempt    int           `json:"attempt,omitzero"` // by card, from 1
}

// disputeChanged opens a dispute of a payment, or moves one.
type disputeChanged struct {
	ID         string               `json:"id"`
	ExternalID string               `json:"externalId"`
	PaymentID  string               `json:"paymentId"`
	Amount     money.Cents          `json:"amount"`
	State      bankapi.DisputeState `json:"state"`
	Kind       string               `json:"kind,omitempty"`
	Reason     string               `json:"reason,omitempty"`
	RespondBy  time.Time            `json:"respondBy,omitzero"`
	Blocked    bool                 `json:"blocked,omitzero"`
	Lost       money.Cents          `json:"lost,omitzero"` // 0 is all of it
}

// taken is what the dispute has taken from the account.
func (d *disputeChanged) taken() money.Cents {
	switch {
	case d.State != bankapi.DisputeLost:
		return 0
	case d.Lost > 0:
		return d.Lost
	default:
		return d.Amount
	}
}

// defenseReceived is the answer to a dispute: of its contents only the digest and a count.
type defenseReceived struct {
	DisputeID string `json:"disputeId"`
	Content   []byte `json:"content"` // SHA-256 of the request
	Accept    bool   `json:"accept,omitzero"`
	Files     int    `json:"files,omitzero"`
}

// cardPending is an attempt by card that waits for its payer or its issuer.
type cardPending struct {
	ExternalID string             `json:"externalId"`
	Attempt    int                `json:"attempt"`
	Result     bankapi.CardResult `json:"result"`
	Card       bankapi.Card       `json:"card"`
}

// orderCreated accepts an order to send money or, with Refusal, records that it
// was refused, which is final: a refused id never has an effect.
type orderCreated struct {
	ID          string            `json:"id,omitempty"` // the bank's own; none with Refusal
	Subject     bankapi.Subject   `json:"kind"`         // transfer or refund
	ExternalID  string            `json:"externalId"`
	Copy        int               `json:"copy,omitzero"` // requested again under the id
	Content     []byte            `json:"content"`       // SHA-256 of the request
	Amount      money.Cents       `json:"amount"`
	Key         string            `json:"key,omitempty"`       // transfers
	PaymentID   string            `json:"paymentId,omitempty"` // refunds
	EndToEndID  string            `json:"endToEndId,omitempty"`
	Refusal     bankapi.Code      `json:"refusal,omitempty"`
	NotifyFault bankapi.FaultKind `json:"notifyFault,omitempty"`
}

func (o *orderCreated) key() orderKey { return orderKey{o.Subject, o.ExternalID, o.Copy} }

// orderChanged moves an order: paid, failed, or paid and returned in part or in
// full.
type orderChanged struct {
	Subject    bankapi.Subject    `json:"kind"`
	ExternalID string             `json:"externalId"`
	Copy       int                `json:"copy,omitzero"`
	State      bankapi.OrderState `json:"state"`
	Returned   money.Cents        `json:"returned,omitzero"` // in all
	Failure    bankapi.Code       `json:"failure,omitempty"`
}

func (o *orderChanged) key() orderKey { return orderKey{o.Subject, o.ExternalID, o.Copy} }

// orderDelayed is an order that is queued until Due. Its caller got no answer.
type orderDelayed struct {
	Order orderCreated `json:"order"`
	Due   time.Time    `json:"due"`
}

// orderApproved records consent to a transfer.
type orderApproved struct {
	ExternalID string `json:"externalId"`
	Copy       int    `json:"copy,omitzero"`
}

func (o *orderApproved) key() orderKey {
	return orderKey{bankapi.SubjectTransfer, o.ExternalID, o.Copy}
}

// listenerAdded registers an address for notices until Expires.
type listenerAdded struct {
	URL     string    `json:"url"`
	Expires time.Time `json:"expires"`
}
