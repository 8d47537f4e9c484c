// Package app is assembly: opens the store, builds flows, loops, servers;
// ordered start and stop.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/inbound"
	"github.com/porteira/porteira/internal/jobs"
	"github.com/porteira/porteira/internal/loop"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
)

// Options are what an App is given besides its configuration.
type Options struct {
	// Log receives what happens; nil discards it.
	Log *slog.Logger
	// Version is shown in metrics.
	Version string
	// Ready, if not nil, is called once requests are served.
	Ready func(*App)
}

// App is one gateway process: dev or serve.
type App struct {
	cfg   *config.Config
	opts  Options
	log   *slog.Logger
	clock *env.SystemClock
	env   env.Env

	store      *store.Store
	flow       *flow.Flow
	jobs       *jobs.Jobs
	bank       *bank                   // the sandbox's, in this process or another; nil without
	sandbox    *sandboxcontrol.Control // in development
	marker     *marker
	processors processor.Registry
	loops      *loop.Group
	hub        *checkout.Hub
	joiner     *loop.Loop // nil where this process joined at once

	listener net.Listener
	ops      net.Listener // nil: on listener
	requests *prometheus.HistogramVec
	servers  []*http.Server
	stopping atomic.Bool
}

// onFailpoint is nil, except in a build with the tag failpoint.
var onFailpoint func(env.Failpoint) error

// New opens everything that a gateway needs and listens, but serves nothing
// yet. The error says what to do about it.
func New(ctx context.Context, cfg *config.Config, opts Options) (*App, error) {
	a := &App{cfg: cfg, opts: opts, log: opts.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.env = env.System(env.OutboundOptions{AllowNetworks: cfg.AllowNetworks, AnyPort: cfg.AllowHTTPWebhooks})
	a.env.OnFailpoint = onFailpoint
	a.clock = a.env.Clock.(*env.SystemClock) // System promises it
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	if err := makeFolder(a.cfg.Data); err != nil {
		return err
	}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	if err := a.listen(ctx); err != nil {
		return err
	}
	a.marker = &marker{path: a.cfg.Data, installation: a.store.Installation()}
	a.processors = processor.Registry{}
	if err := a.openBank(ctx); err != nil {
		return err
	}
	a.hub = checkout.NewHub(a.cfg.MaxConnections / 2)
	a.flow = flow.New(flow.Options{
		Store: a.store, Env: a.env, Processors: a.processors, Log: a.log,
		Wake: func(w flow.Wake) { a.jobs.Wake(w) }, Links: a.links(), Changed: a.hub.Changed,
	})
	a.jobs = jobs.New(jobs.Options{
		Flow: a.flow, Store: a.store, Env: a.env, Processors: a.processors, Log: a.log, Marker: a.marker, Retention: a.cfg.DeliveryRetention,
	})
	a.flow.HandTo(a.jobs)
	list := a.jobs.Loops()
	if a.bank != nil {
		list = append(list, a.bank.loops(a)...)
	}
	if a.cfg.Mode == config.Dev {
		list = append(list, a.openSandbox())
	}
	list = append(list, a.pollLoops()...)
	a.loops = loop.NewGroup(list...)
	return a.buildServers(ctx)
}

// openStore opens the database. In development its schema and its key are made
// where there are none; in production both must be there.
func (a *App) openStore(ctx context.Context) error {
	key, fresh, err := a.masterKey()
	if err != nil {
		return err
	}
	retired, err := retiredKeys(a.cfg)
	if err != nil {
		return err
	}
	keys, err := store.NewKeyring(key, a.env.Random, retired...)
	if err != nil {
		return err
	}
	o := store.Options{Database: a.cfg.Database, Keys: keys, Env: a.env, Log: a.log}
	if a.cfg.Mode == config.Dev {
		if _, err := store.Migrate(ctx, o); err != nil {
			return err
		}
	}
	if a.store, err = store.Open(ctx, o); err != nil {
		return err
	}
	if err := checkKey(ctx, a.store); err != nil {
		return err
	}
	if fresh {
		if err := keepKey(a.cfg.MasterKeyFile, key); err != nil {
			return err
		}
	}
	if a.cfg.Mode != config.Dev {
		return refuseSandbox(ctx, a.store)
	}
	if err := sandboxcontrol.NewClock(a.store, a.clock, nil).Follow(ctx); err != nil {
		return err
	}
	if err := seed(ctx, a.store, flow.New(flow.Options{Store: a.store, Env: a.env, Log: a.log})); err != nil {
		return err
	}
	return checkKey(ctx, a.store) // another process may have been the first to seal
}

func (a *App) listen(ctx context.Context) (err error) {
	var lc net.ListenConfig
	if a.listener, err = lc.Listen(ctx, "tcp", a.cfg.Listen); err != nil {
		return fmt.Errorf("cannot listen on %s: %w: stop what uses it, or choose another address by --listen", a.cfg.Listen, err)
	}
	a.listener = a.bounded(a.listener)
	if a.cfg.OpsListen == "" {
		return nil
	}
	if a.ops, err = lc.Listen(ctx, "tcp", a.cfg.OpsListen); err != nil {
		return fmt.Errorf("cannot listen on %s: %w: choose another address by --ops-listen", a.cfg.OpsListen, err)
	}
	return nil
}

func (a *App) buildServers(ctx context.Context) error {
	public, err := a.publicMerchant(ctx)
	if err != nil {
		return err
	}
	o := httpapi.Options{
		Orders: a.flow, Payins: a.flow, Payouts: a.flow, Events: a.flow,
		Reader: a.store, Keys: a.store.Keys(), Env: a.env, Processors: a.processors, Log: a.log,
		PublicMerchant: public, AnonymousRate: httpapi.Rate{PerSecond: a.cfg.PublicRate, Burst: 5 * a.cfg.PublicRate},
		AllowHTTP: a.cfg.AllowHTTPWebhooks, InFlight: a.cfg.MaxInFlight, Ready: a.readiness, Links: a.links(),
		Inbound: inbound.New(inbound.Options{Flow: a.flow, Processors: a.processors, Clock: a.env.Clock, Log: a.log}),
	}
	if a.cfg.Mode == config.Dev {
		o.Sandbox = a.sandbox
	}
	if a.cfg.Mode == config.Serve && a.cfg.PublicURL == "" && a.cfg.BaseURL == "" {
		a.log.WarnContext(ctx, "payers are sent to the listener's own address, in checkoutUrl: set public-url to the one that reaches it, the same for all gateways of a database",
			"address", a.PublicURL())
	}
	operator := a.operator()
	o.Observe = a.observe
	handler := a.payers(httpapi.New(o))
	if a.ops == nil {
		handler = beside(handler, operator)
	} else {
		a.servers = append(a.servers, httpapi.Server(operator, a.log))
	}
	a.servers = append([]*http.Server{httpapi.Server(handler, a.log)}, a.servers...)
	return nil
}

func (a *App) publicMerchant(ctx context.Context) (payment.ID, error) {
	if a.cfg.PublicMerchant == "" {
		return payment.ID{}, nil
	}
	m, err := a.store.MerchantByName(ctx, a.cfg.PublicMerchant)
	if errors.Is(err, store.ErrNotFound) {
		return m.ID, fmt.Errorf("there is no merchant %q, whose pay-ins are to be public: create it, or leave --public-merchant out", a.cfg.PublicMerchant)
	}
	return m.ID, err
}

// readiness says why requests should go elsewhere, or nothing.
func (a *App) readiness(ctx context.Context) error {
	if a.stopping.Load() {
		return errors.New("app: stopping")
	}
	ctx, cancel := a.env.Clock.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return a.store.Ping(ctx)
}

// pingTimeout bounds how long the database may take to answer a health check.
const pingTimeout = time.Second

// Address is where the gateway listens, host:port.
func (a *App) Address() string { return a.listener.Addr().String() }

// OpsAddress is where the operator's listener is; "" where it is Address.
func (a *App) OpsAddress() string {
	if a.ops == nil {
		return ""
	}
	return a.ops.Addr().String()
}

// BaseURL is the address under which the gateway is reached.
func (a *App) BaseURL() string {
	if a.cfg.BaseURL != "" {
		return a.cfg.BaseURL
	}
	return localURL(a.listener.Addr())
}

// localURL is a listener's address as this machine reaches it.
func localURL(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok {
		return "http://" + address.String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
