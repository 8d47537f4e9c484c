package payment

import (
	"slices"

	"github.com/porteira/porteira/internal/money"
)

// Take is what was taken of money that has not settled.
type Take struct {
	Receivable ID
	Amount     money.Cents
}

// Takes are what was taken of the receivables of an order, in the order in which it was taken.
type Takes []Take

// Sum is all of it.
func (t Takes) Sum() (sum money.Cents) {
	for i := range t {
		sum += t[i].Amount
	}
	return sum
}

// Last divides takes into what was taken first and up to amount cents that were taken last.
func (t Takes) Last(amount money.Cents) (first, last Takes) {
	for _, take := range slices.Backward(t) {
		n := min(take.Amount, amount)
		amount -= n
		if n > 0 {
			last = append(last, Take{take.Receivable, n})
		}
		if n < take.Amount {
			first = append(Takes{{take.Receivable, take.Amount - n}}, first...)
		}
	}
	return first, last
}
