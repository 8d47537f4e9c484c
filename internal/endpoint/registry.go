package endpoint

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/webhook"
)

// Registry is the endpoints of all merchants as this node knows them: at most two seconds
// old. A request reads it without a query. It is safe for concurrent use.
type Registry struct {
	store *store.Store
	clock env.Clock
	log   *slog.Logger

	following sync.Mutex // of Follow
	version   store.EndpointsVersion
	of        atomic.Pointer[map[payment.ID][]known]
}

// known is an endpoint with its opened secrets; none if they do not open.
type known struct {
	store.Endpoint

	current, previous webhook.Secret
}

// secrets are those that sign now.
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

// Follow is the step of the worker that follows the table. One run is always enough, so it
// returns 0.
func (r *Registry) Follow(ctx context.Context) (int, error) {
	r.following.Lock()
	defer r.following.Unlock()
	version, err := r.store.EndpointsVersion(ctx)
	if err != nil || version == r.version {
		return 0, err
	}
	list, err := r.store.AllEndpoints(ctx)
	if err != nil {
		return 0, err
	}
	of := map[payment.ID][]known{}
	for _, e := range list {
		of[e.Merchant] = append(of[e.Merchant], r.open(ctx, e))
	}
	r.of.Store(&of)
	r.version = version
	return 0, nil
}

// open opens the secrets of an endpoint. One that is damaged stops no other.
func (r *Registry) open(ctx context.Context, e store.Endpoint) known {
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
		r.log.ErrorContext(ctx, "secret of a webhook endpoint unusable: it gets no event until the secret is rotated", "merchant", e.Merchant, "endpoint", e.ID, "error", err)
	}
	return k
}

// Empty reports whether no merchant has an endpoint.
func (r *Registry) Empty() bool { return len(*r.of.Load()) == 0 }

// Has reports whether a merchant has an endpoint.
func (r *Registry) Has(merchant payment.ID) bool { return len((*r.of.Load())[merchant]) > 0 }

// Wants reports whether a merchant has an endpoint that asks for events of a type. A
// disabled one counts: it gets them when it is enabled.
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
	list := (*r.of.Load())[merchant]
	for i := range list {
		if list[i].ID == endpoint {
			return list[i].secrets(r.clock.Now())
		}
	}
	return nil
}

// SecretsOf are the secrets of a merchant's enabled endpoints with a URL: they sign, too,
// what goes to the same URL for an order.
func (r *Registry) SecretsOf(merchant payment.ID, url string) (all []webhook.Secret) {
	list := (*r.of.Load())[merchant]
	for i := range list {
		if list[i].URL == url && list[i].Enabled {
			all = append(all, list[i].secrets(r.clock.Now())...)
		}
	}
	return all
}
