package coretest

import (
	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Driver opens accounts of one kind at banks of tests, one bank per setting "bank". An
// account of an unknown bank cannot be opened.
type Driver struct {
	Name  string
	Banks map[string]processor.Processor
}

// Kind implements [processor.Driver].
func (d Driver) Kind() string { return d.Name }

// Contract implements [processor.Driver].
func (d Driver) Contract(a processor.Account) string { return a.Settings["bank"] }

// Open implements [processor.Driver].
func (d Driver) Open(a processor.Account, _ processor.Env) (processor.Processor, error) {
	if b, ok := d.Banks[a.Settings["bank"]]; ok {
		return b, nil
	}
	return nil, processor.NotOpen(a.ID, nil)
}

// Accounts restarts the process with accounts of its database, which these drivers open,
// and returns their use cases and the registry, which follows only when the test says so.
func (g *Gateway) Accounts(drivers ...processor.Driver) (*account.Service, *account.Registry) {
	g.T.Helper()
	o := account.Options{Store: g.Store, Env: g.Env, Drivers: drivers, Author: actor.Author{Actor: actor.System}}
	registry := account.NewRegistry(o, g.Logger(), nil)
	_, err := registry.Follow(g.T.Context())
	g.Must(err)
	g.Restart(func(o *app.CoreOptions) { o.Processors = registry })
	return account.New(o), registry
}

// Account adds an account at a bank of a driver.
func (g *Gateway) Account(s *account.Service, id, driver, bank string) store.Account {
	g.T.Helper()
	a, err := s.Add(g.T.Context(), store.Account{ID: id, Driver: driver, Settings: map[string]string{"bank": bank}})
	g.Must(err)
	return a
}

// SetRoutes replaces the gateway's merchant's routes of an operation, for a method or for
// all, and reads the merchant again.
func (g *Gateway) SetRoutes(s *account.Service, operation payment.Operation, method payment.Method, accounts ...string) {
	g.T.Helper()
	var list []payment.Route
	for _, id := range accounts {
		list = append(list, payment.Route{Account: id})
	}
	g.Must(s.SetRoutes(g.T.Context(), &g.Merchant, operation, method, list))
	var err error
	g.Merchant, err = g.Store.Merchant(g.T.Context(), g.Merchant.ID)
	g.Must(err)
}
