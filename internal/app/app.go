// Package app assembles the gateway: it opens the store, builds use cases, background
// workers and servers, and starts and stops them in order.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/porteira/porteira/internal/account"
	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/checkout"
	"github.com/porteira/porteira/internal/config"
	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/notice"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/sandboxcontrol"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// Options are the parameters of an App besides its configuration.
type Options struct {
	// Log may be nil.
	Log *slog.Logger
	// Version is shown in metrics.
	Version string
	// Ready, if not nil, is called when the servers run.
	Ready func(*App)
}

// App is one gateway process: dev or serve.
type App struct {
	cfg   *config.Config
	opts  Options
	log   *slog.Logger
	clock *env.SystemClock
	env   env.Env

	store    *store.Store
	core     *Core
	bank     *bank                   // the sandbox's, in this process or another; may be nil
	sandbox  *sandboxcontrol.Control // in development
	marker   *marker
	accounts *account.Registry
	workers  *worker.Group
	hub      *checkout.Hub
	joiner   *worker.Worker // starts workers if the start could not

	listener *httpapi.Connections
	ops      net.Listener // nil if listener serves the operator too
	requests *prometheus.HistogramVec
	servers  []*http.Server
	stopping atomic.Bool
	pinged   pinged
}

// onFailpoint is nil, except in a build with the tag failpoint.
var onFailpoint func(env.Failpoint) error

// New opens the store and the listeners, but serves nothing yet. Its errors say
// how to fix the configuration.
func New(ctx context.Context, cfg *config.Config, opts Options) (*App, error) {
	a := &App{cfg: cfg, opts: opts, log: opts.Log}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.env = env.System(env.OutboundOptions{AllowNetworks: cfg.AllowNetworks, AnyPort: cfg.AllowHTTPWebhooks})
	a.env.OnFailpoint = onFailpoint
	a.clock = a.env.Clock.(*env.SystemClock) // documented by env.System
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context) error {
	if err := a.listen(ctx); err != nil { // first: nothing is left behind if it fails
		return err
	}
	if err := makeFolder(a.cfg.Data); err != nil {
		return err
	}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	a.keepPublicURL(ctx)
	a.marker = &marker{path: a.cfg.Data, installation: a.store.Installation()}
	if err := a.openBank(); err != nil {
		return err
	}
	if err := a.openAccounts(ctx); err != nil {
		return err
	}
	a.hub = checkout.NewHub(a.listener.Total() / 2)
	a.buildCore()
	if _, err := a.core.Endpoints.Registry.Follow(ctx); err != nil {
		return err
	}
	return a.buildServers(ctx)
}

// buildCore builds the use cases, the workers and, in development, the sandbox's control.
func (a *App) buildCore() {
	o := CoreOptions{
		Store: a.store, Env: a.env, Processors: a.accounts, Log: a.log, Marker: a.marker,
		Links: a.links(), Changed: a.hub.Changed, Retention: a.cfg.DeliveryRetention,
		Wakers: NewWakers(nil), Steps: AppSteps{Accounts: a.accounts.Follow, Check: a.checkAccounts, Register: a.register, Balances: newBalanceReader(a.store, a.accounts, a.env.Clock).step},
	}
	if db.IsPostgres(a.cfg.Database) { // SQLite has one process only
		o.Steps.Pages = func(ctx context.Context) (int, error) { return a.hub.Poll(ctx, a.store) }
	}
	var clock *sandboxcontrol.Clock
	if a.cfg.Mode == config.Dev {
		wakers, inside := o.Wakers, a.bank.inside
		clock = sandboxcontrol.NewClock(a.store, a.clock, func() {
			wakers.Wake()
			if inside != nil {
				inside.Wake()
			}
		})
		o.Steps.Clock = func(ctx context.Context) (int, error) { return 0, clock.Follow(ctx) }
	}
	a.core = NewCore(o)
	if a.cfg.Mode == config.Dev {
		a.sandbox = sandboxcontrol.New(sandboxcontrol.Options{
			Bank: a.bank.control, BankOf: a.bankOf, OwnClock: a.bank.inside == nil,
			Store: a.store, Payins: a.core.Payins, Processors: a.accounts, Clock: clock,
		})
	}
	a.workers = worker.NewGroup(a.core.NewWorkers(a.env, a.log)...)
	joiner := WorkerSpec{Name: "join", Step: a.joinLater, Every: time.Second, MaxBackoff: time.Second, Waker: worker.NewWaker(nil)}
	a.joiner = joiner.build(a.env, a.log)
}

// openStore opens the database. Development creates the schema and the key if
// they are missing; production requires both.
func (a *App) openStore(ctx context.Context) error {
	key, fresh, err := a.masterKey()
	if err != nil {
		return err
	}
	retired, err := retiredKeys(a.cfg)
	if err != nil {
		return err
	}
	keys, err := db.NewKeyring(key, a.env.Random, retired...)
	if err != nil {
		return err
	}
	o := db.Options{Database: a.cfg.Database, Keys: keys, Env: a.env, Log: a.log}
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
	if err := markSandbox(ctx, a.store); err != nil {
		return err
	}
	if err := sandboxcontrol.NewClock(a.store, a.clock, nil).Follow(ctx); err != nil {
		return err
	}
	if err := seed(ctx, a.store, merchant.New(merchant.Options{Store: a.store, Env: a.env, Author: actor.Author{Actor: actor.System}})); err != nil {
		return err
	}
	return checkKey(ctx, a.store) // another process may have been the first to seal
}

func (a *App) listen(ctx context.Context) (err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.cfg.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w: stop the process that uses it, or choose another address with --listen", a.cfg.Listen, err)
	}
	a.listener = a.bounded(l)
	if a.cfg.OpsListen == "" {
		return nil
	}
	if a.ops, err = lc.Listen(ctx, "tcp", a.cfg.OpsListen); err != nil {
		return fmt.Errorf("cannot listen on %s: %w: choose another address with --ops-listen", a.cfg.OpsListen, err)
	}
	return nil
}

func (a *App) buildServers(ctx context.Context) error {
	public, err := a.publicMerchant(ctx)
	if err != nil {
		return err
	}
	o := httpapi.Options{
		Admission: a.core.Writer, Payins: a.core.Payins, Payouts: a.core.Payouts, Refunds: a.core.Refunds, Disputes: a.core.Disputes, Events: a.core.Deliveries, Endpoints: a.core.Endpoints, Secrets: a.core.Merchants, Credentials: a.core.Merchants,
		Reader: a.store, Keys: a.store.Keys(), Env: a.env, Processors: a.accounts, Log: a.log,
		PublicMerchant: public, AnonymousRate: httpapi.Rate{PerSecond: a.cfg.PublicRate, Burst: 5 * a.cfg.PublicRate},
		AnonymousTotal: httpapi.Rate{PerSecond: a.cfg.PublicTotal, Burst: 5 * a.cfg.PublicTotal},
		CredentialLimits: httpapi.CredentialLimits{
			Rate: httpapi.Rate{PerSecond: a.cfg.CredentialRate, Burst: cmp.Or(a.cfg.CredentialBurst, 2*a.cfg.CredentialRate)}, InFlight: a.cfg.CredentialInFlight,
		},
		AllowHTTP: a.cfg.AllowHTTPWebhooks, AnyWebhookHost: a.cfg.Mode == config.Dev, InFlight: a.cfg.MaxInFlight, Ready: a.readiness, Links: a.links(),
		Inbound: notice.NewHandler(notice.HandlerOptions{Recorder: a.core.Notices, Questions: a.core.Outgoing, Processors: a.accounts, Clock: a.env.Clock, Log: a.log}),
	}
	if a.cfg.Mode == config.Dev {
		o.Sandbox = a.sandbox
	}
	if a.cfg.Mode == config.Serve && a.cfg.PublicURL == "" && a.cfg.BaseURL == "" {
		a.log.WarnContext(ctx, "checkoutUrl has the listener's own address: set public-url to an address that payers can reach, the same for all gateways of a database",
			"address", a.PublicURL())
	}
	operator := a.operator()
	o.Observe = a.observe
	handler := a.payers(httpapi.New(o))
	if a.ops == nil {
		handler = withMetrics(handler, operator)
	} else {
		a.servers = append(a.servers, httpapi.Server(operator, a.log))
	}
	if a.cfg.Mode == config.Serve && a.cfg.ProxyIsClient() {
		a.log.WarnContext(ctx, "clients behind a proxy on this machine share its address and limits: set trusted-proxies to the networks of your proxies")
	}
	var untrusted *slog.Logger
	if a.cfg.Mode == config.Serve && !a.cfg.ProxyProtocol { // with it, the peer is the client
		untrusted = a.log
	}
	server := httpapi.Server(httpapi.Proxies(a.cfg.TrustedProxies).Handler(handler, a.env.Clock, untrusted), a.log)
	server.ConnState = a.listener.StateChanged
	a.servers = append([]*http.Server{server}, a.servers...)
	return nil
}

func (a *App) publicMerchant(ctx context.Context) (payment.ID, error) {
	if a.cfg.PublicMerchant == "" {
		return payment.ID{}, nil
	}
	m, err := a.store.MerchantByName(ctx, a.cfg.PublicMerchant)
	if errors.Is(err, store.ErrNotFound) {
		return m.ID, fmt.Errorf("public-merchant: merchant %q not found: create it, or omit --public-merchant", a.cfg.PublicMerchant)
	}
	return m.ID, err
}

// readiness returns an error if this process should get no requests.
func (a *App) readiness(ctx context.Context) error {
	if a.stopping.Load() {
		return errors.New("app: stopping")
	}
	return a.pinged.ask(a.env.Clock.Monotonic(), func() error {
		ctx, cancel := a.env.Clock.WithTimeout(ctx, pingTimeout)
		defer cancel()
		return a.store.Ping(ctx)
	})
}

// pingEvery is the shortest time between two queries for readiness, which anybody may ask for.
const pingEvery = time.Second

// pinged is the last answer of the database to a readiness check.
type pinged struct {
	mu    sync.Mutex
	known bool
	at    time.Duration // on the monotonic clock
	err   error
}

// ask returns the last answer, or that of ping if it is older than pingEvery. One ping is in flight.
func (p *pinged) ask(now time.Duration, ping func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known || now-p.at >= pingEvery {
		p.err = ping()
		p.known, p.at = true, now
	}
	return p.err
}

// pingTimeout bounds the database query of a readiness check.
const pingTimeout = time.Second

// Address is the address of the API's listener, host:port.
func (a *App) Address() string { return a.listener.Addr().String() }

// OpsAddress is the address of the operator's listener, host:port; "" if Address
// serves the operator too.
func (a *App) OpsAddress() string {
	if a.ops == nil {
		return ""
	}
	return a.ops.Addr().String()
}

// BaseURL is the gateway's address as others reach it.
func (a *App) BaseURL() string {
	if a.cfg.BaseURL != "" {
		return a.cfg.BaseURL
	}
	return localURL(a.listener.Addr())
}

// NetworkURLs are the addresses at which other machines reach the listener, if it listens on all
// of this machine's.
func (a *App) NetworkURLs() (urls []string) {
	tcp, ok := a.listener.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			urls = append(urls, "http://"+net.JoinHostPort(network.IP.String(), strconv.Itoa(tcp.Port)))
		}
	}
	return urls
}

// localURL is the URL of a listener on this machine.
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
