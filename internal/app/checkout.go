package app

import (
	"context"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/loop"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
)

// PublicURL is the address at which payers reach their pages.
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
		o.Sandbox = a.sandbox
	}
	pages := checkout.New(o)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case checkout.Serves(r.URL.Path):
			pages.ServeHTTP(w, r)
			return
		case r.URL.Path == "/favicon.ico": // browsers request one by themselves
			w.Header().Set("Cache-Control", "public, max-age=86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// pollEvery is how often waiting pages poll for changes by other processes.
const pollEvery = 1500 * time.Millisecond

// pollLoops wake waiting pages after changes by other processes. On SQLite there
// are no others.
func (a *App) pollLoops() []*loop.Loop {
	if !store.IsPostgres(a.cfg.Database) {
		return nil
	}
	return []*loop.Loop{loop.New(loop.Options{
		Name: "wake-pages", Every: pollEvery, Clock: a.env.Clock, Random: a.env.Random, Log: a.log,
		Step: func(ctx context.Context) (int, error) { return a.hub.Poll(ctx, a.store) },
	})}
}
