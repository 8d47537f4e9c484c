package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Reader is the queries of the handlers. Each part is declared in the file of its handlers.
type Reader interface {
	CredentialReader
	OrderReader
	PayinReader
	PayoutReader
	RefundReader
	DisputeReader
	BalanceReader
	StatementReader
	LimitReader
	ReceivableReader
	EventReader
	EndpointReader
}

var (
	_ Reader = (*store.Store)(nil)
	_ Hasher = (*db.Keyring)(nil)
)

// Options configure an API.
type Options struct {
	Admission   Admission
	Payins      Payins
	Payouts     Payouts
	Refunds     Refunds
	Disputes    Disputes
	Events      Events
	Credentials Credentials
	Endpoints   Endpoints
	Secrets     Secrets
	Reader      Reader
	Keys        Hasher
	Env         env.Env
	Processors  processor.Accounts
	Log         *slog.Logger // nil discards

	// Links are the URLs of a pay-in's pages; nil omits them.
	Links func(*payment.Payin) payment.Links
	// PublicMerchant accepts orders without credentials; zero for none.
	PublicMerchant payment.ID
	// AnonymousRate limits orders without credentials, per IP address; the zero
	// Rate is 20 per second in bursts of 100.
	AnonymousRate Rate
	// AnonymousTotal limits orders without credentials in all; the zero Rate is 200 per
	// second in bursts of 1000.
	AnonymousTotal Rate
	// AnyWebhookHost allows orders without credentials to name any host in webhookUrl, and
	// not only those that the merchant has registered.
	AnyWebhookHost bool
	// AllowHTTP allows http in webhookUrl and returnUrl, and webhooks to any port.
	AllowHTTP bool
	// CredentialLimits bound the requests of each credential; the zero value does not.
	CredentialLimits CredentialLimits
	// InFlight is the maximum number of requests in flight; 0 is 4096.
	InFlight int
	// Memory is the maximum number of bytes of bodies and answers in flight; 0 is 128 MiB.
	Memory int64
	// Ready returns an error while requests cannot be served; nil for always ready.
	Ready func(ctx context.Context) error
	// Inbound handles the notices of processors; nil removes its route.
	Inbound http.Handler
	// Sandbox controls the sandbox; nil removes its routes.
	Sandbox Sandbox
	// Observe is called after each request, with method and path as the route
	// writes them ("other" and "" without a route), status and duration; may be nil.
	Observe func(method, path string, status int, took time.Duration)
}

// inFlightDefault is the default maximum number of requests in flight.
const inFlightDefault = 4096

// API serves the merchant API. It is safe for concurrent use.
type API struct {
	admission  Admission
	payins     Payins
	payouts    Payouts
	refunds    Refunds
	disputes   Disputes
	events     Events
	rotations  Credentials
	endpoints  Endpoints
	secrets    Secrets
	reader     Reader
	keys       Hasher
	env        env.Env
	processors processor.Accounts
	log        *slog.Logger

	links          func(*payment.Payin) payment.Links
	allowHTTP      bool
	anyWebhookHost bool
	ready          func(ctx context.Context) error
	inbound        http.Handler
	sandbox        Sandbox
	observe        func(method, path string, status int, took time.Duration)
	credentials    *credentials
	anonymous      payment.ID // the merchant of orders without credentials
	addresses      anonymousRate
	rates          *credentialRate
	logins         *loginThrottle
	slots          *slots
	memory         *memory
	exports        large // statements as CSV
	batches        large // batches of payouts
	defenses       large // defenses of disputes
	ranges         large // ranges of events to be sent again
	overloads      tally // requests that were rejected with 503
	blocks         tally // requests that were rejected because of wrong secrets
	router         *http.ServeMux
}

// New returns the API as a handler for [Server].
func New(o Options) *API {
	a := &API{
		admission: o.Admission, payins: o.Payins, payouts: o.Payouts, refunds: o.Refunds, disputes: o.Disputes, events: o.Events, endpoints: o.Endpoints, secrets: o.Secrets, rotations: o.Credentials, reader: o.Reader,
		keys: o.Keys, env: o.Env, processors: o.Processors, log: o.Log,
		links: o.Links, allowHTTP: o.AllowHTTP, anyWebhookHost: o.AnyWebhookHost, ready: o.Ready, inbound: o.Inbound, sandbox: o.Sandbox,
		observe: o.Observe, anonymous: o.PublicMerchant,
		credentials: newCredentials(o.Reader, o.Keys, o.Env.Clock),
		addresses:   newAnonymousRate(o.AnonymousRate, o.AnonymousTotal, o.Env.Clock),
		rates:       newCredentialRate(o.CredentialLimits, o.Env.Clock),
		logins:      newLoginThrottle(o.Env.Clock),
		slots:       newSlots(o.InFlight),
		memory:      newMemory(cmp.Or(o.Memory, memoryMax)),
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.observe == nil {
		a.observe = func(string, string, int, time.Duration) {}
	}
	if a.links == nil {
		a.links = func(*payment.Payin) payment.Links { return payment.Links{} }
	}
	a.router = a.mount()
	return a
}

// Limits of a connection. Answers have more time than requests, because a charge may
// take 4 s at its processor.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	headerBytesMax    = 16 << 10
)

// Server returns a server with timeouts and limits for the public internet. It logs its
// errors to log.
func Server(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
