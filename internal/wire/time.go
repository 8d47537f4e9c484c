package wire

import (
	"time"

	"github.com/porteira/porteira/internal/payment"
)

// Timestamp is a time in [payment.TimeLayout]; "" is omitted.
type Timestamp string

// TimestampOf formats t; the zero time is "".
func TimestampOf(t time.Time) Timestamp {
	if t.IsZero() {
		return ""
	}
	t = t.UTC()
	var buf [len(payment.TimeLayout)]byte
	b := t.AppendFormat(buf[:0], time.RFC3339) // several times faster than another layout
	ms := t.Nanosecond() / int(time.Millisecond)
	return Timestamp(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}
