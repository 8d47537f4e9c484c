// Package brcode encodes, decodes and checks BR Codes: the texts behind the QR
// codes and the copy-and-paste payments of Pix.
//
// A BR Code is an EMV QRCPS-MPM payload (QR Code Specification for Payment
// Systems, Merchant-Presented Mode) as the Manual do BR Code of Banco Central
// do Brasil narrows it: data objects of a two-digit id, a two-digit length and
// a value, closed by a checksum. Four kinds exist, see [Kind]. [Static] and
// [Dynamic] are encoded from their parts; [Decode] reads any of them into a
// [Code] that keeps every data object.
//
// Both directions are strict and accept only printable ASCII, so characters and
// bytes count alike: [Fold] removes the accents of a name, [Cut] cuts it to the
// length of its field. Nothing else cuts or folds. [DecodeForeign] reads the codes of
// banks that do not fold.
package brcode

import (
	"errors"
	"strconv"
)

// Lengths in characters that the Manual do BR Code allows at most, and the
// length that API Pix allows for a complete payload.
const (
	MaxPayload      = 512
	MaxMerchantName = 25
	MaxCity         = 15
	MaxKey          = 77
	MaxURL          = 77
	MaxTxID         = 25
	// MaxInfo is the maximum length of Info with a key of 5 characters. Info and key
	// share one field: see [Static.Info].
	MaxInfo = 72
)

// MaxAmount is the largest amount, in cents, that fits field 54: ten digits of
// reais.
const MaxAmount = 999_999_999_999

// NoTxID stands in a code without a transaction id.
const NoTxID = "***"

// Kind is what a code asks the payer's bank to do.
type Kind string

// The kinds of code. A Code that matches none of them has the kind "".
const (
	// KindStatic pays a Pix key.
	KindStatic Kind = "STATIC"
	// KindDynamic pays the charge that a URL describes.
	KindDynamic Kind = "DYNAMIC"
	// KindComposite pays a key or charge, and offers a recurrence (Pix
	// Automático) at the same time.
	KindComposite Kind = "COMPOSITE"
	// KindRecurrence offers a recurrence (Pix Automático), and pays nothing now.
	KindRecurrence Kind = "RECURRENCE"
)

// The errors of a code or its parts. An [Error] wraps one of them.
var (
	// ErrTLV means that ids and lengths are inconsistent: an id or length is not two
	// digits, a length is 00 or extends beyond the end.
	ErrTLV = errors.New("broken structure of ids and lengths")
	// ErrOrder means that 00 is not the first data object or 63 not the last.
	ErrOrder = errors.New("data object out of order")
	// ErrDuplicate means that a data object appears twice.
	ErrDuplicate = errors.New("data object appears twice")
	// ErrMissing means that a required data object is missing.
	ErrMissing = errors.New("missing")
	// ErrTooLong means that a value is too long for its field.
	ErrTooLong = errors.New("too long")
	// ErrCharset means that there is a character outside printable ASCII.
	ErrCharset = errors.New("character outside printable ASCII")
	// ErrValue means that a value does not have the form of its field.
	ErrValue = errors.New("wrong form")
	// ErrCRC means that the checksum does not match.
	ErrCRC = errors.New("wrong checksum")
	// ErrNotPix means that no account information (26 to 51) belongs to Pix.
	ErrNotPix = errors.New("no account information of Pix")
	// ErrConflict means that a code names both a key and a URL to pay.
	ErrConflict = errors.New("both a key and a URL")
)

// Error says where a code or its parts are wrong. It repeats none of their
// content.
type Error struct {
	// Field is the id of the data object; within a template, as in 26-01. It is empty
	// if the error concerns the code itself.
	Field string
	// Pos is the position of the data object or character in the code, in bytes from
	// 0; for a missing one, that of the end of the others. It is -1 while a code is
	// being encoded.
	Pos int
	// Err is one of this package's errors.
	Err error
}

// Error returns a sentence for developers.
func (e *Error) Error() string {
	text := "brcode: "
	if e.Field != "" {
		text += "field " + e.Field + ": "
	}
	text += e.Err.Error()
	if e.Pos >= 0 {
		text += " (position " + strconv.Itoa(e.Pos) + ")"
	}
	return text
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// Ids of data objects.
const (
	idFormat         = "00"
	idInitiation     = "01"
	idAccount        = "26" // by convention; Pix may use 26 to 51
	idAccountLast    = "51"
	idCategory       = "52"
	idCurrency       = "53"
	idAmount         = "54"
	idCountry        = "58"
	idMerchantName   = "59"
	idCity           = "60"
	idPostalCode     = "61"
	idAdditional     = "62"
	idCRC            = "63"
	idLanguage       = "64"
	idUnreserved     = "80" // by convention; a recurrence may use 80 to 99
	idUnreservedLast = "99"

	subGUI  = "00"
	subKey  = "01"
	subInfo = "02"
	subFSS  = "03"
	subURL  = "25"
	subTxID = "05"
)

// Fixed values.
const (
	gui             = "br.gov.bcb.pix"
	formatVersion   = "01"
	initiationMany  = "11"
	initiationOnce  = "12"
	currencyBRL     = "986"
	countryBR       = "BR"
	categoryUnset   = "0000"
	headerLen       = 4 // id and length
	valueMax        = 99
	crcHeader       = idCRC + "04"
	crcLen          = 4
	guiFieldLen     = headerLen + len(gui)
	amountMaxLen    = 13
	amountDecimals  = 2
	categoryLen     = 4
	fssLen          = 8
	centsPerReal    = 100
	positionUnknown = -1
)
