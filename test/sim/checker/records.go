package checker

import "time"

// Kinds of orders.
const (
	Payin  = "payin"
	Payout = "payout"
	Refund = "refund"
)

// Records are the records of the other parties at one time: the clients, the bank and the
// receivers of webhooks. None of it comes from the gateway's database. All lists only
// grow from one call of [Checker.Compare] to the next.
type Records struct {
	Orders     []*ClientOrder
	Transfers  []BankTransfer
	Payments   []BankPayment
	Charges    []BankCharge
	Refunds    []BankRefund
	Disputes   []BankDispute
	Deliveries []ReceivedDelivery
	Endpoints  []*ClientEndpoint
}

// ClientOrder is a client's record of an order: the request, and the first answer
// that acknowledged it. Nothing here is of the gateway's own types: ids are the texts of
// the API.
type ClientOrder struct {
	Kind       string // Payin, Payout or Refund
	Merchant   string // UUID
	Reference  string
	Amount     int64 // cents; 0 for a refund of all that is left, until it is acknowledged
	Method     string
	PIXKey     string // of a payout
	WebhookURL string // of a refund: that of its pay-in

	ID         string // "" until acknowledged
	ExternalID string
	Rejected   bool // a rejection was answered 200
	Canceled   bool // a cancellation was answered 200
	Refused    bool // it was refused for good; a copy of the database may have it all the same
}

// BankTransfer is a transfer in the bank's records.
type BankTransfer struct {
	ExternalID string
	Amount     int64  // cents
	Returned   int64  // cents
	State      string // processing, paid or failed
	EndToEndID string
	ID         string // the bank's own
}

// left is what a transfer has taken from the account, or may still take.
func (t *BankTransfer) left() int64 {
	if t.State == "failed" {
		return 0
	}
	return t.Amount - t.Returned
}

// BankPayment is a payment in the bank's records.
type BankPayment struct {
	ID         string
	ExternalID string // of the charge that it pays; maybe of no order
	Amount     int64  // cents
	EndToEndID string
}

// BankCharge is a charge that the bank registered.
type BankCharge struct {
	ExternalID string
	Amount     int64 // cents
	Ended      bool  // it was canceled, or has expired or failed
	Account    string
}

// ReceivedDelivery is a delivery that reached a receiver, with any answer, and even if the answer
// did not reach the gateway.
type ReceivedDelivery struct {
	Merchant string // UUID
	URL      string
	EventID  string // header webhook-id
	Body     []byte
	Answer   int // HTTP status; 0 if no answer left
	At       time.Time
	Endpoint bool // at a webhook endpoint
}
