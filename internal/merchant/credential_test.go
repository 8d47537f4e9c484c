package merchant_test

import (
	"reflect"
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

// refuse checks that this secret cannot rotate, and that nothing is changed.
func (r *rotating) refuse(what, presented string) {
	r.T.Helper()
	before, err := r.Store.Credential(r.T.Context(), r.key)
	r.Must(err)
	for _, overlap := range []time.Duration{0, time.Hour} {
		_, _, err := r.Merchants.RotateCredential(r.T.Context(), r.key, presented, overlap)
		if !problem.Is(err, problem.ForbiddenScope) {
			r.T.Errorf("%s: %v", what, err)
		}
	}
	after, err := r.Store.Credential(r.T.Context(), r.key)
	r.Must(err)
	if !reflect.DeepEqual(before, after) {
		r.T.Errorf("%s: the credential was %+v, is %+v", what, before, after)
	}
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
		r.refuse("rotated with a replaced secret", r.secrets[0])
		r.want("as before", 0, 1)
		r.Jump(59 * time.Minute)
		r.rotate(1, 24*time.Hour)
		r.want("with the newest secret", 1, 2)
		r.rotate(-1, time.Hour)
		r.want("rotated by the operator", 2, 3)
		r.Jump(time.Hour)
		r.want("after the overlap", 3)
		r.rotate(3, time.Hour)
		r.rotate(4, 0)
		r.want("without overlap", 5)
	})
}

// A replaced secret may have leaked: a thief cannot take the credential over with it, although
// a node may accept it from its cache after its end.
func TestOnlyTheCurrentSecretRotates(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		r := newRotating(t, g)
		r.rotate(-1, 0)
		r.refuse("replaced without overlap", r.secrets[0])
		r.want("after the attempt without overlap", 1)
		r.rotate(1, time.Hour)
		r.rotate(2, time.Hour)
		for i, what := range []string{"three rotations old", "two rotations old", "one rotation old"} {
			r.refuse(what, r.secrets[i])
		}
		r.refuse("of nobody", "ptr_secret_x")
		r.want("after the attempts", 2, 3)
		r.Jump(time.Hour)
		r.refuse("after its overlap", r.secrets[2])
		r.want("after the overlap", 3)
		r.rotate(3, 0)
		r.want("with the current secret", 4)
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
