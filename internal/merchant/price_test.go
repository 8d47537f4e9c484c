package merchant_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

func TestSetPrice(t *testing.T) {
	t.Parallel()
	g := coretest.New(t, "sqlite")
	price := func(method payment.Method, from, to int, terms payment.Terms) payment.Price {
		return payment.Price{Method: method, Range: payment.Range{From: from, To: to, Terms: terms}}
	}
	for _, c := range []struct {
		name  string
		price payment.Price
		valid bool
	}{
		{"a price", price(payment.PIX, 1, 1, payment.Terms{BasisPoints: 99, Fixed: 10, Days: 2, Business: true}), true},
		{"all instalments", price(payment.CreditCard, 0, 0, payment.Terms{}), true},
		{"a range", price(payment.CreditCard, 2, 6, payment.Terms{Days: 30, PerInstallment: true}), true},
		{"a fee that refunds give back", price(payment.PIX, 1, 1, payment.Terms{RefundsFee: true}), true},
		{"of payouts", price(payment.PayoutPrice, 0, 0, payment.Terms{Fixed: 50}), true},
		{"all of the amount", price(payment.PIX, 1, 1, payment.Terms{BasisPoints: 10_000}), true},
		{"more than the amount", price(payment.PIX, 1, 1, payment.Terms{BasisPoints: 10_001}), false},
		{"negative basis points", price(payment.PIX, 1, 1, payment.Terms{BasisPoints: -1}), false},
		{"a negative amount", price(payment.PIX, 1, 1, payment.Terms{Fixed: -1}), false},
		{"an amount too large", price(payment.PIX, 1, 1, payment.Terms{Minimum: money.Max + 1}), false},
		{"a maximum below the minimum", price(payment.PIX, 1, 1, payment.Terms{Minimum: 2, Maximum: 1}), false},
		{"an unknown method", price("CASH", 1, 1, payment.Terms{}), false},
		{"instalments of a Pix", price(payment.PIX, 1, 2, payment.Terms{}), false},
		{"an inverted range", price(payment.CreditCard, 6, 2, payment.Terms{}), false},
		{"a range from below", price(payment.CreditCard, -1, 2, payment.Terms{}), false},
		{"13 instalments", price(payment.CreditCard, 2, 13, payment.Terms{}), false},
		{"a range inside another", price(payment.CreditCard, 5, 6, payment.Terms{}), true},
		{"a range beside another", price(payment.CreditCard, 7, 9, payment.Terms{}), true},
		{"a range that overlaps another from above", price(payment.CreditCard, 6, 9, payment.Terms{}), false},
		{"a range that overlaps another from below", price(payment.CreditCard, 1, 2, payment.Terms{}), false},
		{"negative days", price(payment.PIX, 1, 1, payment.Terms{Days: -1}), false},
		{"days far away", price(payment.PIX, 1, 1, payment.Terms{Days: 366}), false},
		{"no business day", price(payment.PIX, 1, 1, payment.Terms{Business: true}), false},
		{"a Pix per instalment", price(payment.PIX, 1, 1, payment.Terms{Days: 30, PerInstallment: true}), false},
		{"at once per instalment", price(payment.CreditCard, 1, 12, payment.Terms{PerInstallment: true}), false},
		{"settlement of payouts", price(payment.PayoutPrice, 1, 1, payment.Terms{Days: 1}), false},
		{"refunds of payouts", price(payment.PayoutPrice, 1, 1, payment.Terms{RefundsFee: true}), false},
	} {
		_, err := g.Merchants.SetPrice(t.Context(), g.Merchant.ID, c.price, merchant.Unnamed{})
		if c.valid && err != nil || !c.valid && !problem.Is(err, problem.ValidationFailed) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	m, err := g.Store.Merchant(t.Context(), g.Merchant.ID)
	g.Must(err)
	text := ""
	for _, p := range m.Prices {
		text += string(p.Method) + " "
	}
	if text != "CREDIT_CARD CREDIT_CARD CREDIT_CARD CREDIT_CARD PAYOUT PIX " || m.Prices[0].From != 1 || m.Prices[0].To != payment.InstallmentsMax || m.Prices[1].From != 2 {
		t.Errorf("prices %+v", m.Prices)
	}
}

// What is not named is kept: of the price that is replaced, else of the smallest range around. Beside other
// ranges the settlement must be named.
func TestUnnamedTermsAreKept(t *testing.T) {
	t.Parallel()
	g := coretest.New(t, "sqlite")
	nothing := merchant.Unnamed{Minimum: true, Maximum: true, Settlement: true, PerInstallment: true, RefundsFee: true}
	settle := nothing
	settle.Settlement = false
	for _, c := range []struct {
		name          string
		from, to      int
		named, stored payment.Terms
		unnamed       merchant.Unnamed
		valid         bool
	}{
		{"the first price settles at once", 1, 6, payment.Terms{}, payment.Terms{}, nothing, true},
		{
			"all is named", 1, 6, payment.Terms{Minimum: 50, Maximum: 90, Days: 30, PerInstallment: true, RefundsFee: true},
			payment.Terms{Minimum: 50, Maximum: 90, Days: 30, PerInstallment: true, RefundsFee: true}, merchant.Unnamed{}, true,
		},
		{
			"nothing is named", 1, 6, payment.Terms{BasisPoints: 5}, payment.Terms{BasisPoints: 5, Minimum: 50, Maximum: 90, Days: 30, PerInstallment: true, RefundsFee: true},
			nothing, true,
		},
		{
			"a range inside", 2, 3, payment.Terms{Fixed: 5}, payment.Terms{Fixed: 5, Minimum: 50, Maximum: 90, Days: 30, PerInstallment: true, RefundsFee: true},
			nothing, true,
		},
		{
			"with a settlement of its own", 2, 3, payment.Terms{Days: 2, Business: true}, payment.Terms{Minimum: 50, Maximum: 90, Days: 2, Business: true, RefundsFee: true},
			settle, true,
		},
		{"a range beside", 7, 12, payment.Terms{Fixed: 5}, payment.Terms{}, nothing, false},
		{"a range around", 1, 12, payment.Terms{Fixed: 5}, payment.Terms{}, nothing, false},
		{"a range beside, with a settlement", 7, 12, payment.Terms{Days: 1}, payment.Terms{Days: 1}, settle, true},
	} {
		price := payment.Price{Method: payment.CreditCard, Range: payment.Range{From: c.from, To: c.to, Terms: c.named}}
		_, err := g.Merchants.SetPrice(t.Context(), g.Merchant.ID, price, c.unnamed)
		if c.valid != (err == nil) || !c.valid && !problem.Is(err, problem.ValidationFailed) {
			t.Errorf("%s: %v", c.name, err)
		}
		m, err := g.Store.Merchant(t.Context(), g.Merchant.ID)
		g.Must(err)
		for _, p := range m.Prices {
			if c.valid && p.From == c.from && p.To == c.to && p.Terms != c.stored {
				t.Errorf("%s: %+v", c.name, p.Terms)
			}
		}
	}
}

// A price that holds already gets no new version.
func TestSetPriceAgain(t *testing.T) {
	t.Parallel()
	g := coretest.New(t, "sqlite")
	for i, fixed := range []money.Cents{10, 10, 20} {
		g.Jump(time.Minute)
		changed, err := g.Merchants.SetPrice(t.Context(), g.Merchant.ID, payment.Price{Method: payment.PIX, Range: payment.Range{Terms: payment.Terms{Fixed: fixed}}}, merchant.Unnamed{})
		g.Must(err)
		m, err := g.Store.Merchant(t.Context(), g.Merchant.ID)
		g.Must(err)
		if want := i != 1; changed != want || m.Prices[0].Since.Equal(g.Env.Clock.Now()) != want {
			t.Errorf("set %d: changed %v, prices %+v", i, changed, m.Prices)
		}
	}
}
