package store

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
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

// Credential authenticates a merchant's program. KeyID is public; only the keyed
// hash of the secret is stored.
type Credential struct {
	KeyID       string
	Merchant    payment.ID
	Label       string
	SecretHash  []byte
	SecondHash  []byte // of the secret before rotation, valid until SecondUntil
	SecondUntil time.Time
	Scopes      []string
	AllowedIPs  []netip.Prefix // empty allows all
	ExpiresAt   time.Time      // zero: never
	RevokedAt   time.Time
	CreatedAt   time.Time
}

var credentialTable = newTable("credentials", []string{"key_id"},
	textColumn("key_id", func(c *Credential) *string { return &c.KeyID }),
	idColumn("merchant_id", func(c *Credential) *payment.ID { return &c.Merchant }),
	textColumn("label", func(c *Credential) *string { return &c.Label }),
	bytesColumn("secret_hash", func(c *Credential) *[]byte { return &c.SecretHash }),
	bytesColumn("second_hash", func(c *Credential) *[]byte { return &c.SecondHash }),
	timeColumn("second_until", func(c *Credential) *time.Time { return &c.SecondUntil }),
	wordsColumn("scopes", func(c *Credential) *[]string { return &c.Scopes }),
	networksColumn("allowed_ips", func(c *Credential) *[]netip.Prefix { return &c.AllowedIPs }),
	timeColumn("expires_at", func(c *Credential) *time.Time { return &c.ExpiresAt }),
	timeColumn("revoked_at", func(c *Credential) *time.Time { return &c.RevokedAt }),
	timeColumn("created_at", func(c *Credential) *time.Time { return &c.CreatedAt }),
)

// networksColumn keeps networks as words.
func networksColumn[T any](name string, of func(*T) *[]netip.Prefix) column[T] {
	return column[T]{
		Column: db.Column{Name: name, Kind: "text"},
		value: func(v *T) any {
			words := make([]string, len(*of(v)))
			for i, p := range *of(v) {
				words[i] = p.String()
			}
			return strings.Join(words, " ")
		},
		dest: func(v *T) any { return (*networksDest)(of(v)) },
	}
}

type networksDest []netip.Prefix

// Scan implements [sql.Scanner]. A list that cannot be read is an error: it must
// not allow everybody.
func (d *networksDest) Scan(src any) error {
	var words wordsDest
	if err := words.Scan(src); err != nil {
		return err
	}
	*d = nil
	for _, word := range words {
		prefix, err := netip.ParsePrefix(word)
		if err != nil {
			return err
		}
		*d = append(*d, prefix)
	}
	return nil
}

func scanCredential(r db.Scanner) (Credential, error) {
	var c Credential
	return c, credentialTable.scan(r, &c)
}

// CreateCredential adds a credential. A taken key id is ErrConflict.
func (tx *Tx) CreateCredential(ctx context.Context, c Credential) error {
	c.RevokedAt, c.CreatedAt = time.Time{}, tx.Now
	return tx.InsertNew(ctx, credentialTable.insert, credentialTable.row(&c))
}

// RevokeCredential revokes a credential; one that is revoked or unknown is
// ErrNotFound.
func (tx *Tx) RevokeCredential(ctx context.Context, keyID string) error {
	n, err := tx.ExecCount(ctx, "UPDATE credentials SET revoked_at = $1 WHERE key_id = $2 AND revoked_at = 0", micros(tx.Now), keyID)
	if err == nil && n != 1 {
		err = ErrNotFound
	}
	return err
}

// Credential reads a credential, including revoked ones; else ErrNotFound.
func (s *Store) Credential(ctx context.Context, keyID string) (Credential, error) {
	c, err := scanCredential(s.db.QueryRow(ctx, "SELECT "+credentialTable.selected+" FROM credentials t WHERE t.key_id = $1", keyID))
	return c, s.db.ReadError("credential", err)
}

// Credentials lists a merchant's credentials, oldest first.
func (s *Store) Credentials(ctx context.Context, merchant payment.ID) ([]Credential, error) {
	rows, err := s.db.Query(ctx, "SELECT "+credentialTable.selected+` FROM credentials t
		WHERE t.merchant_id = $1 ORDER BY t.created_at, t.key_id`, merchant[:])
	list, err := db.Collect(rows, err, scanCredential)
	return list, s.db.ReadError("credentials", err)
}
