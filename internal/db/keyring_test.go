package db_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// keyring has a master key of 32 equal bytes, and retired ones.
func keyring(t testing.TB, fill byte, random env.Random, retired ...byte) *db.Keyring {
	t.Helper()
	var old [][]byte
	for _, b := range retired {
		old = append(old, bytes.Repeat([]byte{b}, db.MasterKeyLength))
	}
	keys, err := db.NewKeyring(bytes.Repeat([]byte{fill}, db.MasterKeyLength), random, old...)
	must(t, err)
	return keys
}

// A sealed value opens only with every bit unchanged, and only in its own cell.
func TestSealedValuesAreAuthenticated(t *testing.T) {
	t.Parallel()
	keys := keyring(t, 0, env.SeededRandom(1))
	merchant, id := payment.ID{1}, payment.ID{2}
	cell := db.AssociatedData{Table: "payins", Merchant: merchant, ID: id, Column: "personal"}
	plain := []byte("Ana, 52998224725")
	sealed := keys.Seal(cell, plain)
	if got, err := keys.Open(cell, sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("%q, %v", got, err)
	}
	if again := keys.Seal(cell, plain); bytes.Equal(again, sealed) {
		t.Error("two seals of the same text are equal, which shows that the texts are equal")
	}
	refused := func(what string, cell db.AssociatedData, sealed []byte) {
		t.Helper()
		if got, err := keys.Open(cell, sealed); !errors.Is(err, db.ErrSealed) || got != nil {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	for bit := range len(sealed) * 8 {
		flipped := bytes.Clone(sealed)
		flipped[bit/8] ^= 1 << (bit % 8)
		refused("a flipped bit", cell, flipped)
	}
	for length := range len(sealed) {
		refused("cut", cell, sealed[:length])
	}
	refused("with one byte more", cell, append(bytes.Clone(sealed), 0))
	refused("in another table", db.AssociatedData{Table: "payouts", Merchant: merchant, ID: id, Column: "personal"}, sealed)
	refused("of another merchant", db.AssociatedData{Table: "payins", Merchant: id, ID: id, Column: "personal"}, sealed)
	refused("in another row", db.AssociatedData{Table: "payins", Merchant: merchant, ID: merchant, Column: "personal"}, sealed)
	refused("in another column", db.AssociatedData{Table: "payins", Merchant: merchant, ID: id, Column: "personal2"}, sealed)
	refused("with a letter moved from column to table", db.AssociatedData{Table: "payinsp", Merchant: merchant, ID: id, Column: "ersonal"}, sealed)
}

// A value of another master key is rejected with its own message.
func TestOtherMasterKeyOpensNothing(t *testing.T) {
	t.Parallel()
	cell := db.AssociatedData{Table: "payins", Column: "personal"}
	sealed := keyring(t, 1, env.SeededRandom(1)).Seal(cell, []byte("x"))
	if _, err := keyring(t, 2, env.SeededRandom(1), 1).Open(cell, sealed); err != nil {
		t.Errorf("with the retired key: %v", err)
	}
	_, err := keyring(t, 2, env.SeededRandom(1), 3).Open(cell, sealed)
	if !errors.Is(err, db.ErrSealed) || !strings.Contains(err.Error(), "payins.personal was sealed with another master key") {
		t.Error(err)
	}
}

// Keyed hashes and tokens of a root do not depend on the master key.
func TestRootOutlivesMasterKeys(t *testing.T) {
	t.Parallel()
	root := bytes.Repeat([]byte{9}, db.RootLength)
	before, err := keyring(t, 1, env.SeededRandom(1)).WithRoot(root)
	must(t, err)
	after, err := keyring(t, 2, env.SeededRandom(1)).WithRoot(root)
	must(t, err)
	mac := before.MAC(db.PurposeSearch, []byte("a"))
	token := string(before.AppendOrderToken(nil, 1, payment.ID{1}))
	if !after.Authentic(db.PurposeSearch, []byte("a"), mac[:]) || mac == keyring(t, 1, env.SeededRandom(1)).MAC(db.PurposeSearch, []byte("a")) {
		t.Error("the hash depends on the master key")
	}
	if token != string(after.AppendOrderToken(nil, 1, payment.ID{1})) {
		t.Error("the token depends on the master key")
	}
	if _, err := before.WithRoot(root[1:]); err == nil {
		t.Error("a short root is accepted")
	}
}

func TestMasterKeys(t *testing.T) {
	t.Parallel()
	if key, err := db.ParseMasterKey(" AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"); err != nil || key[31] != 31 {
		t.Errorf("%x, %v", key, err)
	}
	for _, bad := range []string{"", "AAEC", strings.Repeat("A", 43), strings.Repeat("A", 44), "not base64!"} {
		if _, err := db.ParseMasterKey(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := db.NewKeyring(make([]byte, 16), env.SeededRandom(1)); err == nil {
		t.Error("a short master key was accepted")
	}
	if _, err := db.NewKeyring(make([]byte, db.MasterKeyLength), env.SeededRandom(1), make([]byte, 5)); err == nil {
		t.Error("a short retired key was accepted")
	}
	keys := keyring(t, 0, env.SeededRandom(1))
	hash := keys.SecretHash("a")
	if hash == keys.SecretHash("b") || hash != keys.SecretHash("a") {
		t.Error("two secrets have the same hash")
	}
	if hash == keys.MAC(db.PurposeFingerprint, []byte("a")) {
		t.Error("two purposes share a key")
	}
	if hash == keyring(t, 1, env.SeededRandom(1)).SecretHash("a") {
		t.Error("two master keys share a hash")
	}
}

// Hashes of a retired master key are accepted, and no longer made.
func TestHashesOfRetiredKeys(t *testing.T) {
	t.Parallel()
	old, now := keyring(t, 1, env.SeededRandom(1)), keyring(t, 2, env.SeededRandom(1), 1)
	mac := old.MAC(db.PurposeCredential, []byte("row"))
	if !now.Authentic(db.PurposeCredential, []byte("row"), mac[:]) || !old.Authentic(db.PurposeCredential, []byte("row"), mac[:]) {
		t.Error("a hash is refused")
	}
	if now.Authentic(db.PurposeCredential, []byte("roW"), mac[:]) || now.Authentic(db.PurposeDecision, []byte("row"), mac[:]) ||
		now.Authentic(db.PurposeCredential, []byte("row"), nil) || keyring(t, 2, env.SeededRandom(1)).Authentic(db.PurposeCredential, []byte("row"), mac[:]) {
		t.Error("a hash of another text, purpose or key is accepted")
	}
	if now.MAC(db.PurposeCredential, []byte("row")) == mac {
		t.Error("a retired key still makes hashes")
	}
	hashes := now.RetiredSecretHashes("s")
	if len(hashes) != 1 || hashes[0] != old.SecretHash("s") || old.RetiredSecretHashes("s") != nil {
		t.Errorf("retired hashes are %x", hashes)
	}
}
