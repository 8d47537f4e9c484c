package db

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// The vectors are those of c2sp.org/XAES-256-GCM.
func TestXAESVectors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fill         byte
		nonce, data  string
		plain, wants string
	}{
		{1, "ABCDEFGHIJKLMNOPQRSTUVWX", "", "XAES-256-GCM", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "ABCDEFGHIJKLMNOPQRSTUVWX", "c2sp.org/XAES-256-GCM", "XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		s, err := newXAES(bytes.Repeat([]byte{c.fill}, 32))
		if err != nil {
			t.Fatal(err)
		}
		got := s.seal(nil, []byte(c.nonce), []byte(c.plain), []byte(c.data))
		if hex.EncodeToString(got) != c.wants {
			t.Errorf("sealed %x, want %s", got, c.wants)
		}
		if plain, err := s.open([]byte(c.nonce), got, []byte(c.data)); err != nil || string(plain) != c.plain {
			t.Errorf("opened %q, %v", plain, err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	s, err := newXAES(make([]byte, 32))
	if err != nil {
		b.Fatal(err)
	}
	nonce, plain, out := make([]byte, sealNonce), make([]byte, 300), make([]byte, 0, 400)
	b.ReportAllocs()
	for b.Loop() {
		s.seal(out, nonce, plain, nil)
	}
}
