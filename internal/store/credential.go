package store

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// The scopes of a credential.
const (
	ScopePayinWrite  = "payin:write"
	ScopePayoutWrite = "payout:write"
	ScopeRead        = "read"
)

// Scopes lists every scope.
var Scopes = []string{ScopePayinWrite, ScopePayoutWrite, ScopeRead}

// Credential lets a merchant's program in. KeyID is public; the secret itself
// is nowhere, only its keyed hash.
type Credential struct {
	KeyID       string
	Merchant    payment.ID
	Label       string
	SecretHash  []byte
	SecondHash  []byte // the secret before rotation, while it lives on
	SecondUntil time.Time
	Scopes      []string
	AllowedIPs  []netip.Prefix // empty allows all
	ExpiresAt   time.Time      // zero for never
	RevokedAt   time.Time
	CreatedAt   time.Time
}

// CreateCredential adds a credential. A key id that is taken is ErrConflict.
func (tx *Tx) CreateCredential(ctx context.Context, c Credential) error {
	ips := make([]string, len(c.AllowedIPs))
	for i, p := range c.AllowedIPs {
		ips[i] = p.String()
	}
	n, err := tx.changed(ctx, `INSERT INTO credentials (key_id, merchant_id, label, secret_hash, second_hash, second_until,
		scopes, allowed_ips, expires_at, revoked_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10) ON CONFLICT DO NOTHING`,
		c.KeyID, c.Merchant[:], c.Label, c.SecretHash, blob(c.SecondHash), micros(c.SecondUntil),
		strings.Join(c.Scopes, " "), strings.Join(ips, " "), micros(c.ExpiresAt), micros(tx.Now))
	if err == nil && n != 1 {
		err = ErrConflict
	}
	return err
}

// RevokeCredential ends a credential; revoked or unknown ones are ErrNotFound.
func (tx *Tx) RevokeCredential(ctx context.Context, keyID string) error {
	n, err := tx.changed(ctx, "UPDATE credentials SET revoked_at = $1 WHERE key_id = $2 AND revoked_at = 0", micros(tx.Now), keyID)
	if err == nil && n != 1 {
		err = ErrNotFound
	}
	return err
}

const credentialColumns = "key_id, merchant_id, label, secret_hash, second_hash, second_until, scopes, allowed_ips, expires_at, revoked_at, created_at"

func scanCredential(r scanner) (Credential, error) {
	var c Credential
	var merchant []byte
	var scopes, ips string
	var second, expires, revoked, created int64
	err := r.Scan(&c.KeyID, &merchant, &c.Label, &c.SecretHash, &c.SecondHash, &second, &scopes, &ips, &expires, &revoked, &created)
	if err != nil {
		return c, err
	}
	c.Merchant, c.Scopes = idOf(merchant), strings.Fields(scopes)
	c.SecondUntil, c.ExpiresAt, c.RevokedAt, c.CreatedAt = atMicros(second), atMicros(expires), atMicros(revoked), atMicros(created)
	for text := range strings.FieldsSeq(ips) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil { // a list that cannot be read must not let everybody in
			return c, err
		}
		c.AllowedIPs = append(c.AllowedIPs, prefix)
	}
	return c, nil
}

// Credential reads a credential, revoked ones too; else ErrNotFound.
func (s *Store) Credential(ctx context.Context, keyID string) (Credential, error) {
	c, err := scanCredential(s.queryRow(ctx, "SELECT "+credentialColumns+" FROM credentials WHERE key_id = $1", keyID))
	return c, s.readError("credential", err)
}

// Credentials lists a merchant's credentials, oldest first.
func (s *Store) Credentials(ctx context.Context, merchant payment.ID) ([]Credential, error) {
	rows, err := s.query(ctx, "SELECT "+credentialColumns+` FROM credentials
		WHERE merchant_id = $1 ORDER BY created_at, key_id`, merchant[:])
	list, err := collect(rows, err, scanCredential)
	return list, s.readError("credentials", err)
}
