// Package account implements the use cases of accounts at processors: add, change, rotate, follow.
//
// A [Registry] keeps the accounts of this process open. It follows the table, so that a
// change reaches every process within 2 s, without a restart.
package account

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Options configure a Service and a Registry.
type Options struct {
	Store   *store.Store
	Env     env.Env
	Drivers []processor.Driver
	Author  actor.Author // of all changes of the Service; without one they are refused
}

func (o *Options) driver(kind string) processor.Driver {
	for _, d := range o.Drivers {
		if d.Kind() == kind {
			return d
		}
	}
	return nil
}

// open opens an account; it makes no call.
func (o *Options) open(a *store.Account) (processor.Processor, error) {
	if a.Damaged != nil {
		return nil, a.Damaged
	}
	d := o.driver(a.Driver)
	if d == nil {
		return nil, invalidAccount([]problem.FieldError{{Field: "driver", Code: problem.CodeNotAllowed, Detail: "is unknown: " + a.Driver}})
	}
	proc, err := d.Open(driverAccount(a), processor.Env{Clock: o.Env.Clock, Transport: o.Env.Processor})
	if invalid, ok := errors.AsType[*problem.Error](err); ok && len(invalid.Fields) > 0 {
		err = invalidAccount(invalid.Fields)
	}
	return proc, err
}

// OpenNew opens an account with its new secrets alone, during a rotation. It makes no call.
func (o *Options) OpenNew(a *store.Account) (processor.Processor, error) {
	alone := *a
	alone.Secrets.Previous = nil
	return o.open(&alone)
}

// invalidAccount is the error about fields of an account. Its text has all of them, as commands
// and the log show only the text.
func invalidAccount(fields []problem.FieldError) error {
	texts := make([]string, len(fields))
	for i, f := range fields {
		texts[i] = f.Field + " " + f.Detail
	}
	return problem.New(problem.ValidationFailed, "Invalid account: "+strings.Join(texts, "; ")+".").WithFields(fields...)
}

func driverAccount(a *store.Account) processor.Account {
	return processor.Account{ID: a.ID, Settings: a.Settings, Secrets: a.Secrets.Current, Previous: a.Secrets.Previous}
}

// Service implements the use cases of accounts.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// As returns the use cases with another author of all changes.
func (s *Service) As(by actor.Author) *Service {
	o := s.Options
	o.Author = by
	return New(o)
}

// tokenBytes is the entropy of a token for notices, in bytes.
const tokenBytes = 32

func (s *Service) newToken() string {
	b := make([]byte, tokenBytes)
	s.Env.Random.Read(b)
	return hex.EncodeToString(b)
}

// accountID is the form of an account's id, which is part of paths and ledger accounts.
var accountID = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// reservedID is no account's: it stands for no accounts in porteira route set.
const reservedID = "none"

// Check opens an account offline, and compares it with the others. Errors: problem kind
// validation_failed with every invalid field.
func (s *Service) Check(ctx context.Context, a *store.Account) error {
	others, err := s.Store.Accounts(ctx)
	if err != nil {
		return store.Problem(err)
	}
	return s.check(a, others)
}

func (s *Service) check(a *store.Account, others []store.Account) error {
	var fields []problem.FieldError
	if !accountID.MatchString(a.ID) {
		fields = append(fields, problem.FieldError{
			Field: "name", Code: problem.CodeInvalidFormat, Detail: "must have 1 to 40 small letters, digits or hyphens, and not begin with a hyphen",
		})
	}
	if a.ID == reservedID && !slices.ContainsFunc(others, func(v store.Account) bool { return v.ID == a.ID }) {
		fields = append(fields, problem.FieldError{
			Field: "name", Code: problem.CodeNotAllowed, Detail: "must not be " + reservedID + ", which removes the routes in porteira route set",
		})
	}
	if a.State != "" && !slices.Contains(payment.AccountStates, a.State) {
		fields = append(fields, problem.FieldError{Field: "state", Code: problem.CodeNotAllowed, Detail: "must be live, draining or suspended"})
	}
	_, err := s.open(a)
	var invalid *problem.Error
	switch {
	case errors.As(err, &invalid):
		fields = append(fields, invalid.Fields...)
	case err != nil:
		return err
	default:
		if twin := s.sameContract(a, others); twin != "" {
			fields = append(fields, problem.FieldError{
				Field: "settings", Code: problem.CodeNotAllowed, Detail: "are those of the contract of account " + twin + ": its payments would be booked twice",
			})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return invalidAccount(fields)
}

// sameContract finds another account that has the same contract; "" if there is none.
func (s *Service) sameContract(a *store.Account, others []store.Account) string {
	d := s.driver(a.Driver)
	for i := range others {
		if other := &others[i]; other.ID != a.ID && other.Driver == a.Driver && d.Contract(driverAccount(other)) == d.Contract(driverAccount(a)) {
			return other.ID
		}
	}
	return ""
}

// Add adds an account, live if its state is "", with a token for its notices. It makes no call. Errors: problem
// kind validation_failed with every invalid field, or if the id is taken.
func (s *Service) Add(ctx context.Context, a store.Account) (store.Account, error) {
	a.State, a.Secrets.NoticeToken = cmp.Or(a.State, payment.AccountLive), s.newToken()
	err := s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		others, err := tx.Accounts(ctx)
		if err == nil {
			err = s.check(&a, others)
		}
		if err != nil {
			return err
		}
		a, err = tx.CreateAccount(ctx, a)
		return err
	})
	if errors.Is(err, store.ErrConflict) {
		return a, problem.New(problem.ValidationFailed, "An account with this name already exists.").With(err)
	}
	return a, store.Problem(err)
}

// Ensure returns an account, which it adds if it does not exist, however many processes
// start at the same time.
func (s *Service) Ensure(ctx context.Context, a store.Account) (store.Account, error) {
	got, err := s.Store.Account(ctx, a.ID)
	if !errors.Is(err, store.ErrNotFound) {
		return got, store.Problem(err)
	}
	if a, err = s.Add(ctx, a); err == nil {
		return a, nil
	}
	if got, other := s.Store.Account(ctx, a.ID); other == nil { // another process was faster
		return got, nil
	}
	return a, err
}

// SetState drains, suspends or resumes an account: to is draining, suspended or live. Every
// process follows within 2 s. One that is suspended here is not resumed by the gateway,
// also if the gateway had suspended it before. Errors: problem kinds not_found, invalid_state.
func (s *Service) SetState(ctx context.Context, id string, to payment.AccountState) (store.Account, error) {
	return s.change(ctx, id, func(a *store.Account) error {
		if a.State == to && !a.Refused() {
			return problem.New(problem.InvalidState, "The account is "+string(to)+" already.")
		}
		a.State, a.SuspendedFrom = to, ""
		return nil
	})
}

// Rotate replaces secrets, and the token for notices if token is set. The previous values
// stay valid until [Service.Finish] or the next rotation. Errors: problem kinds not_found,
// validation_failed.
func (s *Service) Rotate(ctx context.Context, id string, secrets map[string]string, token bool) (store.Account, error) {
	fresh := s.newToken()
	return s.change(ctx, id, func(a *store.Account) error {
		if len(secrets) > 0 {
			a.Secrets.Previous = a.Secrets.Current
			a.Secrets.Current = merged(a.Secrets.Current, secrets)
		}
		if token {
			a.Secrets.PreviousToken, a.Secrets.NoticeToken = a.Secrets.NoticeToken, fresh
		}
		_, err := s.open(a)
		return err
	})
}

// Finish ends a rotation: the previous secrets and token are refused. Errors: problem kinds
// not_found, invalid_state if there are none.
func (s *Service) Finish(ctx context.Context, id string) (store.Account, error) {
	return s.change(ctx, id, func(a *store.Account) error {
		if len(a.Secrets.Previous) == 0 && a.Secrets.PreviousToken == "" {
			return problem.New(problem.InvalidState, "The account has no previous secrets.")
		}
		a.Secrets.Previous, a.Secrets.PreviousToken = nil, ""
		return nil
	})
}

// Installed records that the address for notices was registered at the account's processor.
func (s *Service) Installed(ctx context.Context, a *store.Account) error {
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		tx.Record(store.NounAccount, "install", a.Merchant, a.ID)
		return nil
	}))
}

// Find reads an account. Errors: problem kind not_found.
func (s *Service) Find(ctx context.Context, id string) (store.Account, error) {
	a, err := s.Store.Account(ctx, id)
	return a, named(id, err)
}

// change changes an account for a person. Refused credentials are tried at once after a
// change of the account; if a person changes its state, the case about them closes.
func (s *Service) change(ctx context.Context, id string, how func(a *store.Account) error) (a store.Account, err error) {
	err = s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) (err error) {
		refused := false
		a, err = tx.ChangeAccount(ctx, id, func(a *store.Account) error {
			refused, a.CheckAt = a.Refused(), time.Time{}
			return how(a)
		})
		if err != nil || !refused || a.Refused() {
			return err
		}
		return tx.Apply(ctx, &store.Needs{}, func(_ *store.Loaded, c *store.Changes) error {
			c.CloseCase(a.Merchant, refusalCase(&a), store.ResolvedByCommand)
			return nil
		})
	})
	return a, named(id, err)
}

func named(id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.NotFound, "Account "+id+" not found: porteira account list lists all accounts.").With(err)
	}
	return store.Problem(err)
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, b)
	return m
}

// SetRoutes replaces the routes of a merchant for an operation and a method; "" is every
// method. Errors: problem kind validation_failed if an account does not exist, belongs to
// another merchant or does not offer the method, or if the limits or shares are invalid.
func (s *Service) SetRoutes(ctx context.Context, m *store.Merchant, operation payment.Operation, method payment.Method, list []payment.Route) error {
	if err := s.checkRoutes(ctx, m, operation, method, list); err != nil {
		return err
	}
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		return tx.SetRoutes(ctx, m.ID, operation, method, list)
	}))
}

func (s *Service) checkRoutes(ctx context.Context, m *store.Merchant, operation payment.Operation, method payment.Method, list []payment.Route) error {
	invalid := func(text string) error { return problem.New(problem.ValidationFailed, text) }
	if operation == payment.OperationPayout && method != "" && method != payment.PIX || method != "" && !slices.Contains(payment.Methods, method) {
		return invalid("The method is not one of this operation.")
	}
	shares := 0
	var seen []string
	for _, r := range list {
		a, err := s.Find(ctx, r.Account)
		if err != nil {
			return err
		}
		shares += r.Share
		switch {
		case slices.Contains(seen, r.Account):
			return invalid("Account " + r.Account + " appears twice.")
		case !a.Merchant.IsZero() && a.Merchant != m.ID:
			return invalid("Account " + r.Account + " belongs to another merchant.")
		case r.Minimum < 0 || r.Maximum < 0 || r.Maximum > 0 && r.Maximum < r.Minimum:
			return invalid("The limits of account " + r.Account + " are invalid.")
		case r.Share < 0 || shares > 100:
			return invalid("The shares must be 0 to 100 percent, and at most 100 together.")
		}
		seen = append(seen, r.Account)
		p, err := s.open(&a)
		if err != nil {
			return err
		}
		switch {
		case operation == payment.OperationPayout && !processor.Offers(p, operation, payment.PIX):
			return invalid("Account " + r.Account + " has no payouts: its processor or profile does not offer them.")
		case method != "" && !processor.Offers(p, operation, method):
			return invalid("Account " + r.Account + " does not offer this method.")
		}
	}
	return nil
}
