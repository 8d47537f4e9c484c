package sandbox

import (
	"strings"
	"unicode/utf8"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// Functions that say whether what a bank answered can be taken over into the
// gateway's books. What cannot is no answer: stored, it would fail for ever (a
// NUL, which PostgreSQL refuses) or mislead (a charge that nobody can pay).

// Lengths of texts that a bank may name, in bytes.
const (
	tokenMax   = 64
	messageMax = 500
)

// isToken says whether s can be an id or a code: ASCII that can be seen.
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

// fits says whether it is a payment that can be booked.
func (b *paymentBody) fits() bool {
	return isToken(b.ID) && isExternalID(b.ExternalID) && isTokenOrNone(b.EndToEndID) && isAmount(b.Amount)
}

func (b *disputeBody) fits() bool { return isToken(b.ID) && isAmount(b.Amount) }

// payable says whether the charge carries what its payer needs.
func (b *chargeBody) payable() bool {
	switch b.Method {
	case payment.PIX:
		if b.PIX == nil || !isTokenOrNone(b.PIX.TxID) {
			return false
		}
		_, err := brcode.Decode(b.PIX.QRCode)
		return err == nil
	case payment.Boleto:
		if b.Boleto == nil || !isTokenOrNone(b.Boleto.OurNumber) || !isTokenOrNone(b.Boleto.DueDate) {
			return false
		}
		line, err := boleto.Line(b.Boleto.Barcode)
		return err == nil && line == b.Boleto.DigitableLine
	default:
		return true
	}
}

// reason is why something failed as far as it can be shown; nil where it cannot.
func reason(f *payment.Failure) *payment.Failure {
	if f == nil || !isToken(f.Code) || len(f.Message) > messageMax || !isText(f.Message) {
		return nil
	}
	return f
}

// card is what is known of a card as far as it can be shown; nil where it cannot.
func card(c *payment.CardDetail) *payment.CardDetail {
	if c == nil || len(c.Brand) > tokenMax || len(c.Last4) > 4 || !isText(c.Brand) || !isText(c.Last4) {
		return nil
	}
	return c
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
