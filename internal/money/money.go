// Package money is pure: cents, checked arithmetic, splitting, BRL formatting.
package money

import (
	"errors"
	"math"
	"strconv"
)

// Cents is an amount of Brazilian reais in integer cents (1 = R$ 0.01): the only
// type for money in this program.
type Cents int64

// Max is the largest amount that one order may carry: R$ 999,999,999.99.
const Max Cents = 99_999_999_999

// ErrOverflow means that a sum does not fit 64 bits; nothing was computed.
var ErrOverflow = errors.New("money: overflow")

// ErrSplit means that an amount cannot be split that way.
var ErrSplit = errors.New("money: cannot split")

// Add returns c + d, or ErrOverflow.
func (c Cents) Add(d Cents) (Cents, error) {
	if (d > 0 && c > math.MaxInt64-d) || (d < 0 && c < math.MinInt64-d) {
		return 0, ErrOverflow
	}
	return c + d, nil
}

// Sub returns c - d, or ErrOverflow.
func (c Cents) Sub(d Cents) (Cents, error) {
	if (d > 0 && c < math.MinInt64+d) || (d < 0 && c > math.MaxInt64+d) {
		return 0, ErrOverflow
	}
	return c - d, nil
}

// Split divides c into n parts that differ by at most one cent and add up to c;
// the larger parts come last, as in Brazilian instalments. It returns ErrSplit
// unless c >= 0 and n >= 1.
func (c Cents) Split(n int) ([]Cents, error) {
	if c < 0 || n < 1 {
		return nil, ErrSplit
	}
	parts := make([]Cents, n)
	share, rest := c/Cents(n), int(c%Cents(n))
	for i := range parts {
		parts[i] = share
		if i >= n-rest {
			parts[i]++
		}
	}
	return parts, nil
}

// String is the amount as a bare string of cents, as the API's payouts carry it.
func (c Cents) String() string { return strconv.FormatInt(int64(c), 10) }

// BRL formats the amount as Brazilians write it: R$ 1.234,56.
func (c Cents) BRL() string { return c.format("R$ ", '.', ',') }

// Decimal formats the amount as reais with a dot and two digits, 1234.56, as
// BR Codes and the API Pix of Banco Central carry it.
func (c Cents) Decimal() string { return c.format("", 0, '.') }

// English formats the amount for operators who read English: R$ 1,234.56.
func (c Cents) English() string { return c.format("R$ ", ',', '.') }

// format writes sign, prefix, grouped reais and two digits of cents. It works
// on the unsigned magnitude because -MinInt64 does not exist.
func (c Cents) format(prefix string, group, point byte) string {
	magnitude := uint64(c)
	out := make([]byte, 0, 32)
	if c < 0 {
		magnitude = -magnitude
		out = append(out, '-')
	}
	out = append(out, prefix...)
	reais := strconv.FormatUint(magnitude/100, 10)
	for i := range len(reais) {
		if group != 0 && i > 0 && (len(reais)-i)%3 == 0 {
			out = append(out, group)
		}
		out = append(out, reais[i])
	}
	rest := byte(magnitude % 100)
	return string(append(out, point, '0'+rest/10, '0'+rest%10))
}
