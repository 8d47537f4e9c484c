package storetest

import (
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

var priceTests = []test{
	{"prices are their merchant's, and replaced by method and range", func(s *suite) {
		m, other := s.merchant(), s.merchant()
		terms := payment.Terms{BasisPoints: 99, Fixed: 10, Minimum: 20, Maximum: 900, Days: 2, Business: true, PerInstallment: true, RefundsFee: true}
		set := func(method payment.Method, from, to int, terms payment.Terms) {
			s.write(func(tx *store.AdminTx) error {
				return tx.SetPrice(s.Context(), m.ID, payment.Price{Method: method, Range: payment.Range{From: from, To: to, Terms: terms}})
			})
		}
		prices := func(m store.Merchant) string {
			text := ""
			for _, p := range must(s.store.Merchant(s.Context(), m.ID)).Prices {
				s.equal("since", p.Since.IsZero(), false)
				p.Since = time.Time{}
				text += fmt.Sprintf("%s %+v; ", p.Method, p.Range)
			}
			return text
		}
		s.equal("of a new merchant", prices(m), "")
		set(payment.PIX, 1, 1, payment.Terms{BasisPoints: 50})
		set(payment.CreditCard, 2, 6, terms)
		set(payment.CreditCard, 1, 12, payment.Terms{Fixed: 1})
		set(payment.PIX, 1, 1, payment.Terms{BasisPoints: 60})
		set(payment.PIX, 1, 1, payment.Terms{BasisPoints: 70})
		want := fmt.Sprintf("CREDIT_CARD %+v; CREDIT_CARD %+v; PIX %+v; ", payment.Range{From: 1, To: 12, Terms: payment.Terms{Fixed: 1}},
			payment.Range{From: 2, To: 6, Terms: terms}, payment.Range{From: 1, To: 1, Terms: payment.Terms{BasisPoints: 70}})
		s.equal("replaced", prices(m), want)
		s.equal("of the other", prices(other), "")
		for _, v := range must(s.store.Merchants(s.Context())) {
			if v.ID == m.ID {
				s.equal("listed", len(v.Prices), 3)
			}
		}
	}},
}
