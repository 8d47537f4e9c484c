package payment

import (
	"bytes"
	"sort"
)

// FieldMAC is a keyed hash of one top-level member of a request, as it was
// sent: enough to say whether it differs, without keeping what it held.
type FieldMAC struct {
	Name string
	MAC  [16]byte
}

// Fingerprint tells a request from another one under the same reference. It
// is a list of (length of name, name, MAC) sorted by name.
type Fingerprint []byte

// NewFingerprint packs macs, in any order.
func NewFingerprint(macs []FieldMAC) Fingerprint {
	sort.Slice(macs, func(i, j int) bool { return macs[i].Name < macs[j].Name })
	size := 0
	for i := range macs {
		size += 1 + len(macs[i].Name) + len(macs[i].MAC)
	}
	out := make([]byte, 0, size)
	for i := range macs {
		out = append(out, byte(len(macs[i].Name)))
		out = append(out, macs[i].Name...)
		out = append(out, macs[i].MAC[:]...)
	}
	return out
}

// Differing names the members in which two requests differ, sorted; nothing
// where they are the same request.
func (f Fingerprint) Differing(other Fingerprint) []string {
	if bytes.Equal(f, other) {
		return nil
	}
	mine, theirs := f.unpack(), other.unpack()
	var names []string
	for name, mac := range mine {
		if their, ok := theirs[name]; !ok || their != mac {
			names = append(names, name)
		}
	}
	for name := range theirs {
		if _, ok := mine[name]; !ok {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func (f Fingerprint) unpack() map[string][16]byte {
	fields := make(map[string][16]byte)
	for len(f) > 0 {
		n := int(f[0])
		if len(f) < 1+n+16 {
			break // damaged: what is missing counts as different
		}
		fields[string(f[1:1+n])] = [16]byte(f[1+n : 1+n+16])
		f = f[1+n+16:]
	}
	return fields
}
