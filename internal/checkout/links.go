package checkout

import (
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// Where pages are, below the address under which payers reach the gateway.
const (
	pagePath = "/pay/"
	billPath = "/boleto.pdf"
)

// Links makes the addresses of pay-ins' pages under base, which has no slash
// at its end: the same ones for the same pay-in, on every node.
func Links(base string, keys *store.Keyring) func(p *payment.Payin) payment.Links {
	return func(p *payment.Payin) (l payment.Links) {
		number, err := payment.MerchantNumber(p.ExternalID)
		if err != nil {
			return l // no pay-in of the store's
		}
		var room [256]byte
		text := append(append(room[:0], base...), pagePath...)
		text = keys.AppendOrderToken(text, number, p.ID)
		if p.Method == payment.Boleto {
			l.Bill = string(append(text, billPath...))
			l.Checkout = l.Bill[:len(text)]
		} else {
			l.Checkout = string(text)
		}
		return l
	}
}
