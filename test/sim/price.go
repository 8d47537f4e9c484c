package sim

import (
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

// price is what a merchant pays for its orders. Amounts are cents.
type price struct {
	basisPoints, fixed, minimum, maximum int64
	payout                               int64 // for each payout

	days                     int
	business, perInstallment bool

	refundsFee bool
}

// prices are those of the merchants; the first one pays nothing.
var prices = [merchantCount]price{
	1: {basisPoints: 99, fixed: 10, payout: 50, days: 1, business: true},
	2: {basisPoints: 250, minimum: 30, maximum: 5_00, days: 1, perInstallment: true, refundsFee: true},
}

// pricesOf is the price of a merchant in the gateway's form.
func pricesOf(i int) (list []payment.Price) {
	p := prices[i]
	if p == (price{}) {
		return nil
	}
	for _, method := range payment.Methods {
		terms := payment.Terms{
			BasisPoints: p.basisPoints, Fixed: money.Cents(p.fixed), Minimum: money.Cents(p.minimum), Maximum: money.Cents(p.maximum), Days: p.days, Business: p.business,
			RefundsFee: p.refundsFee,
		}
		r := payment.Range{From: 1, To: 1, Terms: terms}
		if method == payment.CreditCard {
			r.To, r.PerInstallment = payment.InstallmentsMax, p.perInstallment
		}
		list = append(list, payment.Price{Method: method, Range: r})
	}
	if p.payout > 0 {
		list = append(list, payment.Price{Method: payment.PayoutPrice, Range: payment.Range{From: 1, To: 1, Terms: payment.Terms{Fixed: money.Cents(p.payout)}}})
	}
	return list
}
