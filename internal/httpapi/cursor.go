package httpapi

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/problem"
	"github.com/porteira/porteira/internal/store"
)

// A cursor is a version, a position and a keyed hash over both, the list and the
// merchant, in base64url: it cannot be forged, or used for another list.
const (
	cursorVersion = 1
	cursorMAC     = 8 // bytes
)

func (a *API) fingerprintMAC(data []byte) [32]byte { return a.keys.MAC(db.PurposeFingerprint, data) }

func (a *API) cursorHash(c *call, position []byte) []byte {
	data := append([]byte("porteira/cursor\x00"), c.merchant.ID[:]...)
	data = append(data, c.route.path...)
	data = append(data, 0, cursorVersion)
	sum := a.fingerprintMAC(append(data, position...))
	return sum[:cursorMAC]
}

// cursor returns the cursor of the page after position.
func (a *API) cursor(c *call, position []byte) string {
	raw := append([]byte{cursorVersion}, position...)
	return base64.RawURLEncoding.EncodeToString(append(raw, a.cursorHash(c, position)...))
}

// position parses the parameter cursor, with a position of size bytes; ok is false if it is
// missing.
func (a *API) position(c *call, q *query, size int) (position []byte, ok bool) {
	text, ok := q.get("cursor")
	if !ok {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil && len(raw) == 1+size+cursorMAC && raw[0] == cursorVersion {
		position = raw[1 : 1+size]
		if subtle.ConstantTimeCompare(raw[1+size:], a.cursorHash(c, position)) == 1 {
			return position, true
		}
	}
	q.fail("cursor", problem.CodeInvalidFormat, "must be the nextCursor of a page of this list")
	return nil, false
}

// cursorID is the last order of the previous page; zero for the first page.
func (a *API) cursorID(c *call, q *query) payment.ID {
	position, ok := a.position(c, q, len(payment.ID{}))
	if !ok {
		return payment.ID{}
	}
	return payment.ID(position)
}

// cursorEvent is the position after the previous page; zero for the first page.
func (a *API) cursorEvent(c *call, q *query) store.EventPosition {
	position, ok := a.position(c, q, 16)
	if !ok {
		return store.EventPosition{}
	}
	return store.EventPosition{History: int64(binary.BigEndian.Uint64(position)), Number: int64(binary.BigEndian.Uint64(position[8:]))}
}
