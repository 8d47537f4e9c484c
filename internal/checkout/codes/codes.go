// Package codes draws what a payer's phone or bank machine reads: the QR code
// of a Pix and the bar code of a boleto, as SVG for a page and as modules and
// bars for whoever draws on paper.
//
// The drawings are dark on white whatever colours stand around them, as readers
// want, bring their quiet zone with them, and use presentation attributes only,
// so that they pass a Content-Security-Policy without inline styles. They carry
// no name for screen readers: the page that shows one says what it is.
package codes

import "errors"

// Errors of drawing; each returned error wraps one of them.
var (
	// ErrPayload: the text is empty, or too long for the largest QR code.
	ErrPayload = errors.New("codes: no text for a QR code")
	// ErrBarcode: the text is not 44 digits.
	ErrBarcode = errors.New("codes: not a boleto's bar code")
)
