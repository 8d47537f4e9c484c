package merchant_test

import (
	"fmt"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// rounds of two changes at the same time: without a lock almost every one goes wrong.
const rounds = 20

// Of two prices that overlap and are set at the same time one is refused: else some instalments
// would have a fee that nobody sees.
func TestOverlappingPricesAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for round := range rounds {
			m, err := g.Merchants.Create(t.Context(), store.Merchant{Name: fmt.Sprint("m", round), City: "SAO PAULO"}, "")
			g.Must(err)
			errs := g.AtOnce(func(i int) error {
				_, err := g.Merchants.SetPrice(t.Context(), m.ID, payment.Price{
					Method: payment.CreditCard, Range: payment.Range{From: 2 + 2*i, To: 6 + 2*i, Terms: payment.Terms{BasisPoints: 100}},
				}, merchant.Unnamed{})
				return err
			})
			refused := 0
			for _, err := range errs {
				if problem.Is(err, problem.ValidationFailed) {
					refused++
				} else {
					g.Must(err)
				}
			}
			if m, err = g.Store.Merchant(t.Context(), m.ID); err != nil || refused != 1 || len(m.Prices) != 1 {
				t.Fatalf("round %d: %d refused, prices %+v, %v", round, refused, m.Prices, err)
			}
		}
	})
}

// A price without a settlement gets the one that holds when it is set, also if that is replaced at the
// same time.
func TestSettlementIsKept(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for round := range rounds {
			m, err := g.Merchants.Create(t.Context(), store.Merchant{Name: fmt.Sprint("m", round), City: "SAO PAULO"}, "")
			g.Must(err)
			for _, err := range g.AtOnce(func(i int) error {
				terms := payment.Terms{BasisPoints: 99, Days: 2}
				if i == 1 {
					terms = payment.Terms{BasisPoints: 101}
				}
				_, err := g.Merchants.SetPrice(t.Context(), m.ID, payment.Price{Method: payment.PIX, Range: payment.Range{Terms: terms}}, merchant.Unnamed{Settlement: i == 1})
				return err
			}) {
				g.Must(err)
			}
			m, err = g.Store.Merchant(t.Context(), m.ID)
			g.Must(err)
			if p := m.Prices[0]; len(m.Prices) != 1 || p.Days != 2 {
				t.Fatalf("round %d: prices %+v", round, m.Prices)
			}
		}
	})
}

// Two changes of different parts of a brand at the same time both hold.
func TestPartsOfABrandAtOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for round := range rounds {
			title, color := fmt.Sprint("Loja ", round), fmt.Sprintf("#0000%02d", round)
			for _, err := range g.AtOnce(func(i int) error {
				u := merchant.BrandUpdate{Title: &title}
				if i == 1 {
					u = merchant.BrandUpdate{Color: &color}
				}
				_, err := g.Merchants.Update(t.Context(), g.Merchant.ID, merchant.Update{Brand: &u})
				return err
			}) {
				g.Must(err)
			}
			b, err := g.Store.Brand(t.Context(), g.Merchant.ID)
			g.Must(err)
			if b.Title != title || b.Color != color {
				t.Fatalf("round %d: title %q, colour %q", round, b.Title, b.Color)
			}
		}
	})
}
