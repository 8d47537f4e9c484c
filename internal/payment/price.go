package payment

import (
	"time"

	"github.com/porteira/porteira/internal/money"
)

// PayoutPrice is the method of a price of payouts.
const PayoutPrice Method = "PAYOUT"

// InstallmentsMax is the largest number of instalments of a card payment.
const InstallmentsMax = 12

// Terms are what a merchant pays for an order, and when its money becomes available.
type Terms struct {
	BasisPoints    int64       // of the amount: hundredths of a percent
	Fixed          money.Cents // added to it
	Minimum        money.Cents // of the fee
	Maximum        money.Cents // of the fee; 0: none
	Days           int         // until the money becomes available; 0: at once
	Business       bool        // they are business days of Brazilian banks; else calendar days
	PerInstallment bool        // instalment k settles k × Days later
	RefundsFee     bool        // a refund gives the fee back
}

// Range is terms for a range of instalments.
type Range struct {
	From, To int
	Terms
}

// Price is a merchant's terms for a method and a range of instalments, which is 1 to 1
// unless the method is CREDIT_CARD.
type Price struct {
	Method Method
	Range

	Since time.Time // from when it holds
}

// PricesOf is the terms for a method, by range. nil if there are none.
func PricesOf(prices []Price, method Method) []Range {
	var list []Range
	for i := range prices {
		if prices[i].Method == method {
			list = append(list, prices[i].Range)
		}
	}
	return list
}

// TermsFor is the terms for a payment in n instalments: those of the smallest range that
// includes n, and of the one that begins first if several are equally small. Zero terms,
// which charge nothing, if there is none.
func TermsFor(ranges []Range, n int) Terms {
	var best *Range
	for i := range ranges {
		r := &ranges[i]
		if n < r.From || n > r.To {
			continue
		}
		if width := r.To - r.From; best == nil || width < best.To-best.From || width == best.To-best.From && r.From < best.From {
			best = r
		}
	}
	if best == nil {
		return Terms{}
	}
	return best.Terms
}

// Terms are those of the order's creation, for the instalments in which it was paid.
func (p *Payin) Terms() Terms {
	return TermsFor(p.Details.Prices, p.Installments())
}

// Installments is in how many instalments the order was paid; 1 unless a card was.
func (p *Payin) Installments() int {
	if c := p.Details.Card; p.Method == CreditCard && c != nil {
		return min(max(c.Installments, 1), InstallmentsMax)
	}
	return 1
}
