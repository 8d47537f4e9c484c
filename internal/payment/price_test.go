package payment_test

import (
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

func TestTermsFor(t *testing.T) {
	terms := func(bp int64) payment.Terms { return payment.Terms{BasisPoints: bp} }
	card := []payment.Price{
		{Method: payment.PIX, Range: payment.Range{From: 1, To: 1, Terms: terms(99)}},
		{Method: payment.CreditCard, Range: payment.Range{From: 1, To: 12, Terms: terms(500)}},
		{Method: payment.CreditCard, Range: payment.Range{From: 2, To: 6, Terms: terms(300)}},
		{Method: payment.CreditCard, Range: payment.Range{From: 6, To: 10, Terms: terms(400)}},
	}
	for _, c := range []struct {
		method payment.Method
		n      int
		want   int64
	}{
		{payment.PIX, 1, 99},
		{payment.CreditCard, 1, 500},
		{payment.CreditCard, 2, 300},
		{payment.CreditCard, 6, 300}, // two ranges of five: the one that begins first
		{payment.CreditCard, 7, 400},
		{payment.CreditCard, 12, 500},
		{payment.CreditCard, 13, 0},
		{payment.Boleto, 1, 0},
	} {
		if got := payment.TermsFor(payment.PricesOf(card, c.method), c.n).BasisPoints; got != c.want {
			t.Errorf("%s in %d: %d basis points, want %d", c.method, c.n, got, c.want)
		}
	}
}

func TestPayinInstallments(t *testing.T) {
	for _, c := range []struct {
		method payment.Method
		card   *payment.CardDetail
		want   int
	}{
		{payment.PIX, &payment.CardDetail{Installments: 3}, 1},
		{payment.CreditCard, nil, 1},
		{payment.CreditCard, &payment.CardDetail{}, 1},
		{payment.CreditCard, &payment.CardDetail{Installments: 3}, 3},
		{payment.CreditCard, &payment.CardDetail{Installments: 99}, payment.InstallmentsMax},
	} {
		p := payment.Payin{Method: c.method, Details: payment.PayinDetails{Card: c.card}}
		if got := p.Installments(); got != c.want {
			t.Errorf("%s %+v: %d instalments, want %d", c.method, c.card, got, c.want)
		}
	}
}
