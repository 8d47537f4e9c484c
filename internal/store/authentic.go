package store

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/porteira/porteira/internal/db"
)

// rowVersion begins the input of a row's keyed hash.
const rowVersion = 1

// rowHash makes the keyed hashes (MACs) of the rows of a table.
type rowHash[T any] struct {
	table   *tableOf[T]
	covered []column[T]
}

// hashOf names the columns that the hash of a row covers: those that decide about money. A value that
// is added to a JSON column later must be left out if it is zero, or the hashes of older rows differ.
func (t *tableOf[T]) hashOf(names ...string) *rowHash[T] {
	h := &rowHash[T]{table: t}
	for _, name := range names {
		h.covered = append(h.covered, t.columns[t.index(name)])
	}
	return h
}

// appendCovered appends the covered columns of v, with the name of its table. Each has its length
// before it, so that no two rows have the same form.
func (h *rowHash[T]) appendCovered(b []byte, v *T) []byte {
	b = appendField(append(b, rowVersion), h.table.name)
	for i := range h.covered {
		b = h.covered[i].appendTo(b, v)
	}
	return b
}

// appendTo appends the value of a column.
func (c *column[T]) appendTo(b []byte, v *T) []byte {
	if c.hashed != nil {
		return c.hashed(b, v)
	}
	switch value := c.value(v).(type) {
	case []byte:
		b = appendField(b, value)
	case string:
		b = appendField(b, value)
	case int64:
		b = appendNumber(b, value)
	}
	return b
}

func appendNumber(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)) //nolint:gosec // bits
}

func appendField[F ~string | ~[]byte](b []byte, field F) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(field))), field...) //nolint:gosec // fields are short
}

// mac is the keyed hash of a row. more are further rows that it covers, in any order.
func (h *rowHash[T]) mac(keys *db.Keyring, v *T, more ...[]byte) []byte {
	b := macInputs.Get().(*[]byte)
	defer macInputs.Put(b)
	*b = h.macInput(*b, v, more)
	return keys.AppendMAC(nil, db.PurposeRow, *b)
}

// authentic reports whether mac is the keyed hash of a row, and of more rows.
func (h *rowHash[T]) authentic(keys *db.Keyring, v *T, mac []byte, more ...[]byte) bool {
	b := macInputs.Get().(*[]byte)
	defer macInputs.Put(b)
	*b = h.macInput(*b, v, more)
	return keys.Authentic(db.PurposeRow, *b, mac)
}

// macInputs are buffers for the inputs of hashes.
var macInputs = sync.Pool{New: func() any { return new([]byte) }}

// macInput overwrites a buffer with the input of a hash.
func (h *rowHash[T]) macInput(buffer []byte, v *T, more [][]byte) []byte {
	b := h.appendCovered(buffer[:0], v)
	slices.SortFunc(more, slices.Compare[[]byte])
	for _, row := range more {
		b = appendField(b, row)
	}
	return b
}
