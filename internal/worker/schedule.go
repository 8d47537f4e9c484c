package worker

import (
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// After is the nth wait of a schedule, from 0; its last one repeats.
func After(schedule []time.Duration, n int) time.Duration {
	return schedule[min(max(n, 0), len(schedule)-1)]
}

// Jitter is ±10 %, in thousandths, chosen before the transaction, so that rows that failed
// together do not become due together.
type Jitter int64

// NewJitter chooses a jitter.
func NewJitter(r env.Random) Jitter { return Jitter(r.Int64N(201) - 100) }

// Of is a wait with the jitter.
func (j Jitter) Of(d time.Duration) time.Duration { return d + d/1000*time.Duration(j) }

// textMax is the length of an external text in a column, in bytes.
const textMax = 500

// ErrorText is an operator's short text of an error, fit for a column; "" if there is none.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return Short(err.Error())
}

// Short is the beginning of an external text in a form that every database accepts:
// complete characters, and no NUL.
func Short(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), textMax)], "\x00", "")
	return strings.ToValidUTF8(text, "")
}
