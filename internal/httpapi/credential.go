package httpapi

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// The headers of credentials, as net/http writes them.
const (
	headerKey    = "X-Api-Key"
	headerSecret = "X-Api-Secret"
)

// Lifetimes of a cached credential. A revoked one must be refused within 2 s: after the
// first limit, one request reads it again while others still use it; after the second,
// all of them read it.
const (
	credentialFresh = time.Second
	credentialMax   = 1800 * time.Millisecond
)

// credentialsMax bounds the cache.
const credentialsMax = 10_000

// credentialBytesMax bounds the work for an unauthenticated request.
const credentialBytesMax = 256

// CredentialReader reads credentials and their merchants: [store.Store].
type CredentialReader interface {
	Credential(ctx context.Context, keyID string) (store.Credential, error)
	Merchant(ctx context.Context, id payment.ID) (store.Merchant, error)
}

// Hasher makes keyed hashes: [db.Keyring].
type Hasher interface {
	MAC(purpose string, data []byte) [32]byte
	SecretHash(secret string) [32]byte
	RetiredSecretHashes(secret string) [][32]byte
}

// credentials verifies credentials, through a cache.
type credentials struct {
	reader CredentialReader
	keys   Hasher
	clock  env.Clock
	nobody [32]byte // a hash that no secret has

	mu    sync.RWMutex
	cache map[string]*identity
	known string // the id of a credential that exists; "" until one was valid
}

// identity is a credential with its merchant, or only the merchant of anonymous
// orders.
type identity struct {
	credential store.Credential
	merchant   store.Merchant
	read       time.Duration // time of the read, on the monotonic clock
	refreshing atomic.Bool
}

func newCredentials(reader CredentialReader, keys Hasher, clock env.Clock) *credentials {
	return &credentials{
		reader: reader, keys: keys, clock: clock, cache: map[string]*identity{},
		nobody: keys.MAC(db.PurposeSecret, []byte{0}),
	}
}

var errUnauthorized = problem.New(problem.Unauthorized, "Send x-api-key and x-api-secret, each exactly once, as issued by the operator.")

// authenticate sets the merchant of the request, and checks that the credential
// may be used for it.
func (a *API) authenticate(c *call) error {
	keys, secrets := c.r.Header[headerKey], c.r.Header[headerSecret]
	if len(keys) == 0 && len(secrets) == 0 && c.route.anyone && !a.anonymous.IsZero() {
		return a.authenticateAnonymous(c)
	}
	if len(keys) != 1 || len(secrets) != 1 || len(keys[0]) > credentialBytesMax || len(secrets[0]) > credentialBytesMax {
		return errUnauthorized
	}
	who, err := a.identify(c, keys[0], secrets[0])
	if err != nil {
		return err
	}
	c.merchant, c.credential = who.merchant, &who.credential
	if !allowsAddress(&who.credential, addressOf(c.r)) {
		return problem.New(problem.ForbiddenIP, "This credential is not allowed from this IP address.")
	}
	if c.route.scope != anyCredential && !slices.Contains(who.credential.Scopes, c.route.scope) {
		return problem.New(problem.ForbiddenScope, "This credential does not have the scope "+c.route.scope+".")
	}
	return nil
}

// identify returns the identity of a key and secret. Only failures are counted and blocked: many
// clients may share an address, and a right secret is never refused because of others' wrong ones.
func (a *API) identify(c *call, key, secret string) (*identity, error) {
	p := a.credentials.presented(key, secret)
	if who := a.credentials.cachedFor(p); who != nil {
		return who, nil
	}
	sources := sourcesOf(c.r)
	wait, of := a.logins.blocked(key, sources)
	if wait > 0 {
		if !a.logins.enter() {
			return nil, a.logins.refuse(c, wait, of)
		}
		defer a.logins.leave()
	}
	who, err := a.credentials.verify(c.ctx, p)
	if err == nil && who.merchant.Damaged != nil { // once a second at most: then it is cached
		a.log.ErrorContext(c.ctx, "new orders are refused: run porteira verify", "merchant", who.merchant.ID, "cause", who.merchant.Damaged)
	}
	if !problem.Is(err, problem.Unauthorized) {
		return who, err
	}
	if wait > 0 {
		return nil, a.logins.refuse(c, wait, of)
	}
	a.logins.fail(key, sources)
	a.logDamaged(c.ctx, err)
	return nil, err
}

// logDamaged logs that a credential was refused because its row was changed outside the
// gateway. The client gets no cause.
func (a *API) logDamaged(ctx context.Context, err error) {
	if errors.Is(err, store.ErrChangedOutside) {
		a.log.ErrorContext(ctx, "credential refused: revoke it and create another one", "cause", problem.From(err).Cause)
	}
}

func (a *API) authenticateAnonymous(c *call) error {
	m, err := a.credentials.merchant(c.ctx, a.anonymous)
	if err != nil {
		return err
	}
	c.merchant, c.anonymous = m, true
	return a.addresses.take(c.w, sourcesOf(c.r))
}

// unknownKey is read instead of a key id that no credential can have, so that it costs as
// much as one that is unknown. PostgreSQL would refuse a text that is not UTF-8.
const unknownKey = "-"

// keyIDMax is the maximum length of a credential's id.
const keyIDMax = 64

// isKeyID reports whether a credential may have this id: [A-Za-z0-9_]{1,64}.
func isKeyID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != "" && len(s) <= keyIDMax
}

// presented is a key with the hashes of the secret that was sent with it.
type presented struct {
	key    string
	hashes hashes
	now    time.Time
}

func (k *credentials) presented(key, secret string) *presented {
	if !isKeyID(key) {
		key = unknownKey
	}
	return &presented{key, hashes{now: k.keys.SecretHash(secret), retired: k.keys.RetiredSecretHashes(secret)}, k.clock.Now()}
}

// cachedFor returns the cached identity of a valid key and secret; nil if verify must decide.
func (k *credentials) cachedFor(p *presented) *identity {
	if who := k.cached(p.key); who != nil && k.valid(who, &p.hashes, p.now) {
		return who
	}
	return nil
}

// verify reads the identity of a key and secret; else the error is of kind unauthorized. A wrong
// secret takes as long as an unknown key: two reads, one that finds a credential and one that
// does not.
func (k *credentials) verify(ctx context.Context, p *presented) (*identity, error) {
	key := p.key
	who, err := k.load(ctx, key)
	if err != nil {
		return nil, err
	}
	if !k.valid(who, &p.hashes, p.now) || who.credential.KeyID != key {
		k.equalize(ctx, who.credential.KeyID == key)
		if who.credential.Damaged != nil {
			return nil, errUnauthorized.With(who.credential.Damaged)
		}
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

// equalize reads a credential that exists after one that does not, and the reverse.
func (k *credentials) equalize(ctx context.Context, found bool) {
	other := unknownKey
	if !found {
		k.mu.RLock()
		other = cmp.Or(k.known, unknownKey)
		k.mu.RUnlock()
	}
	_, _ = k.load(ctx, other) // the result is not needed
}

// hashes are the forms in which a secret may be stored: under the present master key, and
// under retired ones.
type hashes struct {
	now     [32]byte
	retired [][32]byte
}

// match reports whether one of the hashes is stored, as 1 or 0, in constant time.
func (h *hashes) match(stored []byte) int {
	found := subtle.ConstantTimeCompare(h.now[:], stored)
	for i := range h.retired {
		found |= subtle.ConstantTimeCompare(h.retired[i][:], stored)
	}
	return found
}

// valid reports whether the credential is valid now for a secret with these hashes. It
// compares in constant time.
func (k *credentials) valid(who *identity, hashes *hashes, now time.Time) bool {
	c := &who.credential
	second := c.SecondHash
	if len(second) == 0 || !now.Before(c.SecondUntil) {
		second = k.nobody[:]
	}
	matches := hashes.match(c.SecretHash) | hashes.match(second)
	return matches == 1 && c.Damaged == nil && c.RevokedAt.IsZero() && (c.ExpiresAt.IsZero() || now.Before(c.ExpiresAt))
}

// cached returns the cached identity of a key; nil if the caller must read it.
func (k *credentials) cached(key string) *identity {
	k.mu.RLock()
	who := k.cache[key]
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

// load reads a credential. For an unknown key it returns one for which no secret is valid.
func (k *credentials) load(ctx context.Context, key string) (*identity, error) {
	read := k.clock.Monotonic()
	c, err := k.reader.Credential(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return &identity{credential: store.Credential{SecretHash: k.nobody[:]}}, nil
	}
	if err != nil {
		return nil, readError(err)
	}
	return &identity{credential: c, read: read}, nil
}

func (k *credentials) keep(key string, who *identity) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.cache) >= credentialsMax {
		clear(k.cache)
	}
	k.cache[key] = who
	if key != anonymousKey {
		k.known = key
	}
}

// forget makes the next request read the credential again.
func (k *credentials) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.cache, key)
}

// anonymousKey is the key of the merchant of anonymous orders in the cache: no credential has an
// empty id.
const anonymousKey = ""

// merchant reads the merchant of anonymous orders, cached like a credential.
func (k *credentials) merchant(ctx context.Context, id payment.ID) (store.Merchant, error) {
	if who := k.cached(anonymousKey); who != nil {
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
	k.keep(anonymousKey, &identity{merchant: m, read: read})
	return m, nil
}

func allowsAddress(c *store.Credential, address netip.Addr) bool {
	if len(c.AllowedIPs) == 0 {
		return true
	}
	return slices.ContainsFunc(c.AllowedIPs, func(p netip.Prefix) bool { return p.Contains(address) })
}

// addressOf is the IP address of the client; zero if there is none. [Proxies.Handler] has
// found it, if there are proxies.
func addressOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// readError converts an error of the store into one for clients.
func readError(err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errNotFound
	case errors.Is(err, store.ErrUnavailable):
		return problem.New(problem.Unavailable, "The database is unavailable.").With(err)
	default:
		return err
	}
}
