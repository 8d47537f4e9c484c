package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// records are the records of the clients, the gateway, the bank and the receivers, and the
// gateway's answers to repeated requests.
type records struct {
	// The clients'.
	placements []*placement

	// The gateway's, by its API.
	orders  map[string][]order  // by kind: all that it lists
	read    map[string]readBack // by kind and id: acknowledged orders, read by id
	repeats map[string]repeat   // by kind and reference: every request, sent again
	events  []event             // oldest first
	balance balance
	verify  string // objections of porteira verify

	// The bank's.
	transfers []transfer
	payments  []payment
	// paymentsUnknown means that the payments of an embedded bank cannot be read.
	paymentsUnknown bool

	// The receivers'.
	deliveries []delivery

	// bankFaults means that the bank had faults: refusals, timeouts or lost notices.
	bankFaults bool
	// restored means that an older backup replaced the database: an order that was
	// acknowledged after it may be created again, with the same identity at the bank.
	restored bool
}

// order is a pay-in or payout of the API, with the fields that are compared.
type order struct {
	ID             string `json:"id"`
	ExternalID     string `json:"externalId"`
	ReferenceID    string `json:"referenceId"`
	Status         string `json:"status"`
	Amount         cents  `json:"amount"`
	Currency       string `json:"currency"`
	PaymentMethod  string `json:"paymentMethod"`
	PIXKey         string `json:"pixKey"`
	PIXKeyType     string `json:"pixKeyType"`
	WebhookURL     string `json:"webhookUrl"`
	CreatedAt      string `json:"createdAt"`
	PaidAmount     cents  `json:"paidAmount"`
	EndToEndID     string `json:"endToEndId"`
	ReturnedAmount cents  `json:"returnedAmount"`
	Version        int    `json:"version"`
	PIX            struct {
		QRCode string `json:"qrcode"`
	} `json:"pix"`
	Boleto struct {
		Barcode string `json:"barcode"`
	} `json:"boleto"`

	raw json.RawMessage // as it was received
}

// UnmarshalJSON keeps the raw text beside the fields.
func (o *order) UnmarshalJSON(text []byte) error {
	type plain order
	if err := json.Unmarshal(text, (*plain)(o)); err != nil {
		return err
	}
	o.raw = append(json.RawMessage(nil), text...)
	return nil
}

// orderOf reads an order; invalid JSON is an order without an id.
func orderOf(body []byte) (o order) {
	if json.Unmarshal(body, &o) != nil {
		return order{raw: body}
	}
	return o
}

// cents are an amount: pay-ins have a number, payouts a string of digits.
type cents int64

// UnmarshalJSON implements [json.Unmarshaler].
func (c *cents) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*c = cents(n)
	return err
}

// readBack is the answer to a GET of an order by its id.
type readBack struct {
	status int
	order  order
}

// repeat is the answer to a repeated request.
type repeat struct {
	status   int
	replayed bool
	order    order
	// With the same reference and another amount.
	otherStatus int
	otherCode   string
	otherFields []string
}

// event is an event as the gateway lists it, in the order of the list.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Version int    `json:"version"`
	Data    order  `json:"data"`

	digest string
}

// balance is the merchant's balance.
type balance struct {
	Available cents `json:"available"`
	Pending   cents `json:"pending"`
	Held      cents `json:"held"`
	Disputed  cents `json:"disputed"`
	Unapplied cents `json:"unapplied"`
	Owed      cents `json:"owed"`
}

// transfer is money that the bank sent out.
type transfer struct {
	ExternalID string `json:"externalId"`
	Amount     cents  `json:"amount"`
	PIXKey     string `json:"pixKey"`
	EndToEndID string `json:"endToEndId"`
	Status     string `json:"status"` // processing, paid, failed or returned
}

// payment is money that came in at the bank.
type payment struct {
	ID         string `json:"id"`
	ExternalID string `json:"externalId"`
	EndToEndID string `json:"endToEndId"`
	Amount     cents  `json:"amount"`
}

// violation is something that must not happen. It names the order concerned, if
// there is one, and what each record contains about it.
type violation struct {
	kind      string
	reference string
	id        string
	external  string
	details   []string
}

func (v violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "VIOLATION: %s", strings.ToUpper(v.kind))
	if v.reference != "" || v.id != "" || v.external != "" {
		fmt.Fprintf(&text, "\n  order      reference %q, id %q, externalId %q", v.reference, v.id, v.external)
	}
	for _, line := range v.details {
		fmt.Fprintf(&text, "\n  %s", strings.ReplaceAll(strings.TrimSpace(line), "\n", "\n    "))
	}
	return text.String() + "\n"
}
