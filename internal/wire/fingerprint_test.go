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
		mac[0] = rapid.ByteRange(0, 2).Draw(t, "mac") // few, so that equal ones are met
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
			t.Fatalf("the other way round %q, want %q", got, want)
		}
		if again := pack(t, a); !bytes.Equal(x, again) {
			t.Fatalf("the order of members shows: %x and %x", x, again)
		}
	})
}

// A fingerprint that was cut is a different one, and reading rubbish never fails.
func TestFingerprintSurvivesDamage(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		whole := pack(t, map[string][16]byte{"amount": {1}, "referenceId": {2}})
		cut := whole[:rapid.IntRange(0, len(whole)-1).Draw(t, "length")]
		if len(whole.Differing(cut)) == 0 || len(cut.Differing(whole)) == 0 {
			t.Fatalf("cut to %d bytes, and taken for the same", len(cut))
		}
		rubbish := wire.Fingerprint(rapid.SliceOf(rapid.Byte()).Draw(t, "rubbish"))
		whole.Differing(rubbish)
		rubbish.Differing(whole)
	})
}
