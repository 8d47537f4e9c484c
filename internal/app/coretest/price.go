package coretest

import (
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// SetPrice sets a price of the merchant's new orders, for all instalments.
func (g *Gateway) SetPrice(method payment.Method, terms payment.Terms) {
	g.T.Helper()
	_, err := g.Merchants.SetPrice(g.T.Context(), g.Merchant.ID, payment.Price{Method: method, Range: payment.Range{Terms: terms}}, merchant.Unnamed{})
	g.Must(err)
	g.Merchant, err = g.Store.Merchant(g.T.Context(), g.Merchant.ID)
	g.Must(err)
}

// Settle makes due receivables available.
func (g *Gateway) Settle() { g.T.Helper(); g.Run(g.Payins.Settle) }

// Receivables are those of a merchant that have not settled, by their times.
func (g *Gateway) Receivables(m store.Merchant) []store.ReceivableDay {
	g.T.Helper()
	list, err := g.Store.ReceivableDays(g.T.Context(), m.ID, Start.AddDate(-10, 0, 0), Start.AddDate(10, 0, 0))
	g.Must(err)
	return list
}
