package httpapi

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Credentials are the use cases of credentials, which merchant.Service implements.
type Credentials interface {
	RotateCredential(ctx context.Context, keyID, presented string, overlap time.Duration) (c store.Credential, secret string, err error)
}

// credentialView is a credential of the caller's merchant as the API shows it.
func (a *API) credentialView(c *call, v *store.Credential) wire.Credential {
	return wire.Credential{
		KeyID: v.KeyID, Label: v.Label, Merchant: c.merchant.ID, MerchantName: c.merchant.Name, Scopes: v.Scopes,
		AllowedIPs: append([]netip.Prefix{}, v.AllowedIPs...), ExpiresAt: v.ExpiresAt, CreatedAt: v.CreatedAt, Sandbox: a.sandbox != nil,
	}
}

func (a *API) showCredential(c *call, v wire.Credential) error {
	body, err := v.JSON()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, body)
}

func (a *API) getCredential(c *call) error {
	if err := c.query().done(); err != nil {
		return err
	}
	return a.showCredential(c, a.credentialView(c, c.credential))
}

// rotateCredential gives the caller's credential a new secret. The secret that it sent stays
// valid for the overlap.
func (a *API) rotateCredential(c *call) error {
	var empty []byte
	overlap, invalid := wire.DecodeRotation(empty)
	if c.r.ContentLength != 0 {
		overlap, invalid = readJSON(c, wire.DecodeRotation)
	}
	if invalid != nil {
		return invalid
	}
	rotated, secret, err := a.rotations.RotateCredential(c.ctx, c.credential.KeyID, c.r.Header[headerSecret][0], overlap)
	if problem.Is(err, problem.NotFound) { // revoked since it was read
		return errUnauthorized
	}
	if err != nil {
		return err
	}
	a.credentials.forget(rotated.KeyID)
	v := a.credentialView(c, &rotated)
	v.Secret, v.PreviousUntil = secret, rotated.SecondUntil
	return a.showCredential(c, v)
}
