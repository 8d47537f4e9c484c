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
	return Timestamp(t.UTC().Format(payment.TimeLayout))
}
