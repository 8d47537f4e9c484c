package payment

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// ID identifies a merchant, an order, a receipt: a UUID (RFC 9562), of version 7 if
// this program generated it, so that ids sort by creation time.
type ID [16]byte

// ErrID means that a text is not a UUID in its canonical form, or that it is the zero id.
var ErrID = errors.New("payment: not a UUID")

// idText is the length of a UUID in its canonical text form.
const idText = 36

// ParseID reads the canonical form of a UUID, in either case; else ErrID. The zero id is
// ErrID too: no order has it, and a filter with it would select every order.
func ParseID(s string) (ID, error) {
	id, err := parseID(s)
	if err == nil && id.IsZero() {
		return ID{}, ErrID
	}
	return id, err
}

func parseID(s string) (ID, error) {
	var id ID
	if len(s) != idText || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, ErrID
	}
	var digits [32]byte
	n := 0
	for i := range len(s) {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		digits[n] = s[i]
		n++
	}
	if _, err := hex.Decode(id[:], digits[:]); err != nil {
		return ID{}, ErrID
	}
	return id, nil
}

// IDFromBytes returns the id stored as b; else ErrID.
func IDFromBytes(b []byte) (ID, error) {
	if len(b) != len(ID{}) {
		return ID{}, ErrID
	}
	return ID(b), nil
}

// String is the canonical lower-case form.
func (id ID) String() string {
	var buf [idText]byte
	hex.Encode(buf[0:8], id[0:4])
	buf[8] = '-'
	hex.Encode(buf[9:13], id[4:6])
	buf[13] = '-'
	hex.Encode(buf[14:18], id[6:8])
	buf[18] = '-'
	hex.Encode(buf[19:23], id[8:10])
	buf[23] = '-'
	hex.Encode(buf[24:36], id[10:16])
	return string(buf[:])
}

// MarshalText is String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote, also of the zero id; else ErrID.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = parseID(string(text))
	return err
}

// IsZero reports whether id is unset. The zero id is also the platform itself,
// which owns money that matches no merchant.
func (id ID) IsZero() bool { return id == ID{} }

// Time is the creation time of an id of version 7, to the millisecond.
func (id ID) Time() time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

// CompareIDs orders ids as the database does.
func CompareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }

// Before is the id that precedes id.
func (id ID) Before() ID {
	for i := len(id) - 1; i >= 0; i-- {
		id[i]--
		if id[i] != 0xff {
			break
		}
	}
	return id
}

// MinIDAt is the smallest version 7 id of the millisecond of t, for ranges of
// creation times.
func MinIDAt(t time.Time) ID {
	ms := uint64(t.UnixMilli())
	return ID{
		byte(ms >> 40), byte(ms >> 32), byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms),
		0x70, 0, 0x80,
	}
}
