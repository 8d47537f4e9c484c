// Package apptest runs complete gateways in process for tests, with clients that
// validate every answer against the contract, receivers of webhooks, and access to
// the rows of the database.
package apptest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor/sandbox"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// BankSecret is the signing secret of the sandbox's bank, the same for all gateways.
const BankSecret = "the-secret-of-the-bank-of-tests"

// masterKey is the same for all gateways, so that they can share a database.
var masterKey = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, db.MasterKeyLength))

// Secrets are the environment variables with the secrets of a gateway.
func Secrets() []string {
	return []string{"PORTEIRA_MASTER_KEY=" + masterKey, "PORTEIRA_BANK_SECRET=" + BankSecret}
}

// Config loads the configuration of a gateway on a free port. Flags are pairs of
// name and value; environ is its environment.
func Config(t testing.TB, m config.Mode, environ []string, flags ...string) *config.Config {
	t.Helper()
	s := config.Sources{Mode: m, Environ: environ, Flags: map[string]string{"listen": "127.0.0.1:0"}}
	if m == config.Serve { // the key is the same for all, and folders of tests are readable
		s.Flags["accept-risk"] = "weak-master-key,readable-secrets"
	}
	for i := 0; i < len(flags); i += 2 {
		if flags[i] == "database" { // its URL may have a password
			s.Environ = append(slices.Clip(s.Environ), "PORTEIRA_DATABASE="+flags[i+1])
			continue
		}
		s.Flags[flags[i]] = flags[i+1]
	}
	c, err := config.Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Gateway is a gateway that runs in this process. Its Client has the
// credentials of the sandbox's merchant.
type Gateway struct {
	*Client

	// App is the gateway itself.
	App *app.App
	// Log is its log, from level debug on.
	Log *Log

	cfg  *config.Config
	env  env.Env
	stop func()
}

// Opened is the result of Open.
type Opened struct {
	app   *app.App
	err   error
	cfg   *config.Config
	log   *Log
	ready chan struct{}
}

// Open creates a gateway that does not run yet. It may be called from any goroutine.
func Open(ctx context.Context, cfg *config.Config) Opened {
	o := Opened{cfg: cfg, log: &Log{}, ready: make(chan struct{})}
	log := slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.app, o.err = app.New(ctx, cfg, app.Options{Log: log, Ready: func(*app.App) { close(o.ready) }})
	return o
}

// Run opens and serves a gateway until t ends or Stop is called.
func Run(t testing.TB, cfg *config.Config) *Gateway {
	t.Helper()
	return Open(t.Context(), cfg).Serve(t)
}

// Serve runs the gateway until t ends or Stop is called.
func (o Opened) Serve(t testing.TB) *Gateway {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	g := &Gateway{App: o.app, Log: o.log, cfg: o.cfg, env: env.System(env.OutboundOptions{})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.app.Run(ctx) }()
	select {
	case <-o.ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the gateway did not start: %v\n%s", err, g.Log)
	}
	g.Client = &Client{t, "http://" + o.app.Address(), app.SandboxKey, app.SandboxSecret, g.env.Processor}
	g.stop = func() {
		g.env.Processor.(interface{ CloseIdleConnections() }).CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the gateway stopped with %v\n%s", err, g.Log)
		}
		g.stop = func() {}
	}
	t.Cleanup(g.Stop)
	return g
}

// NoticePath is the path of the sandbox's account for notices.
func (g *Gateway) NoticePath() string {
	g.T.Helper()
	url, err := g.App.NoticeURL(context.Background(), sandbox.Name)
	if err != nil {
		g.T.Fatal(err)
	}
	return strings.TrimPrefix(url, g.App.BaseURL())
}

// Stop shuts the gateway down and waits for it. It may be called again.
func (g *Gateway) Stop() { g.stop() }

// Installed is a gateway in development with a database and a folder of its
// own, and an operator's access to it.
type Installed struct {
	*Gateway

	// Engine is "sqlite" or "postgres"; Database an SQLite file or a URL.
	Engine, Database string
	// Admin is the access of an operator's commands.
	Admin *app.Admin
	// SQL reads the database on connections of its own.
	SQL *sql.DB
}

// Start runs a gateway on an engine until t ends. Flags are pairs of name and
// value.
func Start(t testing.TB, engine string, flags ...string) *Installed {
	t.Helper()
	data := t.TempDir()
	g := &Installed{Engine: engine, Database: filepath.Join(data, "porteira.db")}
	if engine == "postgres" {
		g.Database = storetest.Empty(t, engine, env.System(env.OutboundOptions{})).Database
	}
	cfg := Config(t, config.Dev, Secrets(), append([]string{"data", data, "database", g.Database, "log-level", "debug"}, flags...)...)
	g.Gateway = Run(t, cfg)
	g.openSQL(t)
	admin, err := app.OpenAdmin(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g.Admin = admin.As(storetest.Operator)
	t.Cleanup(func() {
		if err := g.Admin.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// NewMerchant creates another merchant with funds, in cents, and no limits, and a client
// with full access.
func (g *Installed) NewMerchant(name string, funds money.Cents) (store.Merchant, *Client) {
	g.T.Helper()
	ctx := context.Background()
	m, err := g.Admin.Merchants.Create(ctx, store.Merchant{Name: name, City: "SAO PAULO", Routes: payment.AllRoutes(sandbox.Name)}, "")
	if err != nil {
		g.T.Fatal(err)
	}
	if m.Limits, err = g.Admin.Merchants.SetLimits(ctx, m.ID, merchant.Unlimited); err != nil {
		g.T.Fatal(err)
	}
	if err := g.Admin.Merchants.Fund(ctx, m, funds); err != nil {
		g.T.Fatal(err)
	}
	c, secret, err := g.Admin.Merchants.CreateCredential(ctx, merchant.NewCredential{Merchant: m.ID, Scopes: store.Scopes})
	if err != nil {
		g.T.Fatal(err)
	}
	client := *g.Client
	client.Key, client.Secret = c.KeyID, secret
	return m, &client
}

// Verify checks the ledgers of all merchants and of the platform.
func (g *Installed) Verify(t testing.TB) {
	t.Helper()
	list, err := g.Admin.Store.Merchants(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range append(list, store.Merchant{ID: payment.ID{}, Name: "the platform"}) {
		proofs, err := g.Admin.Store.Verify(context.Background(), m.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range proofs {
			if len(p.Defects) > 0 {
				t.Errorf("ledger of %s: %s: %v", m.Name, p.Check, p.Defects)
			}
		}
	}
}

// patience is the timeout of Until. It has a large margin for busy machines.
const patience = 60 * time.Second

// Until calls missing until it returns "". After patience it fails the test with the
// last result.
func Until(t testing.TB, missing func() string) {
	t.Helper()
	clock := env.NewSystemClock()
	deadline := clock.Monotonic() + patience
	for what := missing(); what != ""; what = missing() {
		if clock.Monotonic() > deadline {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-clock.NewTimer(10 * time.Millisecond).C()
	}
}
