package wire

import (
	"encoding/binary"
	"slices"
	"strings"
)

// compact is a value as it was sent, without white space.
func (t *tree) compact(at int32) []byte {
	return t.appendCompact(make([]byte, 0, len(t.nodes[at].raw)), at)
}

func (t *tree) appendCompact(dst []byte, at int32) []byte {
	n := &t.nodes[at]
	if n.kind != kindObject && n.kind != kindArray {
		return append(dst, n.raw...)
	}
	dst = append(dst, byte(n.kind))
	for i := n.child; i != 0; i = t.nodes[i].next {
		if i != n.child {
			dst = append(dst, ',')
		}
		if n.kind == kindObject {
			dst = append(dst, t.nodes[i].rawName...)
			dst = append(dst, ':')
		}
		dst = t.appendCompact(dst, i)
	}
	return append(dst, byte(n.kind)+2) // in ASCII, '}' and ']' are two after their openers
}

// appendCanonical appends a form that two values share if and only if they mean
// the same: members sorted by name without null ones, entries in order, strings
// as code points, numbers as written. Every text is preceded by its length, so
// that no two values share a form by accident.
func (t *tree) appendCanonical(dst []byte, at int32) []byte {
	n := &t.nodes[at]
	dst = append(dst, byte(n.kind))
	switch n.kind {
	case kindString:
		return appendSized(dst, unquote(n.raw))
	case kindNumber:
		return appendSized(dst, n.raw)
	case kindArray:
		for i := n.child; i != 0; i = t.nodes[i].next {
			dst = t.appendCanonical(dst, i)
		}
		return append(dst, ']')
	case kindObject:
		first := len(t.sorted)
		t.appendMembers(n.child)
		for i := first; i < len(t.sorted); i++ {
			dst = appendSized(append(dst, ','), t.nodes[t.sorted[i]].name)
			dst = t.appendCanonical(dst, t.sorted[i])
		}
		t.sorted = t.sorted[:first]
		return append(dst, '}')
	default:
		return dst
	}
}

// appendMembers appends the siblings from first on to t.sorted, by name, without
// null ones.
func (t *tree) appendMembers(first int32) {
	start := len(t.sorted)
	for i := first; i != 0; i = t.nodes[i].next {
		if t.nodes[i].kind != kindNull {
			t.sorted = append(t.sorted, i)
		}
	}
	slices.SortFunc(t.sorted[start:], func(a, b int32) int {
		return strings.Compare(t.nodes[a].name, t.nodes[b].name)
	})
}

func appendSized(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}
