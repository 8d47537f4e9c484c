package processor

// Budgeted is a processor whose account has a budget of requests.
type Budgeted interface {
	// BudgetLeft is the number of requests that this process may make at once; limited is false
	// if the account has no budget.
	BudgetLeft() (requests int, limited bool)
	// BudgetLow reports whether the rest is for what must go on: an order without credentials is
	// not accepted.
	BudgetLow() bool
}
