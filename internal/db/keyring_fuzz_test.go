package db_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

// FuzzSealed seals a value for a cell, and opens it there. Damaged, in another
// cell, or under another key it does not open; nor does any other value that
// somebody writes into the column.
func FuzzSealed(f *testing.F) {
	random := env.SeededRandom(1)
	keys := keyring(f, 1, random)
	other := keyring(f, 2, random)
	here := db.AssociatedData{Table: "payins", Merchant: payment.ID{1}, ID: payment.ID{2}, Column: "personal"}
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
			if opened, err := keys.Open(here, v); !errors.Is(err, db.ErrSealed) && !(what == "changed" && change == 0) && !isSeed(what, opened) {
				t.Fatalf("%s: %x opens as %q, %v", what, v, opened, err)
			}
		}
		there := db.AssociatedData{Table: table, Merchant: payment.ID{1}, ID: payment.ID{2}, Column: column}
		if opened, err := keys.Open(there, sealed); there != here && !errors.Is(err, db.ErrSealed) {
			t.Fatalf("it opens in %+v, as %q", there, opened)
		}
		if opened, err := other.Open(here, sealed); !errors.Is(err, db.ErrSealed) {
			t.Fatalf("it opens with another key, as %q", opened)
		}
		checkMasterKey(t, master)
	})
}

// isSeed excuses the one value among the seeds that was sealed for this cell.
func isSeed(what string, opened []byte) bool { return what == "foreign" && string(opened) == "x" }

// checkMasterKey: a key is 32 bytes in base64, with white space around them at
// most. The last letter before the padding has two bits that mean nothing. An
// error never contains the key.
func checkMasterKey(t *testing.T, text string) {
	t.Helper()
	key, err := db.ParseMasterKey(text)
	const significant = 42 // letters
	if bare := strings.Join(strings.Fields(text), ""); err == nil && bare[:significant] != base64.StdEncoding.EncodeToString(key)[:significant] {
		t.Fatalf("%q is read as %x", text, key)
	}
	if _, empty := db.ParseMasterKey(""); err != nil && err.Error() != empty.Error() {
		t.Fatalf("the error depends on the key: %v", err)
	}
}
