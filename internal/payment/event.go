package payment

import (
	"errors"
	"strconv"
	"time"
)

// TimeLayout is the form of times in events and in the API: ISO 8601, UTC,
// milliseconds.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Event reports one change of one order to its merchant. Events are numbered
// without gaps per merchant. Body is frozen: every delivery carries the same
// bytes.
type Event struct {
	Merchant  ID
	Number    int64 // from 1
	ID        ID
	Type      EventType
	Subject   ID // the pay-in, payout or refund
	Version   int64
	CreatedAt time.Time
	Body      []byte
}

// ErrEventData means that the data of an event is not a JSON object.
var ErrEventData = errors.New("payment: event data is not a JSON object")

// Envelope is the body of an event. data is the order as the API shows it: a
// JSON object, else ErrEventData; only its outer braces are checked here. The
// other members need no escaping.
func (e *Event) Envelope(data []byte) ([]byte, error) {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return nil, ErrEventData
	}
	const frame = `{"id":"evt_","type":"","createdAt":"","version":,"data":}`
	const fieldsMax = 32 + 32 + len(TimeLayout) + 20
	body := make([]byte, 0, len(frame)+fieldsMax+len(data))
	body = append(body, `{"id":"`...)
	body = append(body, PublicEventID(e.ID)...)
	body = append(body, `","type":"`...)
	body = append(body, e.Type...)
	body = append(body, `","createdAt":"`...)
	body = e.CreatedAt.UTC().AppendFormat(body, TimeLayout)
	body = append(body, `","version":`...)
	body = strconv.AppendInt(body, e.Version, 10)
	body = append(body, `,"data":`...)
	body = append(body, data...)
	return append(body, '}'), nil
}

// eventIDPrefix begins every public event id.
const eventIDPrefix = "evt_"

// PublicEventID is an event's id as merchants see it: evt_ and 32 hex digits.
func PublicEventID(id ID) string {
	text := id.String()
	return eventIDPrefix + text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
}

// ParseEventID reads what PublicEventID wrote; else ErrID.
func ParseEventID(s string) (ID, error) {
	if len(s) != len(eventIDPrefix)+32 || s[:len(eventIDPrefix)] != eventIDPrefix {
		return ID{}, ErrID
	}
	h := s[len(eventIDPrefix):]
	return ParseID(h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:])
}
