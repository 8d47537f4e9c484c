package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/flow"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// Flow is the use cases that requests end in: [flow.Flow].
type Flow interface {
	Admit(merchant payment.ID) error
	CreatePayin(ctx context.Context, m store.Merchant, r *payment.PayinRequest) (p payment.Payin, replayed bool, err error)
	ReplayPayin(ctx context.Context, m store.Merchant, reference string, fp payment.Fingerprint) (p payment.Payin, found bool, err error)
	CancelPayin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
	RequestPayout(ctx context.Context, m store.Merchant, r *payment.PayoutRequest) (p payment.Payout, replayed bool, err error)
	ReplayPayout(ctx context.Context, m store.Merchant, reference string, fp payment.Fingerprint) (p payment.Payout, found bool, err error)
	CancelPayout(ctx context.Context, merchant, id payment.ID) (payment.Payout, error)
	Redeliver(ctx context.Context, merchant, event payment.ID) error
	ExternalID(m store.Merchant, op payment.Operation, reference string) string
}

// Reader is what requests read: [store.Store].
type Reader interface {
	Credential(ctx context.Context, keyID string) (store.Credential, error)
	Merchant(ctx context.Context, id payment.ID) (store.Merchant, error)
	Payin(ctx context.Context, merchant, id payment.ID) (payment.Payin, error)
	PayinPersonal(ctx context.Context, merchant, id payment.ID) (payment.PersonalData, error)
	Payins(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.Payin, error)
	Payout(ctx context.Context, merchant, id payment.ID) (payment.Payout, error)
	Payouts(ctx context.Context, merchant payment.ID, f store.Filter) ([]payment.Payout, error)
	Balances(ctx context.Context, merchant payment.ID) (ledger.Balances, error)
	Events(ctx context.Context, merchant payment.ID, after int64, limit int) ([]payment.Event, error)
	Event(ctx context.Context, merchant, id payment.ID) (payment.Event, error)
	Attempts(ctx context.Context, merchant payment.ID, number int64) ([]store.Attempt, error)
	WebhookSecret(ctx context.Context, merchant payment.ID) (string, error)
}

// Hasher makes keyed hashes: [store.Keyring].
type Hasher interface {
	MAC(purpose string, data []byte) [32]byte
	SecretHash(secret string) [32]byte
}

var (
	_ Flow   = (*flow.Flow)(nil)
	_ Reader = (*store.Store)(nil)
	_ Hasher = (*store.Keyring)(nil)
)

// Options assemble an API.
type Options struct {
	Flow       Flow
	Reader     Reader
	Keys       Hasher
	Env        env.Env
	Processors processor.Registry
	Log        *slog.Logger

	// Links are the addresses of a pay-in's pages; nil shows none.
	Links func(*payment.Payin) payment.Links
	// PublicMerchant may be paid by orders without credentials; zero for none.
	PublicMerchant payment.ID
	// AnonymousRate limits orders without credentials, per address; the zero
	// Rate is AnonymousRateDefault.
	AnonymousRate Rate
	// AllowHTTP lets webhookUrl and returnUrl be http.
	AllowHTTP bool
	// InFlight bounds requests under way; 0 is InFlightDefault.
	InFlight int
	// Ready says whether requests can be served; nil for always.
	Ready func(ctx context.Context) error
	// Inbound takes the notices of processors; nil leaves its route out.
	Inbound http.Handler
	// Sandbox is what its routes control; nil leaves them out.
	Sandbox Sandbox
	// Observe is told of every answer: method and path as the route names them,
	// "other" and "" where there is none, status and time taken; nil tells nobody.
	Observe func(method, path string, status int, took time.Duration)
}

// InFlightDefault is how many requests may be under way at once.
const InFlightDefault = 4096

// API serves the merchant API. It is safe for concurrent use.
type API struct {
	flow       Flow
	reader     Reader
	keys       Hasher
	env        env.Env
	processors processor.Registry
	log        *slog.Logger

	links       func(*payment.Payin) payment.Links
	allowHTTP   bool
	ready       func(ctx context.Context) error
	inbound     http.Handler
	sandbox     Sandbox
	observe     func(method, path string, status int, took time.Duration)
	credentials *credentials
	anonymous   payment.ID
	addresses   *buckets
	places      *places
	refusals    atomic.Int64 // since the log told of any
	refusedAt   atomic.Int64 // when it did, by the monotonic clock; 0 for never
	router      *http.ServeMux
}

// New returns the API as a handler for [Server].
func New(o Options) *API {
	a := &API{
		flow: o.Flow, reader: o.Reader, keys: o.Keys, env: o.Env, processors: o.Processors, log: o.Log,
		links: o.Links, allowHTTP: o.AllowHTTP, ready: o.Ready, inbound: o.Inbound, sandbox: o.Sandbox, anonymous: o.PublicMerchant,
		observe:     o.Observe,
		credentials: newCredentials(o.Reader, o.Keys, o.Env.Clock),
		addresses:   newBuckets(o.AnonymousRate, o.Env.Clock),
		places:      newPlaces(o.InFlight),
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

// Limits of a connection. A charge has 4 s at its processor, so answers are
// given more time than requests.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	headerBytesMax    = 16 << 10
)

// Server returns a server with the time-outs and limits that a door to the
// internet needs. Its own complaints go to log.
func Server(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}
