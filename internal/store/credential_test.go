package store_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

// credentialEdits change a column each, as an intruder with access to the database would.
var credentialEdits = []string{
	"key_id = 'other'", "merchant_id = (SELECT id FROM merchants WHERE name = 'b')",
	"secret_hash = (SELECT secret_hash FROM credentials WHERE key_id = 'theirs')", "secret_hash = second_hash",
	"second_hash = (SELECT secret_hash FROM credentials WHERE key_id = 'theirs')", "second_until = second_until + 1", "second_until = 0",
	"scopes = 'read payout:write'", "scopes = ''", "allowed_ips = ''", "allowed_ips = '0.0.0.0/0'", "allowed_ips = 'anywhere'",
	"expires_at = 0", "expires_at = expires_at + 1000000", "revoked_at = 1", "mac = secret_hash",
	"mac = (SELECT mac FROM credentials WHERE key_id = 'theirs')",
}

func newCredentials(t *testing.T, s *store.Store) {
	t.Helper()
	a, b := createMerchant(t, s, "a"), createMerchant(t, s, "b")
	now := time.Now()
	write(t, s, func(tx *store.AdminTx) error {
		must(t, tx.CreateCredential(t.Context(), store.Credential{
			KeyID: "k", Merchant: a.ID, Label: "till", SecretHash: []byte{1}, SecondHash: []byte{2}, SecondUntil: now.Add(time.Hour),
			Scopes: []string{store.ScopeRead}, AllowedIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, ExpiresAt: now.Add(time.Hour),
		}))
		return tx.CreateCredential(t.Context(), store.Credential{KeyID: "theirs", Merchant: b.ID, SecretHash: []byte{3}, Scopes: store.Scopes})
	})
}

// edited runs a test on the changed row, and restores it.
func edited(t *testing.T, s *store.Store, set string, then func(keyID string)) {
	t.Helper()
	keyID, restore := "k", ""
	if set == "key_id = 'other'" {
		keyID, restore = "other", "UPDATE credentials SET key_id = 'k' WHERE key_id = 'other'"
	}
	exec := func(text string) {
		write(t, s, func(tx *store.AdminTx) error { _, err := tx.Exec(t.Context(), text); return err })
	}
	exec("DROP TABLE IF EXISTS kept")
	exec("CREATE TABLE kept AS SELECT * FROM credentials WHERE key_id = 'k'")
	exec("UPDATE credentials SET " + set + " WHERE key_id = 'k'")
	then(keyID)
	if restore != "" {
		exec(restore)
	}
	exec("DELETE FROM credentials WHERE key_id = 'k'")
	exec("INSERT INTO credentials SELECT * FROM kept")
	exec("DROP TABLE kept")
}

// credentialDefects verifies a merchant, and returns the defects of its credentials.
func credentialDefects(t *testing.T, s *store.Store, merchant payment.ID) []store.Defect {
	t.Helper()
	proofs, err := s.Verify(t.Context(), merchant)
	must(t, err)
	for _, p := range proofs {
		if p.Check == "credentials" {
			return p.Defects
		}
	}
	t.Fatal("no proof of credentials")
	return nil
}

// A credential whose row was changed outside the gateway is damaged, in any column;
// the proof names it, and it can only be revoked. Then the proof names it no more: one defect
// that stays forever would hide the next one.
func TestEditedCredentialsAreDamaged(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		newCredentials(t, s)
		for _, set := range credentialEdits {
			edited(t, s, set, func(keyID string) {
				c, err := s.Credential(t.Context(), keyID)
				must(t, err)
				if !errors.Is(c.Damaged, store.ErrChangedOutside) {
					t.Errorf("%s: damaged is %v", set, c.Damaged)
				}
				if defects := credentialDefects(t, s, c.Merchant); len(defects) != 1 || defects[0].ID != keyID {
					t.Errorf("%s: the proof does not name it: %v", set, defects)
				}
				change := func(tx *store.AdminTx) error {
					_, err := tx.ChangeCredential(t.Context(), keyID, func(*store.Credential) error { return nil })
					return err
				}
				if err := s.Administer(t.Context(), storetest.Operator, change); !errors.Is(err, store.ErrChangedOutside) && set != "revoked_at = 1" {
					t.Errorf("%s: it can be changed: %v", set, err)
				}
				revoke := func(tx *store.AdminTx) error { return tx.RevokeCredential(t.Context(), keyID) }
				write(t, s, revoke)
				if c, err = s.Credential(t.Context(), keyID); err != nil || c.Damaged != nil || c.RevokedAt.IsZero() || len(c.SecretHash)+len(c.SecondHash) > 0 {
					t.Errorf("%s: after its revocation it is %+v, %v", set, c, err)
				}
				if defects := credentialDefects(t, s, c.Merchant); len(defects) > 0 {
					t.Errorf("%s: after its revocation the proof still names it: %v", set, defects)
				}
				if err := s.Administer(t.Context(), storetest.Operator, revoke); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s: it is revoked twice: %v", set, err)
				}
			})
		}
		for _, keyID := range []string{"k", "theirs"} {
			if c, err := s.Credential(t.Context(), keyID); err != nil || c.Damaged != nil {
				t.Errorf("%s as it was: %v %v", keyID, c.Damaged, err)
			}
		}
	})
}

// A revoked credential cannot be made valid again by an edit.
func TestRevocationIsAuthentic(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *store.Store) {
		newCredentials(t, s)
		write(t, s, func(tx *store.AdminTx) error { return tx.RevokeCredential(t.Context(), "k") })
		if c, err := s.Credential(t.Context(), "k"); err != nil || c.Damaged != nil {
			t.Errorf("revoked: %v, %v", c.Damaged, err)
		}
		write(t, s, func(tx *store.AdminTx) error {
			return tx.ExecOne(t.Context(), "UPDATE credentials SET revoked_at = 0 WHERE key_id = $1", "k")
		})
		if c, err := s.Credential(t.Context(), "k"); err != nil || c.Damaged == nil {
			t.Errorf("no longer revoked: %v, %v", c.Damaged, err)
		}
	})
}

// A row that was written under a retired master key is authentic, and after porteira rekey it is
// without that key.
func TestCredentialsOfRetiredMasterKeys(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := storetest.Prepare(t, engine, systemEnv())
			s := storetest.Open(t, o)
			newCredentials(t, s)
			open := func(master byte, retired ...[]byte) *store.Store {
				keys, err := db.NewKeyring(bytes.Repeat([]byte{master}, db.MasterKeyLength), o.Env.Random, retired...)
				must(t, err)
				o.Keys, o.Shared = keys, true
				return storetest.Open(t, o)
			}
			first := make([]byte, db.MasterKeyLength) // as storetest's
			rotated, other := open(1, first), open(1)
			damaged := func(s *store.Store) bool {
				c, err := s.Credential(t.Context(), "k")
				must(t, err)
				return c.Damaged != nil
			}
			if damaged(rotated) || !damaged(other) {
				t.Errorf("with the retired key damaged is %v, without it %v", damaged(rotated), damaged(other))
			}
			write(t, rotated, func(tx *store.AdminTx) error {
				_, err := tx.ChangeCredential(t.Context(), "k", func(c *store.Credential) error { c.SecretHash = []byte{9}; return nil })
				return err
			})
			must(t, rotated.Rekey(t.Context(), storetest.Operator, func(store.Rekeyed) {}))
			if damaged(rotated) || damaged(open(1)) {
				t.Error("the changed row is not authentic under the present key")
			}
		})
	}
}
