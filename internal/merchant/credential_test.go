package merchant_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/merchant"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// rotating is a credential with the secrets that were its own.
type rotating struct {
	*coretest.Gateway

	key     string
	secrets []string // oldest first
}

func newRotating(t *testing.T, g *coretest.Gateway) *rotating {
	t.Helper()
	c, secret, err := g.Merchants.CreateCredential(t.Context(), merchant.NewCredential{Merchant: g.Merchant.ID})
	g.Must(err)
	return &rotating{g, c.KeyID, []string{secret}}
}

// rotate rotates with the secret at a position; -1 for none.
func (r *rotating) rotate(presented int, overlap time.Duration) {
	r.T.Helper()
	secret := ""
	if presented >= 0 {
		secret = r.secrets[presented]
	}
	_, next, err := r.Merchants.RotateCredential(r.T.Context(), r.key, secret, overlap)
	r.Must(err)
	r.secrets = append(r.secrets, next)
}

// want checks which secrets are valid now, and that the row is authentic.
func (r *rotating) want(what string, valid ...int) {
	r.T.Helper()
	c, err := r.Store.Credential(r.T.Context(), r.key)
	r.Must(err)
	if c.Damaged != nil {
		r.T.Errorf("%s: %v", what, c.Damaged)
	}
	var got []int
	for i, secret := range r.secrets {
		hash := r.Store.Keys().SecretHash(secret)
		if string(hash[:]) == string(c.SecretHash) || string(hash[:]) == string(c.SecondHash) && r.Clock.Now().Before(c.SecondUntil) {
			got = append(got, i)
		}
	}
	if len(got) != len(valid) {
		r.T.Fatalf("%s: secrets %v are valid, want %v", what, got, valid)
	}
	for i := range got {
		if got[i] != valid[i] {
			r.T.Errorf("%s: secrets %v are valid, want %v", what, got, valid)
		}
	}
}

func TestRotateCredential(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := newRotating(t, g)
		r.want("new", 0)
		r.rotate(0, time.Hour)
		r.want("rotated", 0, 1)
		// The replaced secret may have leaked: who has it cannot take the credential over.
		_, _, err := g.Merchants.RotateCredential(t.Context(), r.key, r.secrets[0], time.Hour)
		if !problem.Is(err, problem.ForbiddenScope) {
			t.Errorf("rotated with a replaced secret: %v", err)
		}
		r.want("as before", 0, 1)
		r.Pass(59 * time.Minute)
		r.rotate(1, 24*time.Hour)
		r.want("with the newest secret", 1, 2)
		r.rotate(-1, time.Hour)
		r.want("rotated by the operator", 2, 3)
		r.Pass(time.Hour)
		r.want("after the overlap", 3)
		r.rotate(3, time.Hour)
		r.rotate(4, 0)
		r.want("without overlap", 5)
	})
}

func TestRotationIsRefused(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := newRotating(t, g)
		refused := func(what string, want problem.Kind, key string, overlap time.Duration) {
			t.Helper()
			if _, _, err := g.Merchants.RotateCredential(t.Context(), key, "", overlap); !problem.Is(err, want) {
				t.Errorf("%s: %v, want %s", what, err, want)
			}
		}
		refused("negative overlap", problem.ValidationFailed, r.key, -1)
		refused("long overlap", problem.ValidationFailed, r.key, merchant.OverlapMax+1)
		refused("unknown", problem.NotFound, "nobody", 0)
		expiring, _, err := g.Merchants.CreateCredential(t.Context(), merchant.NewCredential{Merchant: g.Merchant.ID, ExpiresAt: g.Clock.Now().Add(time.Minute)})
		g.Must(err)
		r.Pass(time.Minute)
		refused("expired", problem.InvalidState, expiring.KeyID, 0)
		edited, _, err := g.Merchants.CreateCredential(t.Context(), merchant.NewCredential{Merchant: g.Merchant.ID, Scopes: []string{store.ScopeRead}})
		g.Must(err)
		g.Execute("UPDATE credentials SET scopes = 'payout:write' WHERE key_id = '" + edited.KeyID + "'")
		refused("changed outside", problem.InvalidState, edited.KeyID, 0)
		g.Must(g.Merchants.RevokeCredential(t.Context(), r.key))
		refused("revoked", problem.NotFound, r.key, 0)
		g.Must(g.Merchants.RevokeCredential(t.Context(), edited.KeyID))
	})
}
