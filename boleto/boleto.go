// Package boleto encodes, decodes and checks the bar codes and digitable lines
// of Brazilian bank slips (boletos de cobrança), as FEBRABAN's "Layout padrão de
// código de barras" defines them.
//
// A bill has two equivalent forms: 44 digits (its bar code) and 47 (the line that
// people type). Amounts are integer cents. Due dates are written as a factor of
// four digits, which started again on 2025-02-22: to decode one, say around which
// day.
package boleto

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Lengths of the two forms, in digits.
const (
	BarcodeLength = 44
	LineLength    = 47
)

// AmountMax is the largest amount that a bill can carry, in cents: its bar code
// has ten digits for it.
const AmountMax = 9_999_999_999

// currencyReal is the fourth digit of every bill in reais.
const currencyReal = '9'

// Errors of parsing and encoding; each returned error wraps one of them.
var (
	// ErrLength: the text has the wrong number of digits for its form.
	ErrLength = errors.New("boleto: wrong length")
	// ErrDigit: the text contains something other than digits.
	ErrDigit = errors.New("boleto: not a digit")
	// ErrCheckDigit: a check digit is wrong; the text was mistyped or invented.
	ErrCheckDigit = errors.New("boleto: wrong check digit")
	// ErrCollection: the text is a slip of taxes and utilities (arrecadação),
	// which begins with 8 and has another layout.
	ErrCollection = errors.New("boleto: a collection slip, not a bank bill")
	// ErrCurrency: the bill is not in reais.
	ErrCurrency = errors.New("boleto: not in reais")
	// ErrField: a field does not fit the bar code.
	ErrField = errors.New("boleto: field out of range")
)

// Bill is the content of a bar code.
type Bill struct {
	Bank      string // three digits, as the clearing house numbers banks
	Amount    int64  // cents; 0 leaves it open
	Factor    int    // due-date factor, 0 for none; see Due
	FreeField string // 25 digits, with a layout of each bank's own
}

// Barcode writes the 44 digits. Errors: ErrField.
func (b Bill) Barcode() (string, error) {
	if !digits(b.Bank, 3) || b.Bank == "000" {
		return "", fmt.Errorf("%w: a bank has three digits", ErrField)
	}
	if b.Bank[0] == '8' {
		// Legal, but it looks like a collection slip: no bank has it.
		return "", fmt.Errorf("%w: no bank begins with 8", ErrField)
	}
	if b.Amount < 0 || b.Amount > AmountMax {
		return "", fmt.Errorf("%w: the amount has ten digits", ErrField)
	}
	if b.Factor != 0 && (b.Factor < factorFirst || b.Factor > factorLast) {
		return "", fmt.Errorf("%w: a due-date factor is 1000 to 9999, or 0", ErrField)
	}
	if !digits(b.FreeField, 25) {
		return "", fmt.Errorf("%w: the free field has 25 digits", ErrField)
	}
	var out [BarcodeLength]byte
	copy(out[0:], b.Bank)
	out[3] = currencyReal
	number(out[5:9], int64(b.Factor))
	number(out[9:19], b.Amount)
	copy(out[19:], b.FreeField)
	out[4] = generalDigit(out[:])
	return string(out[:]), nil
}

// ParseBarcode reads 44 digits. Errors: ErrLength, ErrDigit, ErrCollection,
// ErrCurrency, ErrCheckDigit.
func ParseBarcode(barcode string) (Bill, error) {
	if len(barcode) != BarcodeLength {
		return Bill{}, fmt.Errorf("%w: a bar code has %d digits, this has %d characters", ErrLength, BarcodeLength, len(barcode))
	}
	if !digits(barcode, BarcodeLength) {
		return Bill{}, fmt.Errorf("%w: in the bar code", ErrDigit)
	}
	if barcode[0] == '8' {
		return Bill{}, ErrCollection
	}
	if barcode[3] != currencyReal {
		return Bill{}, ErrCurrency
	}
	if barcode[4] != generalDigit([]byte(barcode)) {
		return Bill{}, fmt.Errorf("%w: the general one, position 5 of the bar code", ErrCheckDigit)
	}
	return Bill{
		Bank: barcode[0:3], Amount: value(barcode[9:19]), Factor: int(value(barcode[5:9])), FreeField: barcode[19:],
	}, nil
}

// Line writes a bar code as the 47 digits that people type. Errors: those of
// ParseBarcode.
func Line(barcode string) (string, error) {
	if _, err := ParseBarcode(barcode); err != nil {
		return "", err
	}
	var out [LineLength]byte
	copy(out[0:4], barcode[0:4])
	copy(out[4:9], barcode[19:24])
	out[9] = fieldDigit(out[0:9])
	copy(out[10:20], barcode[24:34])
	out[20] = fieldDigit(out[10:20])
	copy(out[21:31], barcode[34:44])
	out[31] = fieldDigit(out[21:31])
	out[32] = barcode[4]
	copy(out[33:], barcode[5:19])
	return string(out[:]), nil
}

// ParseLine reads a digitable line, bare or with the dots and spaces of its
// printed form, and returns the bill and its bar code. Errors: those of
// ParseBarcode.
func ParseLine(line string) (Bill, string, error) {
	var in [LineLength + 1]byte // one more, to recognise a collection slip's 48
	n := 0
	for i := range len(line) {
		switch c := line[i]; {
		case c == '.' || c == ' ':
		case c < '0' || c > '9':
			return Bill{}, "", fmt.Errorf("%w: character %d of the line", ErrDigit, i+1)
		case n == len(in):
			return Bill{}, "", fmt.Errorf("%w: a digitable line has %d digits, this has more", ErrLength, LineLength)
		default:
			in[n] = c
			n++
		}
	}
	if n > 0 && in[0] == '8' {
		return Bill{}, "", ErrCollection
	}
	if n != LineLength {
		return Bill{}, "", fmt.Errorf("%w: a digitable line has %d digits, this has %d", ErrLength, LineLength, n)
	}
	for _, field := range [3][2]int{{0, 9}, {10, 20}, {21, 31}} {
		if in[field[1]] != fieldDigit(in[field[0]:field[1]]) {
			return Bill{}, "", fmt.Errorf("%w: position %d of the line", ErrCheckDigit, field[1]+1)
		}
	}
	var code [BarcodeLength]byte
	copy(code[0:4], in[0:4])
	code[4] = in[32]
	copy(code[5:19], in[33:47])
	copy(code[19:24], in[4:9])
	copy(code[24:34], in[10:20])
	copy(code[34:44], in[21:31])
	barcode := string(code[:])
	bill, err := ParseBarcode(barcode)
	if err != nil {
		return Bill{}, "", err
	}
	return bill, barcode, nil
}

// FormatLine prints 47 digits as bills do: AAABC.CCCCX DDDDD.DDDDDY EEEEE.EEEEEZ
// K UUUUVVVVVVVVVV. Other texts are returned unchanged.
func FormatLine(line string) string {
	if !digits(line, LineLength) {
		return line
	}
	return line[0:5] + "." + line[5:10] + " " + line[10:15] + "." + line[15:21] + " " +
		line[21:26] + "." + line[26:32] + " " + line[32:33] + " " + line[33:]
}

// generalDigit is the check digit at position 5 of a bar code: modulo 11 over
// the other 43 digits, weights 2 to 9 from the right. 0, 10 and 11 become 1.
func generalDigit(barcode []byte) byte {
	sum, weight := 0, 2
	for i, c := range slices.Backward(barcode) {
		if i == 4 {
			continue
		}
		sum += int(c-'0') * weight
		if weight++; weight > 9 {
			weight = 2
		}
	}
	if d := 11 - sum%11; d < 10 {
		return byte('0' + d)
	}
	return '1'
}

// fieldDigit is the check digit of a field of the line: modulo 10, weights 2
// and 1 from the right, the digits of each product added.
func fieldDigit(field []byte) byte {
	sum, weight := 0, 2
	for _, c := range slices.Backward(field) {
		product := int(c-'0') * weight
		sum += product/10 + product%10
		weight = 3 - weight
	}
	return byte('0' + (10-sum%10)%10)
}

// The due-date factor counts days: 1000 was 2000-07-03, 9999 was 2025-02-21,
// and 1000 came again on 2025-02-22 (FEBRABAN, "Fator de vencimento").
const (
	factorFirst = 1000
	factorLast  = 9999
	factorSpan  = factorLast - factorFirst + 1
)

var factorEpoch = time.Date(2000, time.July, 3, 0, 0, 0, 0, time.UTC)

// ErrDate means that a day has no due-date factor: it is before 2000-07-03.
var ErrDate = errors.New("boleto: no due-date factor")

// Factor is the due-date factor of a day; only the date of due counts.
func Factor(due time.Time) (int, error) {
	days := daysSinceEpoch(due)
	if days < 0 {
		return 0, ErrDate
	}
	return factorFirst + days%factorSpan, nil
}

// Due is the day, at midnight UTC, that a factor means: of all days that share
// it, the one nearest to around. It returns ErrDate for a factor that is not 1000
// to 9999; 0 stands for a bill without a due date.
func Due(factor int, around time.Time) (time.Time, error) {
	if factor < factorFirst || factor > factorLast {
		return time.Time{}, ErrDate
	}
	offset := factor - factorFirst
	distance := daysSinceEpoch(around) - offset
	rounds := max(0, floorDiv(distance+factorSpan/2, factorSpan))
	return factorEpoch.AddDate(0, 0, offset+rounds*factorSpan), nil
}

func daysSinceEpoch(t time.Time) int {
	day := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	return floorDiv(int(day.Unix()-factorEpoch.Unix()), 24*60*60)
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}

// digits reports whether s is n digits.
func digits(s string, n int) bool {
	if len(s) != n {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// number writes v with leading zeros.
func number(out []byte, v int64) {
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = byte('0' + v%10)
		v /= 10
	}
}

// value reads digits, at most ten of them.
func value(s string) int64 {
	var v int64
	for i := range len(s) {
		v = v*10 + int64(s[i]-'0')
	}
	return v
}
