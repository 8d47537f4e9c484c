package store

import (
	"context"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
)

// The scopes of a credential.
const (
	ScopePayinWrite    = "payin:write"
	ScopePayoutWrite   = "payout:write"
	ScopePayoutApprove = "payout:approve"
	ScopeRefundWrite   = "refund:write" // refunds, and the defense of disputes
	ScopeWebhookWrite  = "webhook:write"
	ScopeRead          = "read"
)

// Scopes lists every scope.
var Scopes = []string{ScopePayinWrite, ScopePayoutWrite, ScopePayoutApprove, ScopeRefundWrite, ScopeWebhookWrite, ScopeRead}

// DefaultScopes are those of a credential that names none: all but the approval of payouts,
// which must not be given by accident to the program that requests them.
var DefaultScopes = []string{ScopePayinWrite, ScopePayoutWrite, ScopeRefundWrite, ScopeWebhookWrite, ScopeRead}

// ErrChangedOutside means that a row was changed outside the gateway.
var ErrChangedOutside = errors.New("store: a row was changed outside the gateway")

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

	// Damaged is ErrChangedOutside if the row was changed outside the gateway: no secret is valid
	// for it.
	Damaged error

	mac []byte
}

var credentialTable = newTable("credentials", []string{"key_id"},
	textColumn("key_id", func(c *Credential) *string { return &c.KeyID }),
	idColumn("merchant_id", func(c *Credential) *payment.ID { return &c.Merchant }),
	textColumn("label", func(c *Credential) *string { return &c.Label }),
	bytesColumn("secret_hash", func(c *Credential) *[]byte { return &c.SecretHash }).as(mutable),
	bytesColumn("second_hash", func(c *Credential) *[]byte { return &c.SecondHash }).as(mutable),
	timeColumn("second_until", func(c *Credential) *time.Time { return &c.SecondUntil }).as(mutable),
	wordsColumn("scopes", func(c *Credential) *[]string { return &c.Scopes }),
	timeColumn("expires_at", func(c *Credential) *time.Time { return &c.ExpiresAt }),
	timeColumn("revoked_at", func(c *Credential) *time.Time { return &c.RevokedAt }).as(mutable),
	timeColumn("created_at", func(c *Credential) *time.Time { return &c.CreatedAt }),
	bytesColumn("mac", func(c *Credential) *[]byte { return &c.mac }).as(mutable),
	// Last: a list that cannot be read ends the scan.
	networksColumn("allowed_ips", func(c *Credential) *[]netip.Prefix { return &c.AllowedIPs }).as(mutable),
)

var (
	credentialUpdate = credentialTable.updateBy("", "key_id")
	credentialByKey  = "SELECT " + credentialTable.selected + " FROM credentials t WHERE t.key_id = $1"
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

// Scan implements [sql.Scanner]. A list that cannot be read is ErrChangedOutside: it must
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
			return fmt.Errorf("%w: %w", ErrChangedOutside, err)
		}
		*d = append(*d, prefix)
	}
	return nil
}

// macVersion begins the authenticated form of a credential.
const macVersion = 1

// authenticated is the input of a credential's MAC: all fields that decide who may use the
// credential, for which operations and until when. Each field has its length before it, so that no
// two credentials have the same form.
func (c *Credential) authenticated() []byte {
	b := []byte{macVersion}
	field := func(v []byte) { b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) }
	list := func(words []string) { field([]byte(strings.Join(words, " "))) }
	networks := make([]string, len(c.AllowedIPs))
	for i, p := range c.AllowedIPs {
		networks[i] = p.String()
	}
	field([]byte(c.KeyID))
	field(c.Merchant[:])
	field(c.SecretHash)
	field(c.SecondHash)
	list(c.Scopes)
	list(networks)
	for _, t := range []time.Time{c.SecondUntil, c.ExpiresAt, c.RevokedAt} {
		b = binary.BigEndian.AppendUint64(b, uint64(micros(t)))
	}
	return b
}

// sign sets the MAC.
func (c *Credential) sign(keys *db.Keyring) {
	sum := keys.MAC(db.PurposeCredential, c.authenticated())
	c.mac = sum[:]
}

// scanCredential reads a credential. One whose MAC differs is damaged.
func scanCredential(keys *db.Keyring) func(r db.Scanner) (Credential, error) {
	return func(r db.Scanner) (Credential, error) {
		var c Credential
		err := credentialTable.scan(r, &c)
		if errors.Is(err, ErrChangedOutside) {
			c.Damaged, err = fmt.Errorf("credential %q: %w", c.KeyID, err), nil
		} else if err == nil && !keys.Authentic(db.PurposeCredential, c.authenticated(), c.mac) {
			c.Damaged = fmt.Errorf("%w: credential %q", ErrChangedOutside, c.KeyID)
		}
		return c, err
	}
}

// CreateCredential adds a credential. A taken key id is ErrConflict.
func (tx *AdminTx) CreateCredential(ctx context.Context, c Credential) error {
	c.RevokedAt, c.CreatedAt = time.Time{}, tx.Now
	c.sign(tx.Keys())
	tx.record(NounCredential, "create", c.Merchant, c.KeyID, nil, c.auditFields())
	return tx.InsertNew(ctx, credentialTable.insert, credentialTable.row(&c))
}

// ChangeCredential changes secrets or times of a credential that is not revoked. Errors:
// ErrNotFound for one that is revoked or unknown, ErrChangedOutside if its row is damaged,
// and that of change.
func (tx *AdminTx) ChangeCredential(ctx context.Context, keyID string, change func(c *Credential) error) (Credential, error) {
	c, err := tx.liveCredential(ctx, keyID)
	if err == nil {
		err = c.Damaged
	}
	before := c
	if err == nil {
		err = change(&c)
	}
	if err != nil {
		return c, err
	}
	after := c.auditFields()
	after.changed("secret", !hmac.Equal(before.SecretHash, c.SecretHash))
	tx.record(NounCredential, "change", c.Merchant, c.KeyID, before.auditFields(), after)
	c.sign(tx.Keys())
	return c, tx.saveCredential(ctx, &c)
}

// RevokeCredential revokes a credential; one that is revoked or unknown is ErrNotFound. A
// damaged one is written again, revoked and without secrets, also if its revocation is what
// was changed: it is not damaged any more.
func (tx *AdminTx) RevokeCredential(ctx context.Context, keyID string) error {
	c, err := tx.liveCredential(ctx, keyID)
	if err != nil {
		return err
	}
	before := c
	c.RevokedAt = tx.Now
	if c.Damaged != nil {
		c.SecretHash, c.SecondHash, c.AllowedIPs = nil, nil, nil
	}
	tx.record(NounCredential, "revoke", c.Merchant, c.KeyID, before.auditFields(), c.auditFields())
	c.sign(tx.Keys())
	return tx.saveCredential(ctx, &c)
}

// liveCredential locks a credential that is damaged or not revoked; else ErrNotFound.
func (tx *Tx) liveCredential(ctx context.Context, keyID string) (Credential, error) {
	c, err := scanCredential(tx.Keys())(tx.QueryRow(ctx, credentialByKey+tx.ForUpdate(), keyID))
	if err == nil && c.Damaged == nil && !c.RevokedAt.IsZero() {
		err = ErrNotFound
	}
	return c, db.NotFound(err)
}

func (tx *Tx) saveCredential(ctx context.Context, c *Credential) error {
	missed, err := tx.Update(ctx, credentialUpdate.RowUpdate, credentialUpdate.row(c))
	if err == nil && len(missed) > 0 {
		err = ErrNotFound
	}
	return err
}

// Credential reads a credential, including revoked and damaged ones; else ErrNotFound.
func (s *Store) Credential(ctx context.Context, keyID string) (Credential, error) {
	c, err := scanCredential(s.Keys())(s.db.QueryRow(ctx, credentialByKey, keyID))
	return c, s.db.ReadError("credential", err)
}

// Credentials lists a merchant's credentials, oldest first.
func (s *Store) Credentials(ctx context.Context, merchant payment.ID) ([]Credential, error) {
	rows, err := s.db.Query(ctx, "SELECT "+credentialTable.selected+` FROM credentials t
		WHERE t.merchant_id = $1 ORDER BY t.created_at, t.key_id`, merchant[:])
	list, err := db.Collect(rows, err, scanCredential(s.Keys()))
	return list, s.db.ReadError("credentials", err)
}
