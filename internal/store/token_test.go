package store_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

func tokenKeys(t testing.TB, fill byte, retired ...byte) *store.Keyring {
	t.Helper()
	var old [][]byte
	for _, b := range retired {
		old = append(old, bytes.Repeat([]byte{b}, store.MasterKeyLength))
	}
	k, err := store.NewKeyring(bytes.Repeat([]byte{fill}, store.MasterKeyLength), env.SeededRandom(1), old...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOrderTokens(t *testing.T) {
	t.Parallel()
	k, other := tokenKeys(t, 1), tokenKeys(t, 2)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(1, payment.MerchantNumberMax).Draw(t, "number")
		id := payment.ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		token := string(k.AppendOrderToken(nil, number, id))
		if again := string(k.AppendOrderToken([]byte("x"), number, id)); again != "x"+token {
			t.Fatalf("%q, then %q", token, again)
		}
		if n, got, ok := k.ReadOrderToken(token); !ok || n != number || got != id {
			t.Fatalf("read %d %v %v", n, got, ok)
		}
		if strings.Contains(token, id.String()) || strings.Contains(token, hex.EncodeToString(id[:])) {
			t.Fatal("the token tells the id")
		}
		if _, _, ok := other.ReadOrderToken(token); ok {
			t.Fatal("another installation reads it")
		}
		// One character that differs, or one too few or many, makes it nobody's.
		at := rapid.IntRange(0, len(token)-1).Draw(t, "at")
		c := rapid.SampledFrom([]byte("AZaz09-_~=% ")).Draw(t, "c")
		if token[at] != c {
			if _, _, ok := k.ReadOrderToken(token[:at] + string(c) + token[at+1:]); ok {
				t.Fatal("a changed token is read")
			}
		}
		for _, wrong := range []string{token[:at], token + "A", "", token[1:]} {
			if _, _, ok := k.ReadOrderToken(wrong); ok {
				t.Fatalf("%q is read", wrong)
			}
		}
	})
}

// An address that a merchant sent last year leads to its page under a new
// master key, which makes other tokens from then on.
func TestTokensOfRetiredKeys(t *testing.T) {
	t.Parallel()
	id := payment.ID{7, 8, 9}
	old := string(tokenKeys(t, 1).AppendOrderToken(nil, 5, id))
	k := tokenKeys(t, 2, 1)
	if n, got, ok := k.ReadOrderToken(old); !ok || n != 5 || got != id {
		t.Errorf("read %d %v %v", n, got, ok)
	}
	if again := string(k.AppendOrderToken(nil, 5, id)); again == old {
		t.Error("a retired key still makes tokens")
	}
	if _, err := store.NewKeyring(make([]byte, store.MasterKeyLength), env.SeededRandom(1), make([]byte, 5)); err == nil {
		t.Error("a short key is taken")
	}
}

func BenchmarkOrderToken(b *testing.B) {
	k := tokenKeys(b, 1)
	var room [64]byte
	b.ReportAllocs()
	for b.Loop() {
		k.AppendOrderToken(room[:0], 5, payment.ID{1})
	}
}
