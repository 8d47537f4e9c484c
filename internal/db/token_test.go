package db_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
)

func TestOrderTokens(t *testing.T) {
	t.Parallel()
	k, other := keyring(t, 1, env.SeededRandom(1)), keyring(t, 2, env.SeededRandom(1))
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
			t.Fatal("the token contains the id")
		}
		if _, _, ok := other.ReadOrderToken(token); ok {
			t.Fatal("another installation reads it")
		}
		// One character that differs, or one too few or many, makes it invalid.
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

// A link that a merchant sent last year works under a new master key, which makes
// other tokens from then on.
func TestTokensOfRetiredKeys(t *testing.T) {
	t.Parallel()
	id := payment.ID{7, 8, 9}
	old := string(keyring(t, 1, env.SeededRandom(1)).AppendOrderToken(nil, 5, id))
	k := keyring(t, 2, env.SeededRandom(1), 1)
	if n, got, ok := k.ReadOrderToken(old); !ok || n != 5 || got != id {
		t.Errorf("read %d %v %v", n, got, ok)
	}
	if again := string(k.AppendOrderToken(nil, 5, id)); again == old {
		t.Error("a retired key still makes tokens")
	}
}

func BenchmarkOrderToken(b *testing.B) {
	k := keyring(b, 1, env.SeededRandom(1))
	var buffer [64]byte
	b.ReportAllocs()
	for b.Loop() {
		k.AppendOrderToken(buffer[:0], 5, payment.ID{1})
	}
}
