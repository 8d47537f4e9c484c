// Package checkout serves the payer's pages: how to pay an order, its state,
// its receipt and its boleto as a PDF.
package checkout
