package db

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// sized is the first parameter of a statement, with the size of all its parameters. The
// driver encodes them into one buffer, which it grows from 256 bytes for each statement.
// Allocated at once, it takes a sixth less of what a pay-in allocates, and 2 % of its CPU time.
type sized struct {
	list any
	size int // bytes
}

// Bytes of PostgreSQL's binary format beside the elements of an array.
const (
	arrayHeader   = 24 // its length as a parameter, dimensions, flags, type, size, lower bound
	elementHeader = 4  // its length
)

func arraySize[V ~string | ~[]byte](list []V) int {
	size := arrayHeader + len(list)*elementHeader
	for _, v := range list {
		size += len(v)
	}
	return size
}

// sizedPlan makes the buffer large enough before the first parameter is encoded.
type sizedPlan struct{ next pgtype.EncodePlan }

// SetNext implements [pgtype.WrappedEncodePlanNextSetter].
func (p *sizedPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

// Encode implements [pgtype.EncodePlan].
func (p *sizedPlan) Encode(value any, buffer []byte) ([]byte, error) {
	v := value.(sized)
	return p.next.Encode(v.list, slices.Grow(buffer, v.size))
}

// encodeSized makes a connection encode parameters that are sized.
func encodeSized(_ context.Context, c *pgx.Conn) error {
	types := c.TypeMap()
	types.TryWrapEncodePlanFuncs = slices.Insert(types.TryWrapEncodePlanFuncs, 0, func(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
		v, ok := value.(sized)
		return &sizedPlan{}, v.list, ok
	})
	return nil
}
