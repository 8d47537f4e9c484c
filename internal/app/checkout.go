package app

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
)

// PublicURL is the base URL of the payers' pages.
func (a *App) PublicURL() string {
	if a.cfg.PublicURL != "" {
		return a.cfg.PublicURL
	}
	return a.BaseURL()
}

// keepPublicURL stores the public URL for commands whose events name a page. Without it
// those events lack the page's URL, so a failure does not stop the gateway.
func (a *App) keepPublicURL(ctx context.Context) {
	known, err := a.store.Setting(ctx, store.SettingPublicURL)
	if err == nil && known != a.PublicURL() {
		err = a.store.Transact(ctx, func(tx *store.Tx) error { return tx.SetSetting(ctx, store.SettingPublicURL, a.PublicURL()) })
	}
	if err != nil {
		a.log.WarnContext(ctx, "public URL not stored", "error", err)
	}
}

func (a *App) links() func(*payment.Payin) payment.Links {
	return checkout.Links(a.PublicURL(), a.store.Keys())
}

// payers serves the payers' pages and, for all other paths, api.
func (a *App) payers(api http.Handler) http.Handler {
	o := checkout.Options{
		Reader: a.store, Cards: a.core.Payins, Tokens: a.store.Keys(), Hub: a.hub, Clock: a.env.Clock, Processors: a.accounts, Log: a.log,
		SandboxProcessor: sandbox.Name, Observe: a.observe,
	}
	if a.cfg.Mode == config.Dev {
		o.Sandbox = a.sandbox
	}
	pages := checkout.New(o)
	if a.cfg.Mode == config.Dev {
		metrics := a.BaseURL()
		if a.ops != nil {
			metrics = "http://" + a.OpsAddress()
		}
		home := &sandboxcontrol.Home{
			API: api, Env: a.env, Log: a.log, BaseURL: a.BaseURL(), MetricsURL: metrics + "/metrics", Key: SandboxKey, Secret: SandboxSecret,
			WebhookSecret: a.WebhookSecret, Version: a.opts.Version,
		}
		api = home.Handler()
	}
	public := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case checkout.Serves(r.URL.Path):
			pages.ServeHTTP(w, r)
			return
		case r.URL.Path == "/favicon.ico": // requested by every browser
			w.Header().Set("Cache-Control", "public, max-age=86400")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		api.ServeHTTP(w, r)
	})
	if a.cfg.Mode == config.Dev {
		return sandboxcontrol.Guard(public, hostsOf(a.cfg.BaseURL, a.cfg.PublicURL)...)
	}
	return public
}

// hostsOf are the hosts of URLs, in lower case.
func hostsOf(urls ...string) (hosts []string) {
	for _, text := range urls {
		if u, err := url.Parse(text); err == nil && u.Hostname() != "" {
			hosts = append(hosts, strings.ToLower(u.Hostname()))
		}
	}
	return hosts
}
