// Package codes draws the QR code of a Pix and the bar code of a boleto, as SVG
// for web pages and as modules and bars for print.
//
// The drawings are dark on white in every theme, as readers require, include
// their quiet zone, and use presentation attributes only, so that they need no
// inline styles in a Content-Security-Policy. They have no accessible name: the
// page must give one.
package codes

import "errors"

// Errors of drawing; each returned error wraps one of them.
var (
	// ErrPayload: the text is empty, or too long for the largest QR code.
	ErrPayload = errors.New("codes: no text for a QR code")
	// ErrBarcode: the text is not 44 digits.
	ErrBarcode = errors.New("codes: not a boleto's bar code")
)
