package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// books are the four books, and what the gateway says when it is asked again.
type books struct {
	// The clients'.
	asked []*asked

	// The gateway's: what its API shows.
	orders  map[string][]order // by kind: all that it lists
	read    map[string]reading // by kind and id: what was acknowledged, read back
	again   map[string]echo    // by kind and reference: what asking again gets
	events  []event            // oldest first
	balance balance
	verify  string // what porteira verify objects to

	// The bank's.
	transfers []transfer
	payments  []payment

	// The receivers'.
	deliveries []delivery
}

// order is a pay-in or payout as the API shows it, as far as it is compared.
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

	whole json.RawMessage // as it came
}

// UnmarshalJSON keeps the whole beside the fields.
func (o *order) UnmarshalJSON(text []byte) error {
	type plain order
	if err := json.Unmarshal(text, (*plain)(o)); err != nil {
		return err
	}
	o.whole = append(json.RawMessage(nil), text...)
	return nil
}

// orderOf reads an order; what cannot be read is an order without an id.
func orderOf(body []byte) (o order) {
	if json.Unmarshal(body, &o) != nil {
		return order{whole: body}
	}
	return o
}

// cents are an amount: pay-ins show a number, payouts a string of digits.
type cents int64

// UnmarshalJSON implements [json.Unmarshaler].
func (c *cents) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	*c = cents(n)
	return err
}

// reading is what reading an order by its id got.
type reading struct {
	status int
	order  order
}

// echo is what asking again got.
type echo struct {
	status   int
	replayed bool
	order    order
	// The same reference with another body.
	otherStatus int
	otherCode   string
	otherFields []string
}

// event is an event as the gateway lists it. Its place in the list is its
// place in time.
type event struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Version int    `json:"version"`
	Data    order  `json:"data"`

	digest string
}

// balance is what the merchant is told of its money.
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

// violation is something that must not be. It names the order concerned, if it
// is about one, and what each book says of it.
type violation struct {
	kind      string
	reference string
	id        string
	external  string
	says      []string
}

func (v violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "VIOLATION: %s", strings.ToUpper(v.kind))
	if v.reference != "" || v.id != "" || v.external != "" {
		fmt.Fprintf(&text, "\n  order      reference %q, id %q, externalId %q", v.reference, v.id, v.external)
	}
	for _, line := range v.says {
		fmt.Fprintf(&text, "\n  %s", strings.ReplaceAll(strings.TrimSpace(line), "\n", "\n    "))
	}
	return text.String() + "\n"
}
