package wire_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/wire"
)

var anyMACs = rapid.MapOfN(
	rapid.SampledFrom([]string{"a", "amount", "amount2", "customer", "items", "pixKey", "referenceId", ""}),
	rapid.Custom(func(t *rapid.T) (mac [16]byte) {
		mac[0] = rapid.ByteRange(0, 2).Draw(t, "mac") // few values, so that some are equal
		mac[15] = mac[0]
		return mac
	}), 0, 8)

// pack makes a fingerprint, its members in random order.
func pack(t *rapid.T, macs map[string][16]byte) wire.Fingerprint {
	var list []wire.FieldMAC
	for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(macs))).Draw(t, "order") {
		list = append(list, wire.FieldMAC{Name: name, MAC: macs[name]})
	}
	return wire.NewFingerprint(list)
}

func TestFingerprintNamesExactlyWhatDiffers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyMACs.Draw(t, "a"), anyMACs.Draw(t, "b")
		var want []string
		for name := range a {
			if mac, ok := b[name]; !ok || mac != a[name] {
				want = append(want, name)
			}
		}
		for name := range b {
			if _, ok := a[name]; !ok {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		x, y := pack(t, a), pack(t, b)
		if got := x.Differing(y); !slices.Equal(got, want) {
			t.Fatalf("differing %q, want %q", got, want)
		}
		if got := y.Differing(x); !slices.Equal(got, want) {
			t.Fatalf("in the other direction %q, want %q", got, want)
		}
		if again := pack(t, a); !bytes.Equal(x, again) {
			t.Fatalf("the order of members matters: %x and %x", x, again)
		}
	})
}

// A truncated fingerprint differs, and garbage never panics.
func TestFingerprintSurvivesDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		complete := pack(t, map[string][16]byte{"amount": {1}, "referenceId": {2}})
		cut := complete[:rapid.IntRange(0, len(complete)-1).Draw(t, "length")]
		if len(complete.Differing(cut)) == 0 || len(cut.Differing(complete)) == 0 {
			t.Fatalf("truncated to %d bytes, it is the same", len(cut))
		}
		garbage := wire.Fingerprint(rapid.SliceOf(rapid.Byte()).Draw(t, "garbage"))
		complete.Differing(garbage)
		garbage.Differing(complete)
	})
}
