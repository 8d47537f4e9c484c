package app

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/loop"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// PublicURL is the address under which payers reach their pages.
func (a *App) PublicURL() string {
	if a.cfg.PublicURL != "" {
		return a.cfg.PublicURL
	}
	return a.BaseURL()
}

func (a *App) links() func(*payment.Payin) payment.Links {
	return checkout.Links(a.PublicURL(), a.store.Keys())
}

// payers serves the payer's pages beside the API.
func (a *App) payers(api http.Handler) http.Handler {
	o := checkout.Options{
		Reader: a.store, Flow: a.flow, Tokens: a.store.Keys(), Hub: a.hub, Clock: a.env.Clock, Processors: a.processors, Log: a.log,
		SandboxProcessor: sandbox.Name, Observe: a.observe,
	}
	if a.cfg.Mode == config.Dev {
		o.Sandbox = &control{a}
	}
	pages := checkout.New(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case checkout.Serves(r.URL.Path):
			pages.ServeHTTP(w, r)
			return
		case r.URL.Path == "/favicon.ico": // browsers ask for one unasked
			w.Header().Set("Cache-Control", "public, max-age=86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// newsEvery is how often pages are looked after whose order another process may
// have changed.
const newsEvery = 1500 * time.Millisecond

// newsLoops wake waiting pages by what other processes did. On SQLite there are
// no others.
func (a *App) newsLoops() []*loop.Loop {
	if !store.IsPostgres(a.cfg.Database) {
		return nil
	}
	return []*loop.Loop{loop.New(loop.Options{
		Name: "wake-pages", Every: newsEvery, Clock: a.env.Clock, Random: a.env.Random, Log: a.log,
		Step: func(ctx context.Context) (int, error) { return a.hub.Poll(ctx, a.store) },
	})}
}

var _ checkout.Sandbox = (*control)(nil)

// Act implements [checkout.Sandbox]. A card is refused by its issuer, which
// leaves the order to be tried again; other orders fail.
func (c *control) Act(ctx context.Context, id payment.ID, action string) error {
	if action != "refuse" {
		return c.PayinAction(ctx, id, action, 0)
	}
	p, err := c.app.store.FindPayin(ctx, id)
	if err != nil {
		return orderError(err)
	}
	if p.Method != payment.CreditCard {
		return c.PayinAction(ctx, id, "fail", 0)
	}
	if p.Status != payment.PayinPending {
		return impossible(action, string(p.Status))
	}
	m, err := c.app.store.Merchant(ctx, p.Merchant)
	if err != nil {
		return err
	}
	if err := c.app.bank.control.DeclineCard(ctx, chargeOf(&m, &p)); err != nil {
		return bankProblem(err, action, string(p.Status))
	}
	if err := c.app.followCharge(ctx, &p); err != nil {
		return err
	}
	return c.await(ctx, func() (bool, error) {
		now, err := c.app.store.Payin(ctx, p.Merchant, p.ID)
		return now.Version > p.Version, err
	})
}

// followCharge books what the bank says of an order without waiting for its
// notice.
func (a *App) followCharge(ctx context.Context, p *payment.Payin) error {
	charger, ok := a.processors[p.Processor].(processor.Charger)
	if !ok {
		return problem.New(problem.Unavailable, "The order's processor is not configured.")
	}
	if report := charger.QueryCharge(ctx, p.ExternalID); report.Lookup == processor.Found {
		return a.flow.ApplyCharge(ctx, p.Processor, p.ExternalID, report, nil)
	}
	return nil
}
