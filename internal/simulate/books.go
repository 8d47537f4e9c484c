package simulate

import "time"

// Kinds of orders.
const (
	payin  = "payin"
	payout = "payout"
)

// ack is a request as its client knows it: what was asked for, and the first
// answer that acknowledged it. Ids and amounts are texts and cents as JSON has
// them: nothing here is of the gateway's own types.
type ack struct {
	kind       string // payin or payout
	merchant   string // UUID
	reference  string
	amount     int64 // cents
	method     string
	webhookURL string
	body       []byte // of the request

	id         string // "" until acknowledged
	externalID string
	answer     []byte // the first 201
	canceled   bool   // a cancel was answered 200
}

// bankTransfer is a line of the bank's books of what went out.
type bankTransfer struct {
	externalID string
	amount     int64  // cents
	returned   int64  // cents
	state      string // processing, paid or failed
	endToEndID string
}

// bankPayment is a line of the bank's books of what came in.
type bankPayment struct {
	id         string
	externalID string // of the charge that it pays; may be nobody's
	amount     int64  // cents
	endToEndID string
}

// received is a delivery that reached a receiver, whatever it answered and
// whether the gateway heard of it.
type received struct {
	merchant string // UUID
	url      string
	eventID  string // header webhook-id
	body     []byte
	answer   int // HTTP status; 0 where the gateway heard nothing
	at       time.Time
}

// books are the four sets of books, as they are at one time: the clients', the
// bank's, the receivers'. The gateway's is its database.
type books struct {
	acks      []*ack
	transfers []bankTransfer
	payments  []bankPayment
	received  []received
}

// violation is a broken invariant.
type violation struct {
	invariant string // I1 to I11
	merchant  string // UUID
	order     string // UUID of the order, where one is concerned
	text      string
}
