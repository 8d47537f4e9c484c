// Package checkout is the payer's pages.
package checkout
