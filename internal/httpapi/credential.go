package httpapi

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// The headers of credentials, in the form that net/http keeps them in.
const (
	headerKey    = "X-Api-Key"
	headerSecret = "X-Api-Secret"
)

// How long what was read of a credential is believed. A revoked one must be
// refused within 2 s: after the first limit one request reads it again while
// others go on, after the second all wait for what is read.
const (
	credentialFresh = time.Second
	credentialMax   = 1800 * time.Millisecond
)

// credentialsKept bounds the cache.
const credentialsKept = 10_000

// credentialBytesMax bounds what is hashed and looked up for a stranger.
const credentialBytesMax = 256

// credentials knows who may come in.
type credentials struct {
	reader Reader
	keys   Hasher
	clock  env.Clock
	nobody [32]byte // the hash that no secret has

	mu    sync.RWMutex
	known map[string]*admitted
}

// admitted is a credential, or the merchant of anonymous orders, with its
// merchant, as they were read.
type admitted struct {
	credential store.Credential
	merchant   store.Merchant
	read       time.Duration // by the monotonic clock
	refreshing atomic.Bool
}

func newCredentials(reader Reader, keys Hasher, clock env.Clock) *credentials {
	return &credentials{
		reader: reader, keys: keys, clock: clock, known: map[string]*admitted{},
		nobody: keys.MAC(store.PurposeSecret, []byte{0}),
	}
}

var errUnauthorized = problem.New(problem.Unauthorized, "Send x-api-key and x-api-secret, once each, as the operator gave them to you.")

// authenticate finds out whose request it is, and whether the credential may
// be used for it.
func (a *API) authenticate(c *call) error {
	keys, secrets := c.r.Header[headerKey], c.r.Header[headerSecret]
	if len(keys) == 0 && len(secrets) == 0 && c.route.anyone && !a.anonymous.IsZero() {
		return a.admitAnonymous(c)
	}
	if len(keys) != 1 || len(secrets) != 1 || len(keys[0]) > credentialBytesMax || len(secrets[0]) > credentialBytesMax {
		return errUnauthorized
	}
	who, err := a.credentials.admit(c.r.Context(), keys[0], secrets[0])
	if err != nil {
		return err
	}
	c.merchant = who.merchant
	if !allowsAddress(&who.credential, addressOf(c.r)) {
		return problem.New(problem.ForbiddenIP, "This credential may not be used from this address.")
	}
	if !slices.Contains(who.credential.Scopes, c.route.scope) {
		return problem.New(problem.ForbiddenScope, "This credential lacks the scope "+c.route.scope+".")
	}
	return nil
}

func (a *API) admitAnonymous(c *call) error {
	m, err := a.credentials.merchant(c.r.Context(), a.anonymous)
	if err != nil {
		return err
	}
	c.merchant, c.anonymous = m, true
	return a.addresses.take(c.w, addressOf(c.r))
}

// admit returns who has this key and secret; else an error of kind
// unauthorized. A wrong secret and an unknown key do the same work: one hash,
// two comparisons, one read.
func (k *credentials) admit(ctx context.Context, key, secret string) (*admitted, error) {
	hash := k.keys.SecretHash(secret)
	now := k.clock.Now()
	if who := k.cached(key); who != nil && k.valid(who, &hash, now) {
		return who, nil
	}
	who, err := k.load(ctx, key)
	if err != nil {
		return nil, err
	}
	if !k.valid(who, &hash, now) || who.credential.KeyID != key {
		return nil, errUnauthorized
	}
	m, err := k.reader.Merchant(ctx, who.credential.Merchant)
	if err != nil {
		return nil, readError(err)
	}
	if !m.ClosedAt.IsZero() {
		return nil, errUnauthorized
	}
	who.merchant = m
	k.keep(key, who)
	return who, nil
}

// valid compares the hash of a secret in constant time.
func (k *credentials) valid(who *admitted, hash *[32]byte, now time.Time) bool {
	c := &who.credential
	second := c.SecondHash
	if len(second) == 0 || !now.Before(c.SecondUntil) {
		second = k.nobody[:]
	}
	matches := subtle.ConstantTimeCompare(hash[:], c.SecretHash) | subtle.ConstantTimeCompare(hash[:], second)
	return matches == 1 && c.RevokedAt.IsZero() && (c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt))
}

// cached returns what is known of a key and may still be believed.
func (k *credentials) cached(key string) *admitted {
	k.mu.RLock()
	who := k.known[key]
	k.mu.RUnlock()
	if who == nil {
		return nil
	}
	switch age := k.clock.Monotonic() - who.read; {
	case age < credentialFresh:
		return who
	case age < credentialMax && !who.refreshing.CompareAndSwap(false, true):
		return who // another request is reading it
	default:
		return nil
	}
}

// load reads a credential. One that does not exist is a stand-in that nobody
// has the secret of.
func (k *credentials) load(ctx context.Context, key string) (*admitted, error) {
	read := k.clock.Monotonic()
	c, err := k.reader.Credential(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return &admitted{credential: store.Credential{SecretHash: k.nobody[:]}}, nil
	}
	if err != nil {
		return nil, readError(err)
	}
	return &admitted{credential: c, read: read}, nil
}

func (k *credentials) keep(key string, who *admitted) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= credentialsKept {
		clear(k.known)
	}
	k.known[key] = who
}

// merchant reads the merchant of anonymous orders, believed as long as a
// credential.
func (k *credentials) merchant(ctx context.Context, id payment.ID) (store.Merchant, error) {
	const key = "" // no credential has an empty id
	if who := k.cached(key); who != nil {
		return who.merchant, nil
	}
	read := k.clock.Monotonic()
	m, err := k.reader.Merchant(ctx, id)
	if err != nil {
		return m, readError(err)
	}
	if !m.ClosedAt.IsZero() {
		return m, errUnauthorized
	}
	k.keep(key, &admitted{merchant: m, read: read})
	return m, nil
}

func allowsAddress(c *store.Credential, address netip.Addr) bool {
	if len(c.AllowedIPs) == 0 {
		return true
	}
	return slices.ContainsFunc(c.AllowedIPs, func(p netip.Prefix) bool { return p.Contains(address) })
}

// addressOf is the address that a request came from; the zero one where there
// is none. Headers that proxies set are not believed.
func addressOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// readError makes an error of the store one that the caller may be told about.
func readError(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.NotFound, "There is no such resource.")
	case errors.Is(err, store.ErrUnavailable):
		return problem.New(problem.Unavailable, "The database is not available.").With(err)
	default:
		return err
	}
}
