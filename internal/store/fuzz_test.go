package store_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// FuzzSealed seals a value for a place, and opens it there; damaged in any way,
// moved to any other place, or under another key it does not open. Nor does
// any other value that somebody writes into the column.
func FuzzSealed(f *testing.F) {
	random := env.SeededRandom(1)
	keys := keyring(f, 1, random)
	other := keyring(f, 2, random)
	here := store.Place{Table: "payins", Merchant: payment.ID{1}, ID: payment.ID{2}, Column: "personal"}
	f.Add([]byte(`{"document":"52998224725"}`), uint(0), byte(1), []byte{}, "payins", "personal", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	f.Add([]byte{}, uint(5), byte(0x80), keys.Seal(here, []byte("x")), "payins", "personal", " \n")
	f.Add(bytes.Repeat([]byte{0}, 100), uint(40), byte(255), other.Seal(here, nil), "payouts", "", "====")
	f.Fuzz(func(t *testing.T, plain []byte, at uint, change byte, foreign []byte, table, column, master string) {
		sealed := keys.Seal(here, plain)
		if opened, err := keys.Open(here, sealed); err != nil || !bytes.Equal(opened, plain) {
			t.Fatalf("%q opens as %q, %v", plain, opened, err)
		}
		if len(plain) > 8 && bytes.Contains(sealed, plain) {
			t.Fatalf("%q can be read", plain)
		}
		at %= uint(len(sealed))
		damaged := bytes.Clone(sealed)
		damaged[at] ^= change
		for what, v := range map[string][]byte{
			"changed": damaged, "cut": sealed[:at], "without its head": sealed[at:][1:], "lengthened": append(bytes.Clone(sealed), change), "foreign": foreign,
		} {
			if opened, err := keys.Open(here, v); !errors.Is(err, store.ErrSealed) && !(what == "changed" && change == 0) && !isSeed(what, opened) {
				t.Fatalf("%s: %x opens as %q, %v", what, v, opened, err)
			}
		}
		there := store.Place{Table: table, Merchant: payment.ID{1}, ID: payment.ID{2}, Column: column}
		if opened, err := keys.Open(there, sealed); there != here && !errors.Is(err, store.ErrSealed) {
			t.Fatalf("it opens in %+v, as %q", there, opened)
		}
		if opened, err := other.Open(here, sealed); !errors.Is(err, store.ErrSealed) {
			t.Fatalf("it opens with another key, as %q", opened)
		}
		checkMasterKey(t, master)
	})
}

// isSeed excuses the one value among the seeds that was sealed by rights.
func isSeed(what string, opened []byte) bool { return what == "foreign" && string(opened) == "x" }

// checkMasterKey: a key is 32 bytes in base64, with white space around them at
// most; the last letter but the sign of the end has two bits that say nothing.
func checkMasterKey(t *testing.T, text string) {
	t.Helper()
	key, err := store.ParseMasterKey(text)
	const telling = 42
	if bare := strings.Join(strings.Fields(text), ""); err == nil && bare[:telling] != base64.StdEncoding.EncodeToString(key)[:telling] {
		t.Fatalf("%q is taken for %x", text, key)
	}
	if _, nothing := store.ParseMasterKey(""); err != nil && err.Error() != nothing.Error() {
		t.Fatalf("the error tells of the key: %v", err)
	}
}

func keyring(f *testing.F, fill byte, random env.Random) *store.Keyring {
	f.Helper()
	keys, err := store.NewKeyring(bytes.Repeat([]byte{fill}, store.MasterKeyLength), random)
	if err != nil {
		f.Fatal(err)
	}
	return keys
}
