package merchant

import (
	"context"
	"crypto/hmac"
	"encoding/base32"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/actor"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// Prefixes by which secret scanners recognise leaked credentials.
const (
	keyIDPrefix  = "ptr_key_"
	secretPrefix = "ptr_secret_"
)

// NewCredential is the description of a new credential. KeyID and Secret are
// generated if they are empty.
type NewCredential struct {
	Merchant   payment.ID
	Label      string
	Scopes     []string
	AllowedIPs []netip.Prefix
	ExpiresAt  time.Time
	KeyID      string
	Secret     string
}

// CreateCredential creates a credential for a program of a merchant. The secret is
// returned here and never again: only its keyed hash is stored. Errors: problem kind not_found
// for the platform.
func (s *Service) CreateCredential(ctx context.Context, n NewCredential) (c store.Credential, secret string, err error) {
	if n.Merchant.IsZero() {
		return c, "", errPlatform
	}
	if n.KeyID == "" {
		n.KeyID = keyIDPrefix + token(s.random(12))
	}
	if n.Secret == "" {
		n.Secret = secretPrefix + token(s.random(secretBytes))
	}
	if len(n.Scopes) == 0 {
		n.Scopes = store.DefaultScopes
	}
	hash := s.Store.Keys().SecretHash(n.Secret)
	c = store.Credential{
		KeyID: n.KeyID, Merchant: n.Merchant, Label: n.Label, SecretHash: hash[:], Scopes: n.Scopes,
		AllowedIPs: n.AllowedIPs, ExpiresAt: n.ExpiresAt,
	}
	err = s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error {
		c.CreatedAt = tx.Now
		return tx.CreateCredential(ctx, c)
	})
	return c, n.Secret, store.Problem(err)
}

// OverlapMax is the longest time for which a rotation leaves the previous secret valid.
const OverlapMax = 7 * 24 * time.Hour

// RotateCredential gives a credential a new secret, which is returned here and never again.
// The newest one before stays valid for overlap, from 0 to OverlapMax, and every other one
// ends. Nodes refuse a secret within 2 s after its end. presented is the secret that the caller
// has sent, "" for an operator. Only the current secret rotates: one that an earlier rotation
// replaced may be the reason for that rotation, and a node may still accept it from its cache.
// Errors: problem kinds not_found for a credential that is revoked or unknown, invalid_state if
// it has expired or was changed outside the gateway, forbidden_scope for a replaced secret,
// validation_failed for an invalid overlap.
func (s *Service) RotateCredential(ctx context.Context, keyID, presented string, overlap time.Duration) (c store.Credential, secret string, err error) {
	if overlap < 0 || overlap > OverlapMax {
		return c, "", problem.New(problem.ValidationFailed, "The overlap must be from 0 s to 7 days.")
	}
	secret = secretPrefix + token(s.random(secretBytes))
	keys := s.Store.Keys()
	next := keys.SecretHash(secret)
	var hashes [][32]byte // of the presented secret
	if presented != "" {
		hashes = append(keys.RetiredSecretHashes(presented), keys.SecretHash(presented))
	}
	by := s.Author
	if presented != "" {
		by = actor.Author{Actor: actor.Credential(keyID)}
	}
	err = s.Store.Administer(ctx, by, func(tx *store.AdminTx) (err error) {
		c, err = tx.ChangeCredential(ctx, keyID, func(c *store.Credential) error {
			if !c.ExpiresAt.IsZero() && !tx.Now.Before(c.ExpiresAt) {
				return problem.New(problem.InvalidState, "The credential has expired.")
			}
			current := func(hash [32]byte) bool { return hmac.Equal(hash[:], c.SecretHash) }
			if presented != "" && !slices.ContainsFunc(hashes, current) {
				return problem.New(problem.ForbiddenScope, "This secret was replaced, and cannot rotate the credential. If the new one is lost, the operator rotates it.")
			}
			c.SecondHash, c.SecondUntil = c.SecretHash, tx.Now.Add(overlap)
			if overlap == 0 {
				c.SecondHash, c.SecondUntil = nil, time.Time{}
			}
			c.SecretHash = next[:]
			return nil
		})
		return err
	})
	if errors.Is(err, store.ErrChangedOutside) {
		err = problem.New(problem.InvalidState, "The credential was changed outside the gateway: revoke it, and create another one.").With(err)
	}
	return c, secret, store.Problem(err)
}

// RevokeCredential revokes a credential; nodes reject it within 2 s.
func (s *Service) RevokeCredential(ctx context.Context, keyID string) error {
	return store.Problem(s.Store.Administer(ctx, s.Author, func(tx *store.AdminTx) error { return tx.RevokeCredential(ctx, keyID) }))
}

// token encodes random bytes in letters and digits that need no quoting in a shell.
func token(b []byte) string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}
