package checker

import (
	"encoding/hex"
	"strings"
)

// rowID is an id as the database stores it.
type rowID [16]byte

const hexDigits = "0123456789abcdef"

// String is the id as the API shows it.
func (id rowID) String() string {
	text := make([]byte, 0, 36)
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text = append(text, '-')
		}
		text = append(text, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(text)
}

// short is the end of an id, long enough to be unique.
func (id rowID) short() string {
	text := id.String()
	return text[len(text)-8:]
}

func (id rowID) isZero() bool { return id == rowID{} }

// rowIDOf is the id of 16 bytes; other lengths are no id, which is zero.
func rowIDOf(b []byte) (id rowID) {
	if len(b) == len(id) {
		copy(id[:], b)
	}
	return id
}

// parseID reads an id as the API shows it.
func parseID(text string) rowID {
	b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
	if err != nil {
		return rowID{}
	}
	return rowIDOf(b)
}

// rowKey is the merchant and the id of a row.
type rowKey struct{ merchant, id rowID }

// publicEventID is the public id of an event.
func publicEventID(id rowID) string { return "evt_" + hex.EncodeToString(id[:]) }
