// Package pricing is pure: fees, the days on which money settles, business days of banks.
package pricing

import (
	"math/bits"

	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// BasisPointsMax is the complete amount in basis points.
const BasisPointsMax = 10_000

// Fee is the fee of an amount up to [money.Max], in cents: basis points of it, half a cent
// up, and the fixed part, within minimum and maximum, and never above the amount.
func Fee(t payment.Terms, amount money.Cents) money.Cents {
	if amount <= 0 {
		return 0
	}
	fee := (amount*money.Cents(t.BasisPoints)+BasisPointsMax/2)/BasisPointsMax + t.Fixed
	fee = max(fee, t.Minimum)
	if t.Maximum > 0 {
		fee = min(fee, t.Maximum)
	}
	return min(fee, amount)
}

// FeeOfPart is the fee of a further part of an order of which paid cents were paid, and
// charged cents of fees charged, before. The fees of all parts add up to the fee of their sum
// under the same terms, and none exceeds its part.
func FeeOfPart(t payment.Terms, paid, charged, part money.Cents) money.Cents {
	return min(max(Fee(t, paid+part)-charged, 0), part)
}

// FeeOfRefund is the part of an order's fee that a refund of amount gives back, in cents: 0
// unless the terms say so. Of paid cents, refunded cents were given back before. The parts of
// all refunds of an order add up to its fee.
func FeeOfRefund(t payment.Terms, fee, paid, refunded, amount money.Cents) money.Cents {
	if !t.RefundsFee || paid <= 0 || amount <= 0 {
		return 0
	}
	return share(fee, refunded+amount, paid) - share(fee, refunded, paid)
}

// share is fee × part / total, rounded down. Amounts of orders are below 2^37, so their
// product needs 128 bits.
func share(fee, part, total money.Cents) money.Cents {
	part = min(part, total)
	high, low := bits.Mul64(uint64(fee), uint64(part))  //nolint:gosec // amounts are not negative
	quotient, _ := bits.Div64(high, low, uint64(total)) //nolint:gosec // as above
	return money.Cents(quotient)                        //nolint:gosec // at most fee
}
