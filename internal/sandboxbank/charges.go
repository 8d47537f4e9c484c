package sandboxbank

import (
	"strings"
	"time"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

func (p *receipt) shown() bankapi.Payment {
	return bankapi.Payment{
		ID: p.ID, ExternalID: p.ExternalID, EndToEndID: p.EndToEndID,
		Amount: p.Amount, PaidAt: p.paidAt, Card: p.Card,
	}
}

// shown is the charge as the bank shows it at the bank's time, with its payer's
// instructions, which follow from its terms.
func (c *charge) shown(now time.Time) (bankapi.Charge, error) {
	shown := bankapi.Charge{
		ExternalID: c.externalID, Method: c.terms.Method, Amount: c.terms.Amount,
		State: c.stateAt(now), ExpiresAt: c.terms.ExpiresAt, Failure: c.failure.Failure(),
	}
	if c.failure != "" {
		shown.Attempt = c.attempt
	}
	instructions, err := bankapi.Instruct(c.externalID, c.terms)
	if err != nil {
		return bankapi.Charge{}, err
	}
	if shown.State != bankapi.ChargeRegistering {
		shown.PIX, shown.Boleto = instructions.PIX, instructions.Boleto
	}
	for _, p := range c.payments {
		shown.Payments = append(shown.Payments, p.shown())
		for _, d := range p.disputes {
			shown.Disputes = append(shown.Disputes, d.shown())
		}
	}
	return shown, nil
}

// registrationTime is how long a charge with the fault Registering takes.
const registrationTime = 10 * time.Second

// validCharge reports whether a charge can be registered under these terms.
func validCharge(externalID string, t *bankapi.ChargeTerms) bool {
	switch t.Method {
	case bankapi.MethodPIX, bankapi.MethodCreditCard:
		if t.DueDate != "" {
			return false
		}
	case bankapi.MethodBoleto:
	default:
		return false
	}
	if !bankapi.IsExternalID(externalID) || t.Amount < 1 || t.Amount > money.Max || t.ExpiresAt.IsZero() {
		return false
	}
	_, err := bankapi.Instruct(externalID, *t) // a charge that nobody could pay is refused
	return err == nil
}

// sameTerms reports whether two requests describe the same charge. The merchant's
// name may have been corrected between them.
func sameTerms(a, b *bankapi.ChargeTerms) bool {
	return a.Method == b.Method && a.Amount == b.Amount &&
		a.DueDate == b.DueDate && a.ExpiresAt.Equal(b.ExpiresAt)
}

// putCharge registers a charge, or shows the one under this id.
func (b *Bank) putCharge(externalID string, terms bankapi.ChargeTerms, fault bankapi.FaultKind) (shown bankapi.Charge, err error) {
	if !validCharge(externalID, &terms) {
		return shown, bankapi.CodeRequestInvalid
	}
	err = b.do(func(now time.Time) error {
		c := b.ledger.charges[externalID]
		if c == nil {
			created := &chargeCreated{ExternalID: externalID, Terms: terms}
			switch {
			case fault == bankapi.Refuse:
				created.Refusal = bankapi.CodeChargeRefused
			case fault == bankapi.Registering:
				created.ReadyAt = now.Add(registrationTime)
			case fault.Notifies():
				created.NotifyFault = fault
			}
			if err := b.commit(now, &record{Charge: created}); err != nil {
				return err
			}
			c = b.ledger.charges[externalID]
		}
		switch {
		case !sameTerms(&c.terms, &terms):
			return bankapi.CodeContentDiffers
		case c.failure == bankapi.CodeChargeRefused:
			return c.failure
		}
		shown, err = c.shown(now)
		return err
	})
	return shown, err
}

// getCharge shows a charge.
func (b *Bank) getCharge(externalID string) (shown bankapi.Charge, err error) {
	err = b.do(func(now time.Time) error {
		c := b.ledger.charges[externalID]
		if c == nil {
			return bankapi.CodeChargeUnknown
		}
		shown, err = c.shown(now)
		return err
	})
	return shown, err
}

// cancelCharge cancels an unpaid charge, so that it cannot be paid any more; again, it shows
// the same. One that has expired or failed stays as it is.
func (b *Bank) cancelCharge(externalID string) (shown bankapi.Charge, err error) {
	err = b.do(func(now time.Time) error {
		c := b.ledger.charges[externalID]
		switch {
		case c == nil:
			return bankapi.CodeChargeUnknown
		case len(c.payments) > 0 || c.state == bankapi.ChargeAnalysis:
			return bankapi.CodeStateForbids
		case c.state == bankapi.ChargeOpen:
			end := &chargeEnded{ExternalID: externalID, State: bankapi.ChargeCanceled}
			if err := b.commit(now, &record{ChargeEnd: end}); err != nil {
				return err
			}
		}
		shown, err = c.shown(now)
		return err
	})
	return shown, err
}

// forceCharge simulates a payer, a card issuer or the passing of time.
func (b *Bank) forceCharge(externalID, action string, how bankapi.ForceCharge) (shown bankapi.Charge, err error) {
	err = b.do(func(now time.Time) error {
		c, err := b.ensureCharge(now, externalID, how.Terms)
		if err != nil {
			return err
		}
		switch action {
		case "pay":
			err = b.pay(now, c, how)
		case "expire":
			err = b.endCharge(now, c, bankapi.ChargeExpired, "")
		case "fail":
			err = b.failCharge(now, c, how.Attempt)
		case "dispute", "win", "lose":
			err = b.changeDispute(now, c, action, &how)
		default:
			err = bankapi.CodeNotFound
		}
		if err != nil {
			return err
		}
		shown, err = c.shown(now)
		return err
	})
	return shown, err
}

// ensureCharge finds a charge, or registers it.
func (b *Bank) ensureCharge(now time.Time, externalID string, terms *bankapi.ChargeTerms) (*charge, error) {
	if c := b.ledger.charges[externalID]; c != nil {
		return c, nil
	}
	if terms == nil {
		return nil, bankapi.CodeChargeUnknown
	}
	if !validCharge(externalID, terms) {
		return nil, bankapi.CodeRequestInvalid
	}
	err := b.commit(now, &record{Charge: &chargeCreated{ExternalID: externalID, Terms: *terms}})
	return b.ledger.charges[externalID], err
}

// pay receives money. Late, double, short and over payments happen in practice,
// so only a charge that failed or was canceled cannot be paid.
func (b *Bank) pay(now time.Time, c *charge, how bankapi.ForceCharge) error {
	method := how.Method
	if method == "" {
		method = c.terms.Method
	}
	amount := how.Amount
	if amount == 0 {
		amount = c.terms.Amount
	}
	switch {
	case c.state == bankapi.ChargeFailed || c.state == bankapi.ChargeCanceled:
		return bankapi.CodeStateForbids
	case amount < 1 || amount > money.Max,
		method != c.terms.Method && (method != bankapi.MethodPIX || c.terms.Method != bankapi.MethodBoleto):
		return bankapi.CodeRequestInvalid
	}
	p := &paymentReceived{ExternalID: c.externalID, Amount: amount}
	switch method {
	case bankapi.MethodPIX:
		p.EndToEndID = b.newEndToEndID(now)
		p.ID = p.EndToEndID
	case bankapi.MethodCreditCard:
		p.ID = "card-" + b.newID(now)
		p.Card = &bankapi.Card{Brand: "visa", Last4: "1111", Installments: 1}
	default:
		p.ID = "bill-" + b.newID(now)
	}
	return b.commit(now, &record{Payment: p, Notice: b.newID(now)})
}

// endCharge ends an unpaid charge; repeated, it sends the notice of the end
// again.
func (b *Bank) endCharge(now time.Time, c *charge, state bankapi.ChargeState, why bankapi.Code) error {
	if c.received() >= c.terms.Amount || (c.state != bankapi.ChargeOpen && c.state != state) {
		return bankapi.CodeStateForbids
	}
	end := &chargeEnded{ExternalID: c.externalID, State: state, Failure: why}
	if why == bankapi.CodeCardDeclined {
		end.Attempt = c.attempt + 1
	}
	return b.commit(now, &record{ChargeEnd: end, Notice: b.newID(now)})
}

// received is what was paid of a charge so far, in cents.
func (c *charge) received() (sum money.Cents) {
	for _, p := range c.payments {
		sum += p.Amount
	}
	return sum
}

func (b *Bank) failCharge(now time.Time, c *charge, attempt bool) error {
	switch {
	case !attempt:
		return b.endCharge(now, c, bankapi.ChargeFailed, bankapi.CodeChargeFailed)
	case c.terms.Method != bankapi.MethodCreditCard:
		return bankapi.CodeRequestInvalid
	default:
		return b.endCharge(now, c, bankapi.ChargeOpen, bankapi.CodeCardDeclined)
	}
}

// bankISPB begins the ids of Pix payments that this bank issues. An ISPB is the
// root of a CNPJ; no participant has this one.
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
