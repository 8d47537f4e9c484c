package payment

import (
	"hash/fnv"

	"github.com/porteira/porteira/internal/money"
)

// Route names an account for new orders of a merchant. Of those for an operation and a
// method, the first one that is eligible takes the order.
type Route struct {
	Operation Operation
	Method    Method // "": every method that has no routes of its own
	Account   string
	Minimum   money.Cents // of the order's amount
	Maximum   money.Cents // 0: none
	Share     int         // percent of the orders; 0: none
}

// AllRoutes is the routes of a merchant whose orders all have one account.
func AllRoutes(account string) []Route {
	return []Route{{Operation: OperationPayin, Account: account}, {Operation: OperationPayout, Account: account}}
}

// RoutesOf is the routes for an operation and a method, in order: those of the method, or
// else those of every method.
func RoutesOf(routes []Route, operation Operation, method Method) []Route {
	var own, others []Route
	for _, r := range routes {
		switch {
		case r.Operation != operation:
		case r.Method == method:
			own = append(own, r)
		case r.Method == "":
			others = append(others, r)
		}
	}
	if len(own) > 0 {
		return own
	}
	return others
}

// Admits reports whether an amount is within the limits of the route.
func (r Route) Admits(amount money.Cents) bool {
	return amount >= r.Minimum && (r.Maximum == 0 || amount <= r.Maximum)
}

// SharedRoute picks one of several eligible routes: by their shares if some have one, else
// the first. The same external id always gives the same route.
func SharedRoute(eligible []Route, externalID string) Route {
	h := fnv.New32a()
	_, _ = h.Write([]byte(externalID)) // never fails
	point, sum := int(h.Sum32()%100), 0
	rest := -1
	for i, r := range eligible {
		if r.Share == 0 && rest < 0 {
			rest = i
		}
		if sum += r.Share; point < sum {
			return r
		}
	}
	return eligible[max(rest, 0)]
}
