package processor

import (
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/money"
)

// RawNotice is a request of a processor as it arrived.
type RawNotice struct {
	Header http.Header
	Body   []byte
	At     time.Time
}

// Question asks for our consent to a transfer that the processor has accepted and not
// executed.
type Question struct {
	Transfer   string // the processor's id of the transfer, which reports name too
	ExternalID string // ours; it may be another program's
	Amount     money.Cents
	Key        string // the receiver's Pix key, in its normal form
	// OtherKey is a second reading of the key, if the processor's form fits two types; "" if
	// it does not.
	OtherKey string
	// Refusal is why there is no consent, whatever the question is about; "" if that depends on it.
	Refusal string
}

// IsTo reports whether the transfer is to a Pix key in its normal form.
func (q *Question) IsTo(key string) bool {
	return key != "" && (key == q.Key || key == q.OtherKey)
}

// Authorizer is a processor that asks before it executes a transfer: see
// [Effect.Consent]. It executes a transfer only if the answer approves it.
type Authorizer interface {
	// Question authenticates and reads a question. Any doubt is an error.
	Question(n RawNotice) (Question, error)
	// Reply is the answer to a question. why is the reason of a refusal, in English.
	Reply(approve bool, why string) (status int, contentType string, body []byte)
}
