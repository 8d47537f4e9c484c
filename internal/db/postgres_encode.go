package db

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// array is a column of rows as a parameter: an array in PostgreSQL's binary format, written from the
// rows. The driver would make a list of the values, and read each by reflection.
type array struct {
	rows [][]any
	at   int // the column
	kind *arrayKind
	// grow is set in the first parameter of a statement: bytes of all its parameters. The driver encodes
	// them into one buffer, which it grows from 256 bytes for each statement.
	grow int
}

// arrayKind is a type of columns.
type arrayKind struct {
	element uint32 // OID
	driver  any    // a value that the driver encodes as such an array
}

var arrayKinds = map[string]*arrayKind{
	"bytea":  {pgtype.ByteaOID, [][]byte(nil)},
	"bigint": {pgtype.Int8OID, []int64(nil)},
	"text":   {pgtype.TextOID, []string(nil)},
}

// Bytes of an array beside the values.
const (
	arrayHeader   = 24 // its length as a parameter, dimensions, flags, type, size, lower bound
	elementHeader = 4  // its length
)

// arrays turns rows into one array per column, the form for PostgreSQL.
func arrays(columns []Column, rows [][]any) []any {
	args, size := make([]any, len(columns)), 0
	for c := range columns {
		size += arrayHeader + elementHeader*len(rows)
		for _, row := range rows {
			switch v := row[c].(type) {
			case []byte:
				size += len(v)
			case string:
				size += len(v)
			case int64:
				size += 8
			}
		}
	}
	for c := range columns {
		args[c] = array{rows, c, arrayKinds[columns[c].Kind], size}
		size = 0
	}
	return args
}

// arrayPlan encodes arrays.
type arrayPlan struct{}

// SetNext implements [pgtype.WrappedEncodePlanNextSetter].
func (arrayPlan) SetNext(pgtype.EncodePlan) {}

// Encode implements [pgtype.EncodePlan].
func (arrayPlan) Encode(value any, buffer []byte) ([]byte, error) {
	v := value.(array)
	b := slices.Grow(buffer, v.grow)
	for _, n := range [...]uint32{1, 0, v.kind.element, uint32(len(v.rows)), 1} { //nolint:gosec // a batch is small
		b = binary.BigEndian.AppendUint32(b, n)
	}
	for _, row := range v.rows {
		switch x := row[v.at].(type) {
		case []byte:
			b = appendElement(b, x)
		case string:
			b = appendElement(b, x)
		case int64:
			b = binary.BigEndian.AppendUint32(b, 8)
			b = binary.BigEndian.AppendUint64(b, uint64(x)) //nolint:gosec // bits
		default:
			return nil, fmt.Errorf("db: a row has a %T", x)
		}
	}
	return b, nil
}

func appendElement[V ~string | ~[]byte](b []byte, v V) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) //nolint:gosec // a value is far below 4 GiB
}

// encodeArrays makes a connection encode parameters that are arrays.
func encodeArrays(_ context.Context, c *pgx.Conn) error {
	types := c.TypeMap()
	types.TryWrapEncodePlanFuncs = slices.Insert(types.TryWrapEncodePlanFuncs, 0, func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
		if v, ok := value.(array); ok {
			return arrayPlan{}, v.kind.driver, true
		}
		return nil, nil, false
	})
	return nil
}
