package sandbox

import (
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// chargeBody is a charge as the bank shows it.
type chargeBody struct {
	ExternalID string                `json:"externalId"`
	Method     payment.Method        `json:"method"`
	Amount     money.Cents           `json:"amount"`
	State      processor.ChargeState `json:"state"`
	ExpiresAt  time.Time             `json:"expiresAt"`
	PIX        *payment.PIXDetail    `json:"pix,omitempty"`
	Boleto     *payment.BoletoDetail `json:"boleto,omitempty"`
	Payments   []paymentBody         `json:"payments,omitempty"`
	Disputes   []disputeBody         `json:"disputes,omitempty"`
	Failure    *payment.Failure      `json:"failure,omitempty"`
	Attempt    int                   `json:"attempt,omitzero"` // of a card, the last that was refused
}

// paymentBody is a payment as the bank shows it.
type paymentBody struct {
	ID         string              `json:"id"`
	ExternalID string              `json:"externalId"`
	EndToEndID string              `json:"endToEndId,omitempty"`
	Amount     money.Cents         `json:"amount"`
	PaidAt     time.Time           `json:"paidAt"`
	Card       *payment.CardDetail `json:"card,omitempty"`
}

// disputeBody is a dispute as the bank shows it.
type disputeBody struct {
	ID     string                 `json:"id"`
	Amount money.Cents            `json:"amount"`
	State  processor.DisputeState `json:"state"`
}

func (p *paid) body() paymentBody {
	return paymentBody{
		ID: p.ID, ExternalID: p.ExternalID, EndToEndID: p.EndToEndID,
		Amount: p.Amount, PaidAt: p.paidAt, Card: p.Card,
	}
}

// body shows the charge with what its payer needs, which follows from its
// terms alone.
func (c *charge) body(now time.Time) (chargeBody, error) {
	body := chargeBody{
		ExternalID: c.externalID, Method: c.terms.Method, Amount: c.terms.Amount,
		State: c.stateAt(now), ExpiresAt: c.terms.ExpiresAt, Failure: c.failure.failure(),
	}
	if c.failure != "" {
		body.Attempt = c.attempt
	}
	minted, err := mint(c.externalID, c.terms)
	if err != nil {
		return chargeBody{}, err
	}
	body.PIX, body.Boleto = minted.PIX, minted.Boleto
	for _, p := range c.payments {
		body.Payments = append(body.Payments, p.body())
		for _, d := range p.disputes {
			body.Disputes = append(body.Disputes, disputeBody{d.ID, d.Amount, d.State})
		}
	}
	return body, nil
}

// valid says whether a charge can be registered under these terms.
func (t chargeTerms) valid(externalID string) bool {
	if !isExternalID(externalID) || !isPaymentMethod(t.Method) ||
		t.Amount < 1 || t.Amount > money.Max || t.ExpiresAt.IsZero() {
		return false
	}
	if t.Method != payment.Boleto && t.DueDate != "" {
		return false
	}
	_, err := mint(externalID, t) // what nobody could pay is no charge
	return err == nil
}

// externalIDMax is the longest id that API Pix of Banco Central knows (schemas
// TxId and IdEnvio).
const externalIDMax = 35

// isExternalID accepts what may be an id of a gateway's order.
func isExternalID(s string) bool {
	if s == "" || len(s) > externalIDMax {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// putCharge registers a charge, or shows the one that is there.
func (b *Bank) putCharge(externalID string, terms chargeTerms, fault Kind) (body chargeBody, err error) {
	if !terms.valid(externalID) {
		return body, codeRequestInvalid
	}
	err = b.do(func(now time.Time) error {
		c := b.books.charges[externalID]
		if c == nil {
			made := &chargeMade{ExternalID: externalID, Terms: terms}
			switch {
			case fault == Refuse:
				made.Refusal = codeChargeRefused
			case fault.notifies():
				made.NotifyFault = fault
			}
			if err := b.commit(now, &record{Charge: made}); err != nil {
				return err
			}
			c = b.books.charges[externalID]
		}
		switch {
		case !c.terms.sameTerms(terms):
			return codeContentDiffers
		case c.failure == codeChargeRefused:
			return c.failure
		}
		body, err = c.body(now)
		return err
	})
	return body, err
}

// getCharge shows a charge.
func (b *Bank) getCharge(externalID string) (body chargeBody, err error) {
	err = b.do(func(now time.Time) error {
		c := b.books.charges[externalID]
		if c == nil {
			return codeChargeUnknown
		}
		body, err = c.body(now)
		return err
	})
	return body, err
}

// chargeOrder is what a control route may say about a charge.
type chargeOrder struct {
	// Terms registers a charge that the bank has not seen, as it was minted
	// without a call.
	Terms *chargeTerms `json:"charge,omitempty"`
	// Amount that is paid, in cents; the charge's own where it is 0.
	Amount money.Cents `json:"amount,omitzero"`
	// Method by which it is paid: a bill may be paid by Pix.
	Method payment.Method `json:"method,omitempty"`
	// Attempt lets only one attempt fail: another card may follow.
	Attempt bool `json:"attempt,omitzero"`
}

// forceCharge does to a charge what a payer, a card issuer or time would.
func (b *Bank) forceCharge(externalID, verb string, order chargeOrder) (body chargeBody, err error) {
	err = b.do(func(now time.Time) error {
		c, err := b.knownCharge(now, externalID, order.Terms)
		if err != nil {
			return err
		}
		switch verb {
		case "pay":
			err = b.pay(now, c, order)
		case "expire":
			err = b.endCharge(now, c, processor.ChargeExpired, "")
		case "fail":
			err = b.failCharge(now, c, order.Attempt)
		case "dispute", "win", "lose":
			err = b.moveDispute(now, c, verb)
		default:
			err = codeNotFound
		}
		if err != nil {
			return err
		}
		body, err = c.body(now)
		return err
	})
	return body, err
}

// knownCharge finds a charge, or registers it.
func (b *Bank) knownCharge(now time.Time, externalID string, terms *chargeTerms) (*charge, error) {
	if c := b.books.charges[externalID]; c != nil {
		return c, nil
	}
	if terms == nil {
		return nil, codeChargeUnknown
	}
	if !terms.valid(externalID) {
		return nil, codeRequestInvalid
	}
	err := b.commit(now, &record{Charge: &chargeMade{ExternalID: externalID, Terms: *terms}})
	return b.books.charges[externalID], err
}

// pay lets money come in. Late, double, short and over payments are real, so
// only a charge that failed is beyond it.
func (b *Bank) pay(now time.Time, c *charge, order chargeOrder) error {
	method := order.Method
	if method == "" {
		method = c.terms.Method
	}
	amount := order.Amount
	if amount == 0 {
		amount = c.terms.Amount
	}
	switch {
	case c.state == processor.ChargeFailed:
		return codeStateForbids
	case amount < 1 || amount > money.Max,
		method != c.terms.Method && (method != payment.PIX || c.terms.Method != payment.Boleto):
		return codeRequestInvalid
	}
	p := &paymentMade{ExternalID: c.externalID, Amount: amount}
	switch method {
	case payment.PIX:
		p.EndToEndID = b.newEndToEndID(now)
		p.ID = p.EndToEndID
	case payment.CreditCard:
		p.ID = "card-" + b.newID(now)
		p.Card = &payment.CardDetail{Brand: "visa", Last4: "1111", Installments: 1}
	default:
		p.ID = "bill-" + b.newID(now)
	}
	return b.commit(now, &record{Payment: p, Notice: b.newID(now)})
}

// endCharge ends an unpaid charge; again, it says so again.
func (b *Bank) endCharge(now time.Time, c *charge, state processor.ChargeState, why failureCode) error {
	if len(c.payments) > 0 || (c.state != processor.ChargeOpen && c.state != state) {
		return codeStateForbids
	}
	end := &chargeEnd{ExternalID: c.externalID, State: state, Failure: why}
	if why == codeCardDeclined {
		end.Attempt = c.attempt + 1
	}
	return b.commit(now, &record{ChargeEnd: end, Notice: b.newID(now)})
}

func (b *Bank) failCharge(now time.Time, c *charge, attempt bool) error {
	switch {
	case !attempt:
		return b.endCharge(now, c, processor.ChargeFailed, codeChargeFailed)
	case c.terms.Method != payment.CreditCard:
		return codeRequestInvalid
	default:
		return b.endCharge(now, c, processor.ChargeOpen, codeCardDeclined)
	}
}

// moveDispute opens a dispute of the charge's latest payment, or decides it:
// win and lose are the merchant's. To win what was lost reverses it.
func (b *Bank) moveDispute(now time.Time, c *charge, verb string) error {
	if len(c.payments) == 0 {
		return codeStateForbids
	}
	p := c.payments[len(c.payments)-1]
	last := p.lastDispute()
	moved := &disputeMoved{ExternalID: c.externalID, PaymentID: p.ID}
	if last != nil {
		*moved = *last
	}
	is := func(state processor.DisputeState) bool { return last != nil && last.State == state }
	switch {
	case verb == "dispute":
		if is(processor.DisputeOpen) || p.refundable() < 1 {
			return codeStateForbids
		}
		moved.ID, moved.Amount, moved.State = b.newID(now), p.refundable(), processor.DisputeOpen
	case verb == "win" && is(processor.DisputeOpen):
		moved.State = processor.DisputeWon
	case verb == "win" && is(processor.DisputeLost):
		moved.State = processor.DisputeReversed
	case verb == "lose" && is(processor.DisputeOpen):
		moved.State = processor.DisputeLost
	default:
		return codeStateForbids
	}
	return b.commit(now, &record{Dispute: moved, Notice: b.newID(now)})
}

// paymentPage is a page of the list of payments.
type paymentPage struct {
	Data       []paymentBody `json:"data"`
	NextCursor string        `json:"nextCursor"`
}

// paymentsAfter lists payments in the order in which they came in.
func (b *Bank) paymentsAfter(cursor string, limit int) (page paymentPage, err error) {
	err = b.do(func(time.Time) error {
		from, ok := readCursor(cursor, len(b.books.payments))
		if !ok {
			return codeRequestInvalid
		}
		to := min(from+limit, len(b.books.payments))
		page.Data = make([]paymentBody, 0, to-from)
		for _, p := range b.books.payments[from:to] {
			page.Data = append(page.Data, p.body())
		}
		page.NextCursor = writeCursor(to)
		return nil
	})
	return page, err
}

// bankISPB leads the ids of Pix payments that this bank makes up. An ISPB is
// the root of a CNPJ; no participant has this one.
const bankISPB = "99999999"

// newEndToEndID makes an id of a Pix: E, ISPB, the minute in UTC and eleven
// letters or digits (API Pix of Banco Central, schema EndToEndId).
func (b *Bank) newEndToEndID(now time.Time) string {
	const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	id := b.opts.IDs.NewID(now)
	var word uint64
	for _, c := range id[8:] {
		word = word<<8 | uint64(c)
	}
	var text strings.Builder
	text.WriteString("E" + bankISPB + now.UTC().Format("200601021504"))
	for range 11 {
		text.WriteByte(base62[word%62])
		word /= 62
	}
	return text.String()
}
