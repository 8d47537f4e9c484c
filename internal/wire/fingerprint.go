package wire

import (
	"bytes"
	"slices"
	"strings"

	"github.com/porteira/porteira/internal/problem"
)

// fingerprint hashes every top-level member of a body, as it was sent. The
// merchant is part of each hash, so that values cannot be compared across
// merchants. A body with unknown members, which may be many, has none.
func (d *Decoder) fingerprint(body value) Fingerprint {
	if body.r.unknown {
		return nil
	}
	t := body.r.tree
	var buffer [16]FieldMAC
	macs := buffer[:0]
	for v := range body.children() {
		if v.node().kind == kindNull {
			continue
		}
		t.scratch = append(t.scratch[:0], d.Merchant[:]...)
		t.scratch = appendSized(t.scratch, v.name())
		t.scratch = t.appendCanonical(t.scratch, v.at)
		sum := d.MAC(t.scratch)
		macs = append(macs, FieldMAC{Name: v.name(), MAC: [16]byte(sum[:16])})
	}
	clear(t.scratch) // personal data
	return NewFingerprint(macs)
}

// FieldMAC is a keyed hash of one top-level member of a request: it shows
// whether the member differs without storing its value.
type FieldMAC struct {
	Name string
	MAC  [16]byte
}

// Fingerprint distinguishes a request from a different one under the same
// reference. It is a list of (length of name, name, MAC) sorted by name.
type Fingerprint []byte

// NewFingerprint packs macs, in any order.
func NewFingerprint(macs []FieldMAC) Fingerprint {
	slices.SortFunc(macs, func(a, b FieldMAC) int { return strings.Compare(a.Name, b.Name) })
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

// Differing names the members in which two requests differ, sorted; nil if they
// are the same request.
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
	slices.Sort(names)
	return names
}

// Conflict compares a request with the first one under its reference. A difference is
// a problem of kind reference_conflict that names the fields.
func (f Fingerprint) Conflict(first Fingerprint) error {
	differing := f.Differing(first)
	if len(differing) == 0 {
		return nil
	}
	e := problem.New(problem.ReferenceConflict, "This referenceId was already used by a different request. Use a new one, or send the original request again.")
	for _, name := range differing {
		e.Fields = append(e.Fields, problem.FieldError{Field: name, Code: problem.CodeNotAllowed, Detail: "differs from the original request"})
	}
	return e
}

// Replay decides whether a request repeats the first one under its reference, which was
// read with the result first, err. found is false if there is none, a problem of kind
// not_found. Errors: as of Conflict, and err.
func (f Fingerprint) Replay(first Fingerprint, err error) (found bool, conflict error) {
	if problem.Is(err, problem.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Conflict(first)
}

func (f Fingerprint) unpack() map[string][16]byte {
	fields := make(map[string][16]byte)
	for len(f) > 0 {
		n := int(f[0])
		if len(f) < 1+n+16 {
			break // damaged: the missing members differ
		}
		fields[string(f[1:1+n])] = [16]byte(f[1+n : 1+n+16])
		f = f[1+n+16:]
	}
	return fields
}
