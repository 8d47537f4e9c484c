package account

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Change is what [Service.Apply] adds, or changes of an account that exists.
type Change struct {
	Account string
	New     bool
	Fields  []FieldChange // none if it is as declared
}

// FieldChange is a changed field. The values of secrets are left out.
type FieldChange struct{ Name, From, To string }

// Plan compares declared accounts with those that exist; it makes no call. A state "", and
// secrets that are not named, stay as they are. Errors: problem kind validation_failed with
// every invalid account, also if one that exists has another driver, merchant or contract.
func (s *Service) Plan(ctx context.Context, declared []store.Account) ([]Change, error) {
	var list []Change
	var faults []string
	for i := range declared {
		c, err := s.plan(ctx, &declared[i])
		if err == nil {
			err = s.declaredTwice(declared[:i], &declared[i])
		}
		var invalid *problem.Error
		switch {
		case err == nil:
			list = append(list, c)
		case errors.As(err, &invalid) && invalid.Kind == problem.ValidationFailed:
			faults = append(faults, declared[i].ID+": "+invalid.Detail)
		default:
			return nil, err
		}
	}
	if len(faults) > 0 {
		return nil, problem.New(problem.ValidationFailed, strings.Join(faults, " "))
	}
	return list, nil
}

func (s *Service) plan(ctx context.Context, want *store.Account) (Change, error) {
	c := Change{Account: want.ID}
	now, err := s.Store.Account(ctx, want.ID)
	if errors.Is(err, store.ErrNotFound) {
		c.New = true
		return c, s.Check(ctx, want)
	}
	if err != nil {
		return c, store.Problem(err)
	}
	if now.Damaged != nil {
		return c, now.Damaged
	}
	next := now
	declare(&next, want)
	if now.Driver != want.Driver || now.Merchant != want.Merchant {
		return c, problem.New(problem.ValidationFailed, "The driver and the merchant of an account stay: add another account.")
	}
	if err := s.Check(ctx, &next); err != nil {
		return c, err
	}
	if d := s.driver(now.Driver); d.Contract(driverAccount(&now)) != d.Contract(driverAccount(&next)) {
		if err := s.mayChangeContract(ctx, &now); err != nil {
			return c, err
		}
	}
	c.Fields = fieldChanges(&now, &next)
	return c, nil
}

// mayChangeContract returns nil if an account was never used: then its settings were wrong, and are corrected.
func (s *Service) mayChangeContract(ctx context.Context, now *store.Account) error {
	if now.State != payment.AccountSuspended {
		return problem.New(problem.ValidationFailed, "The settings are of another contract, whose payments this account does not have: add another account. To correct one that was never used, suspend it first: porteira account suspend "+now.ID+".")
	}
	used, err := s.Store.AccountUsed(ctx, now.ID)
	if err == nil && used {
		err = problem.New(problem.ValidationFailed, "The settings are of another contract, and this account has orders, notices or payments, or its lists were read: add another account.")
	}
	return store.Problem(err)
}

// declaredTwice compares a declared account with those before it.
func (s *Service) declaredTwice(others []store.Account, a *store.Account) error {
	for i := range others {
		switch other := &others[i]; {
		case other.ID == a.ID:
			return problem.New(problem.ValidationFailed, "It is declared twice.")
		case other.Driver == a.Driver && s.driver(a.Driver).Contract(driverAccount(other)) == s.driver(a.Driver).Contract(driverAccount(a)):
			return problem.New(problem.ValidationFailed, "Its contract is that of "+other.ID+": its payments would be booked twice.")
		}
	}
	return nil
}

// declare changes a as want declares it. Replaced secrets stay valid beside the new ones.
func declare(a, want *store.Account) {
	a.Settings = maps.Clone(want.Settings)
	if a.Settings == nil {
		a.Settings = map[string]string{}
	}
	if secrets := merged(a.Secrets.Current, want.Secrets.Current); !maps.Equal(secrets, a.Secrets.Current) {
		a.Secrets.Previous, a.Secrets.Current = a.Secrets.Current, secrets
	}
	if want.State != "" && want.State != a.State {
		a.State, a.SuspendedFrom = want.State, ""
	}
}

func fieldChanges(now, next *store.Account) []FieldChange {
	var list []FieldChange
	if now.State != next.State {
		list = append(list, FieldChange{"state", string(now.State), string(next.State)})
	}
	for _, name := range slices.Sorted(maps.Keys(merged(now.Settings, next.Settings))) {
		if from, to := now.Settings[name], next.Settings[name]; from != to {
			list = append(list, FieldChange{"settings." + name, from, to})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(next.Secrets.Current)) {
		if now.Secrets.Current[name] != next.Secrets.Current[name] {
			list = append(list, FieldChange{Name: "secrets." + name})
		}
	}
	return list
}

// Apply adds and changes accounts as [Service.Plan] has listed, each in its own commit: if
// one fails, Apply again continues. Errors: as Plan.
func (s *Service) Apply(ctx context.Context, declared []store.Account) ([]Change, error) {
	list, err := s.Plan(ctx, declared)
	if err != nil {
		return nil, err
	}
	for i := range list {
		want := declared[i]
		switch {
		case list[i].New:
			_, err = s.Add(ctx, want)
		case len(list[i].Fields) > 0:
			_, err = s.change(ctx, want.ID, func(a *store.Account) error {
				declare(a, &want)
				return nil
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
