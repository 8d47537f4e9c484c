package wire

import (
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
)

type priceView struct {
	Method           payment.Method `json:"method"`
	InstallmentsFrom int            `json:"installmentsFrom"`
	InstallmentsTo   int            `json:"installmentsTo"`
	BasisPoints      int64          `json:"basisPoints"`
	Fixed            money.Cents    `json:"fixed"`
	Minimum          money.Cents    `json:"minimum"`
	Maximum          money.Cents    `json:"maximum,omitzero"`
	Settlement       settlementView `json:"settlement"`
	RefundsFee       bool           `json:"refundsFee"`
}

type settlementView struct {
	Days           int    `json:"days"`
	Kind           string `json:"kind"`
	PerInstallment bool   `json:"perInstallment"`
}

// Prices is the answer of GET /prices.
func Prices(prices []payment.Price) ([]byte, error) {
	views := make([]priceView, len(prices))
	for i := range prices {
		p := &prices[i]
		kind := "CALENDAR"
		if p.Business {
			kind = "BUSINESS"
		}
		views[i] = priceView{
			p.Method, p.From, p.To, p.BasisPoints, p.Fixed, p.Minimum, p.Maximum,
			settlementView{p.Days, kind, p.PerInstallment}, p.RefundsFee,
		}
	}
	return marshalList(views)
}
