package processor

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/boleto"
	"github.com/porteira/porteira/brcode"
	"github.com/porteira/porteira/internal/payment"
)

// ChargeError says which part of a charge differs from the order that it is for, or is invalid. It
// repeats no value.
type ChargeError struct {
	// Field is a path in the answer of the API, as in boleto.dueDate.
	Field string
	// Reason is what is wrong, in English.
	Reason string
}

// Error implements error.
func (e *ChargeError) Error() string { return "processor: charge: " + e.Field + ": " + e.Reason }

// otherReceiver is why the money of a charge would go elsewhere.
const otherReceiver = "is of another receiver"

func differs(field, reason string) error { return &ChargeError{field, reason} }

// Bounds of what a processor may add to a charge.
const (
	processorIDMax = 64
	ourNumberMax   = 25
	brandMax       = 32
	hostedURLMax   = 2048
	codeAmount     = "54" // the field of a BR Code
	// expirySlack covers a processor that counts whole seconds from its own clock.
	expirySlack = time.Minute
)

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// isWord reports whether s has at most limit characters, each a letter, a digit or one
// of extra.
func isWord(s string, limit int, extra string) bool {
	return len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune(alphanumeric, r) && !strings.ContainsRune(extra, r)
	})
}

// CheckCharge compares a processor's charge with the order: every charge that a processor returns
// passes it before it is stored or shown. The error is a [*ChargeError].
func CheckCharge(profile *Profile, r *ChargeRequest, c *Charge) error {
	if !isWord(c.ProcessorID, processorIDMax, "_-.:") {
		return differs("processorId", "is not an id")
	}
	switch {
	case (c.PIX != nil) != (r.Method == payment.PIX):
		return differs("pix", "does not fit the method")
	case (c.Boleto != nil) != (r.Method == payment.Boleto):
		return differs("boleto", "does not fit the method")
	case (c.Card != nil) != (r.Method == payment.CreditCard):
		return differs("card", "does not fit the method")
	}
	if c.Amount != 0 && c.Amount != r.Amount {
		return differs("amount", "is not the order's")
	}
	switch r.Method {
	case payment.PIX:
		return checkPIX(profile, r, c.PIXKey, c.PIX)
	case payment.Boleto:
		return checkBoleto(profile, r, c.Boleto)
	default:
		return checkCard(r, c.Card)
	}
}

func checkPIX(profile *Profile, r *ChargeRequest, key string, p *payment.PIXDetail) error {
	if key != "" && !strings.EqualFold(key, profile.CodeKey) {
		return differs("pix", otherReceiver)
	}
	if p.TxID != "" && !isOurTxID(r, p.TxID) {
		return differs("pix.txid", "is not the order's")
	}
	if gap := p.ExpiresAt.Sub(r.ExpiresAt); gap < -expirySlack || gap > expirySlack {
		return differs("pix.expiresAt", "is not the order's")
	}
	return checkCode(profile, r, "pix.qrcode", p.QRCode)
}

// checkCode checks a BR Code. A code without an amount is accepted only if it names a
// charge by its URL, at which the payer's bank reads the amount.
func checkCode(profile *Profile, r *ChargeRequest, field, text string) error {
	code, err := brcode.DecodeForeign(text)
	if err != nil { // its text repeats nothing of the code
		return differs(field, "is not a BR Code: "+strings.TrimPrefix(err.Error(), "brcode: "))
	}
	kind := code.Kind()
	open := kind == brcode.KindDynamic && code.Value(codeAmount) == ""
	switch {
	case kind != brcode.KindStatic && kind != brcode.KindDynamic:
		return differs(field, "is not the code of one payment")
	case !open && code.Amount() != int64(r.Amount):
		return differs(field, "has another amount")
	}
	own := profile.OwnTxIDs && kind == brcode.KindDynamic
	if txid := code.TxID(); !own && (txid != "" && !isOurTxID(r, txid) || txid == "" && kind == brcode.KindStatic) {
		return differs(field, "has another txid")
	}
	host, _, _ := strings.Cut(code.URL(), "/")
	switch {
	case kind == brcode.KindStatic && (profile.CodeKey == "" || !strings.EqualFold(code.Key(), profile.CodeKey)):
		return differs(field, otherReceiver)
	case kind == brcode.KindDynamic && len(profile.CodeHosts) > 0 && !slices.Contains(profile.CodeHosts, strings.ToLower(host)):
		return differs(field, otherReceiver)
	}
	return nil
}

// PlainCode reports whether the code of a charge, if it has one, is ASCII, as every payer's bank accepts it.
func (c *Charge) PlainCode() bool {
	return (c.PIX == nil || brcode.IsASCII(c.PIX.QRCode)) && (c.Boleto == nil || brcode.IsASCII(c.Boleto.PIXQRCode))
}

// isOurTxID reports whether a txid is the order's external id, or the part of it that
// fits into a static code.
func isOurTxID(r *ChargeRequest, txid string) bool {
	return txid == r.ExternalID || len(txid) == payment.ExternalIDStaticLength && strings.HasPrefix(r.ExternalID, txid)
}

func checkBoleto(profile *Profile, r *ChargeRequest, b *payment.BoletoDetail) error {
	bill, err := boleto.ParseBarcode(b.Barcode)
	if err != nil {
		return differs("boleto.barcode", "is not a bar code")
	}
	if bill.Amount != int64(r.Amount) {
		return differs("boleto.barcode", "has another amount")
	}
	if line, err := boleto.Line(b.Barcode); err != nil || line != b.DigitableLine {
		return differs("boleto.digitableLine", "is not that of the bar code")
	}
	due, err := time.Parse(time.DateOnly, b.DueDate)
	if err != nil || b.DueDate != r.DueDate {
		return differs("boleto.dueDate", "is not the order's")
	}
	if day, err := boleto.Due(bill.Factor, due); err != nil || !day.Equal(due) {
		return differs("boleto.barcode", "has another due date")
	}
	if !isWord(b.OurNumber, ourNumberMax, "./-") {
		return differs("boleto.ourNumber", "is not a number of a bill")
	}
	if b.PIXQRCode == "" {
		return nil
	}
	return checkCode(profile, r, "boleto.pixQrcode", b.PIXQRCode)
}

func checkCard(r *ChargeRequest, c *payment.CardDetail) error {
	if c.HostedURL != "" {
		u, err := url.Parse(c.HostedURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(c.HostedURL) > hostedURLMax {
			return differs("card.checkoutUrl", "is not an https URL")
		}
	}
	switch {
	case !isWord(c.Brand, brandMax, "_-"):
		return differs("card.brand", "is not a brand")
	case c.Last4 != "" && (len(c.Last4) != 4 || strings.Trim(c.Last4, "0123456789") != ""):
		return differs("card.last4", "is not four digits")
	case c.Installments < 0 || c.Installments > max(1, r.Installments):
		return differs("card.installments", "are more than the order's")
	}
	return nil
}
