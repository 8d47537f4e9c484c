package httpapi

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net/http"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// A cursor is version, position and a keyed hash over both, the list and the
// merchant, in base64url: nobody can make one, or use it elsewhere.
const (
	cursorVersion = 1
	cursorMAC     = 8
)

func (a *API) fingerprintMAC(data []byte) [32]byte { return a.keys.MAC(store.PurposeFingerprint, data) }

func (a *API) cursorHash(c *call, position []byte) []byte {
	data := append([]byte("porteira/cursor\x00"), c.merchant.ID[:]...)
	data = append(data, c.route.path...)
	data = append(data, 0, cursorVersion)
	sum := a.fingerprintMAC(append(data, position...))
	return sum[:cursorMAC]
}

// cursor makes the text that leads on from position.
func (a *API) cursor(c *call, position []byte) string {
	raw := append([]byte{cursorVersion}, position...)
	return base64.RawURLEncoding.EncodeToString(append(raw, a.cursorHash(c, position)...))
}

// position reads a cursor of so many bytes; ok is false where there is none.
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
	q.fault("cursor", payment.CodeInvalidFormat, "must be the nextCursor of a page of this list")
	return nil, false
}

// cursorID is the order that the page before ended with; zero for the first page.
func (a *API) cursorID(c *call, q *query) payment.ID {
	position, ok := a.position(c, q, len(payment.ID{}))
	if !ok {
		return payment.ID{}
	}
	return payment.ID(position)
}

// cursorNumber is the number that the page before ended with; 0 for the first page.
func (a *API) cursorNumber(c *call, q *query) int64 {
	position, ok := a.position(c, q, 8)
	if !ok {
		return 0
	}
	return int64(binary.BigEndian.Uint64(position))
}

// writePage answers with a list that may have one entry more than its page.
func writePage[T any](a *API, c *call, list []T, limit int, view func(*T) (payment.ID, []byte, error)) error {
	more := len(list) > limit
	if more {
		list = list[:limit]
	}
	body := []byte(`{"data":[`)
	next := "null"
	for i := range list {
		id, entry, err := view(&list[i])
		if err != nil {
			return err
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, entry...)
		if more && i == limit-1 {
			next = `"` + a.cursor(c, id[:]) + `"`
		}
	}
	body = append(body, `],"nextCursor":`+next+`}`...)
	return c.json(http.StatusOK, body)
}
