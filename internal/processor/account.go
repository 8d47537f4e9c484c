package processor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
)

// Account is one contract with one processor, as its driver needs it.
type Account struct {
	ID       string
	Settings map[string]string
	Secrets  map[string]string
	// Previous are the secrets before the last rotation, while they are valid.
	Previous map[string]string
}

// Env is what a driver gets besides its account. A driver calls through package
// accounthttp, which needs both.
type Env struct {
	Clock     env.Clock
	Transport http.RoundTripper
}

// Driver opens accounts of one kind of processor.
type Driver interface {
	// Kind is the driver's name in accounts.
	Kind() string
	// Open checks an account and returns its processor. It makes no call. Its error is a
	// problem of kind validation_failed with every invalid setting and secret.
	Open(a Account, e Env) (Processor, error)
	// Contract names the contract of an account: two accounts with the same one would book
	// its payments twice.
	Contract(a Account) string
}

// Accounts are the open accounts of this process. It is safe for concurrent use.
type Accounts interface {
	// Find returns an account's processor; nil if this process cannot open the account.
	Find(id string) Processor
	// Of is Find with an error: a problem of kind unavailable.
	Of(id string) (Processor, error)
	// Allows returns nil if an account may be used so now; else a problem of kind
	// unavailable.
	Allows(id string, use payment.AccountUse) error
	// Refused reports whether the account is suspended because its processor refuses the
	// credentials: it answers no query.
	Refused(id string) bool
	// OpenTo reports whether an account is one of all merchants, or of this one.
	OpenTo(id string, merchant payment.ID) bool
	// Authentic reports whether a token is that of the account's path for notices.
	Authentic(id, token string) bool
	// AddedUntil lists the accounts, open or not, that were added until t and from which
	// money of a merchant may have left.
	AddedUntil(t time.Time, merchant payment.ID) []string
	// IDs lists the open accounts, sorted.
	IDs() []string
}

// Registry is a fixed set of live accounts that all merchants share, by id.
type Registry map[string]Processor

var _ Accounts = Registry(nil)

// Find implements [Accounts].
func (r Registry) Find(id string) Processor { return r[id] }

// Of implements [Accounts].
func (r Registry) Of(id string) (Processor, error) {
	if p, ok := r[id]; ok {
		return p, nil
	}
	return nil, NotOpen(id, nil)
}

// Allows implements [Accounts].
func (r Registry) Allows(id string, _ payment.AccountUse) error {
	_, err := r.Of(id)
	return err
}

// Refused implements [Accounts].
func (r Registry) Refused(string) bool { return false }

// OpenTo implements [Accounts].
func (r Registry) OpenTo(string, payment.ID) bool { return true }

// Authentic implements [Accounts]: the token of an account is its id.
func (r Registry) Authentic(id, token string) bool { return r[id] != nil && token == id }

// AddedUntil implements [Accounts].
func (r Registry) AddedUntil(time.Time, payment.ID) []string { return r.IDs() }

// IDs implements [Accounts].
func (r Registry) IDs() []string { return slices.Sorted(maps.Keys(r)) }

// NotOpen is the problem of an account that this process cannot open. The cause is for
// the log.
func NotOpen(id string, cause error) error {
	if cause == nil {
		cause = fmt.Errorf("account %q is not configured", id)
	}
	return problem.New(problem.Unavailable, "The processor account of this order is not available on this gateway.").With(cause)
}

// NotAllowed is the problem of an account whose state does not allow a use.
func NotAllowed(id string, state payment.AccountState, use payment.AccountUse) error {
	return problem.New(problem.Unavailable, "The processor account does not accept this now. Send the same request again later.").
		With(fmt.Errorf("account %q is %s, which does not allow %s", id, state, use))
}

// NewOrder is what the choice of an account depends on.
type NewOrder struct {
	Merchant   payment.ID
	Operation  payment.Operation
	Method     payment.Method
	Amount     money.Cents
	ExternalID string
}

// Choose chooses the account of a new order from its merchant's routes. Errors: problem
// kinds method_not_enabled if no account of the routes offers the method,
// limit_exceeded if the amount is outside the limits of all routes, unavailable if the
// accounts cannot be used now.
func Choose(accounts Accounts, routes []payment.Route, o NewOrder) (id string, p Processor, err error) {
	var eligible []payment.Route
	for _, r := range payment.RoutesOf(routes, o.Operation, o.Method) {
		refused := Eligible(accounts, r, o)
		switch {
		case refused == nil:
			eligible = append(eligible, r)
		case err == nil || problem.Is(refused, problem.Unavailable): // it may become eligible
			err = refused
		}
	}
	if len(eligible) == 0 {
		return "", nil, cmp.Or[error](err, problem.New(problem.MethodNotEnabled, "The merchant has no route for this payment method."))
	}
	id = payment.SharedRoute(eligible, o.ExternalID).Account
	p, err = accounts.Of(id)
	return id, p, err
}

// Eligible returns nil if a route can take a new order; else the problem, as in [Choose].
func Eligible(accounts Accounts, r payment.Route, o NewOrder) error {
	use := payment.UsePayin
	if o.Operation == payment.OperationPayout {
		use = payment.UsePayout
	}
	p, err := accounts.Of(r.Account)
	switch {
	case err != nil:
		return err
	case !accounts.OpenTo(r.Account, o.Merchant):
		return problem.New(problem.MethodNotEnabled, "The merchant has no route for this payment method.").
			With(fmt.Errorf("account %q belongs to another merchant", r.Account))
	case !Offers(p, o.Operation, o.Method):
		return problem.New(problem.MethodNotEnabled, "The merchant's processor does not offer this payment method.")
	case !r.Admits(o.Amount):
		return problem.New(problem.LimitExceeded, "The amount is outside the limits of the merchant's routes.").With(errors.New("the amount is outside the limits of this route"))
	}
	return accounts.Allows(r.Account, use)
}

// Offers reports whether a processor offers an operation with a method.
func Offers(p Processor, operation payment.Operation, method payment.Method) bool {
	if operation == payment.OperationPayout {
		_, ok := p.(Transferrer)
		return ok
	}
	_, ok := p.(Charger)
	return ok && slices.Contains(p.Profile().Methods, method)
}
