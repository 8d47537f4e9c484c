package checkout

import (
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// Paths of the pages, below the public URL of the gateway.
const (
	pagePath = "/pay/"
	billPath = "/boleto.pdf"
)

// Links returns the function that makes the URLs of a pay-in's pages under
// base, which has no trailing slash. All nodes make the same URLs for a pay-in.
func Links(base string, keys *db.Keyring) func(p *payment.Payin) payment.Links {
	return func(p *payment.Payin) (l payment.Links) {
		number, err := payment.MerchantNumber(p.ExternalID)
		if err != nil {
			return l // not a pay-in of the store
		}
		var buffer [256]byte
		text := append(append(buffer[:0], base...), pagePath...)
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
