package endpoint

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// Registry is the endpoints of all merchants as this node knows them, at most two seconds old. A
// request reads it without a query. It is safe for concurrent use.
type Registry struct {
	store *store.Store
	clock env.Clock
	log   *slog.Logger

	following sync.Mutex // of Follow
	version   store.EndpointsVersion
	damaged   []store.Endpoint // whose secrets did not open or whose rows were changed outside the gateway, and that have no case yet
	of        atomic.Pointer[map[payment.ID][]known]
}

// known is an endpoint with its opened secrets; none if they do not open, or the row is damaged.
type known struct {
	store.Endpoint

	current, previous webhook.Secret
}

// secrets are the present signing secrets.
func (k *known) secrets(now time.Time) []webhook.Secret {
	switch {
	case k.current.IsZero():
		return nil
	case !k.previous.IsZero() && now.Before(k.PreviousUntil):
		return []webhook.Secret{k.current, k.previous}
	default:
		return []webhook.Secret{k.current}
	}
}

// NewRegistry returns a registry without endpoints; [Registry.Follow] reads them.
func NewRegistry(s *store.Store, clock env.Clock, log *slog.Logger) *Registry {
	r := &Registry{store: s, clock: clock, log: log}
	r.of.Store(&map[payment.ID][]known{})
	return r
}

// Follow is the step of the worker that follows the table. It reads the endpoints of the merchants
// with a change, and opens the secrets of the changed endpoints. One run is always enough, so it
// returns 0.
func (r *Registry) Follow(ctx context.Context) (int, error) {
	r.following.Lock()
	defer r.following.Unlock()
	version, err := r.store.EndpointsVersion(ctx)
	if err != nil || version == r.version {
		return 0, err
	}
	versions, err := r.store.EndpointVersions(ctx)
	if err != nil {
		return 0, err
	}
	of, changed := map[payment.ID][]known{}, []payment.ID{}
	for merchant, now := range versions {
		if list := (*r.of.Load())[merchant]; isCurrent(list, now) {
			of[merchant] = list
		} else {
			changed = append(changed, merchant)
		}
	}
	list, err := r.read(ctx, changed)
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		of[e.Merchant] = append(of[e.Merchant], r.open(ctx, e))
	}
	r.of.Store(&of)
	r.version = version
	return 0, nil
}

// readOneByOne is the largest number of merchants with endpoints that are read one by one; for more
// merchants all endpoints are read at once.
const readOneByOne = 16

// read reads the endpoints of merchants, oldest first.
func (r *Registry) read(ctx context.Context, merchants []payment.ID) (list []store.Endpoint, err error) {
	if len(merchants) > readOneByOne {
		all, err := r.store.AllEndpoints(ctx)
		return slices.DeleteFunc(all, func(e store.Endpoint) bool { return !slices.Contains(merchants, e.Merchant) }), err
	}
	for _, merchant := range merchants {
		of, err := r.store.EndpointsOf(ctx, merchant)
		if err != nil {
			return nil, err
		}
		slices.Reverse(of)
		list = append(list, of...)
	}
	return list, nil
}

// isCurrent reports whether known endpoints of a merchant are these versions.
func isCurrent(list []known, versions map[payment.ID]int64) bool {
	for i := range list {
		if versions[list[i].ID] != list[i].Version {
			return false
		}
	}
	return len(list) == len(versions)
}

// open opens the secrets of an endpoint, unless it is known in this version. A damaged endpoint
// stops no other. The caller holds the lock of Follow.
func (r *Registry) open(ctx context.Context, e store.Endpoint) known {
	if k := r.find(e.Merchant, e.ID); k != nil && k.Version == e.Version && (e.Damaged == nil || k.current.IsZero()) {
		return *k
	}
	k := known{Endpoint: e}
	current, previous, err := r.store.EndpointSecrets(&e)
	if err == nil {
		k.current, err = webhook.ParseSecret(current)
	}
	if err == nil && previous != "" {
		k.previous, err = webhook.ParseSecret(previous)
	}
	if err != nil {
		k.current = webhook.Secret{}
		r.damaged = append(r.damaged, e)
		r.log.ErrorContext(ctx, "webhook endpoint unusable: it gets no event", "merchant", e.Merchant, "endpoint", e.ID, "error", err)
	}
	return k
}

// secretsNow are the secrets that sign the events of an endpoint that was just read; none if they are
// not usable.
func (r *Registry) secretsNow(ctx context.Context, e store.Endpoint) []webhook.Secret {
	r.following.Lock() // open may note that they are damaged
	defer r.following.Unlock()
	k := r.open(ctx, e)
	return k.secrets(r.clock.Now())
}

// reread reads the endpoints of a merchant again: a row was changed outside the gateway, in the same
// version.
func (r *Registry) reread(ctx context.Context, merchant payment.ID) error {
	r.following.Lock()
	of := maps.Clone(*r.of.Load())
	delete(of, merchant)
	r.of.Store(&of)
	r.version = store.EndpointsVersion{}
	r.following.Unlock()
	_, err := r.Follow(ctx)
	return err
}

// find is a known endpoint; nil if there is none.
func (r *Registry) find(merchant, endpoint payment.ID) *known {
	list := (*r.of.Load())[merchant]
	for i := range list {
		if list[i].ID == endpoint {
			return &list[i]
		}
	}
	return nil
}

// takeDamaged returns the endpoints with secrets that did not open since the last call.
func (r *Registry) takeDamaged() []store.Endpoint {
	r.following.Lock()
	defer r.following.Unlock()
	list := r.damaged
	r.damaged = nil
	return list
}

// putDamaged returns endpoints that takeDamaged took.
func (r *Registry) putDamaged(list []store.Endpoint) {
	r.following.Lock()
	defer r.following.Unlock()
	r.damaged = append(r.damaged, list...)
}

// Empty reports whether no merchant has an endpoint.
func (r *Registry) Empty() bool { return len(*r.of.Load()) == 0 }

// Has reports whether a merchant has an endpoint.
func (r *Registry) Has(merchant payment.ID) bool { return len((*r.of.Load())[merchant]) > 0 }

// Wants reports whether a merchant has an endpoint that selects events of a type. A disabled
// endpoint counts: it gets the events when it is enabled.
func (r *Registry) Wants(merchant payment.ID, t payment.EventType) bool {
	for i := range (*r.of.Load())[merchant] {
		if t.MatchedBy((*r.of.Load())[merchant][i].Events) {
			return true
		}
	}
	return false
}

// Secrets are the secrets that sign the events of an endpoint now; none if they are not
// usable, or not known yet.
func (r *Registry) Secrets(merchant, endpoint payment.ID) []webhook.Secret {
	if k := r.find(merchant, endpoint); k != nil {
		return k.secrets(r.clock.Now())
	}
	return nil
}

// Takes reports whether an endpoint exists, is enabled and has this URL. So a delivery that was
// claimed before a change is not sent from two seconds after it.
func (r *Registry) Takes(merchant, endpoint payment.ID, url string) bool {
	k := r.find(merchant, endpoint)
	return k != nil && k.Enabled && k.URL == url
}

// SecretsOf are the secrets of a merchant's enabled endpoints with a URL. They sign deliveries for
// an order to the same URL, too.
func (r *Registry) SecretsOf(merchant payment.ID, url string) (all []webhook.Secret) {
	list := (*r.of.Load())[merchant]
	for i := range list {
		if list[i].URL == url && list[i].Enabled {
			all = append(all, list[i].secrets(r.clock.Now())...)
		}
	}
	return all
}
