package db

import (
	"bytes"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
)

// A column is encoded to the bytes that the driver makes of a list.
func TestArraysAreEncodedAsTheDriverDoes(t *testing.T) {
	t.Parallel()
	columns := []Column{{"id", "bytea"}, {"amount", "bigint"}, {"name", "text"}}
	args := arrays(columns, [][]any{{[]byte{1, 2}, int64(-5), "ação"}, {[]byte{}, int64(1 << 40), ""}})
	lists := []any{[][]byte{{1, 2}, {}}, []int64{-5, 1 << 40}, []string{"ação", ""}}
	size := 0
	for i, oid := range []uint32{pgtype.ByteaArrayOID, pgtype.Int8ArrayOID, pgtype.TextArrayOID} {
		want, err := pgtype.NewMap().Encode(oid, pgtype.BinaryFormatCode, lists[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := arrayPlan{}.Encode(args[i], []byte{})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x (%v)", columns[i].Kind, got, want, err)
		}
		size += elementHeader + len(want) // its length as a parameter
	}
	if grow := args[0].(array).grow; grow != size {
		t.Errorf("the buffer grows by %d bytes, want %d", grow, size)
	}
}
