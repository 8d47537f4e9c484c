package simulate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"time"
)

// trace is what happened, line by line, and a digest of it: the same seed gives
// the same bytes.
type trace struct {
	digest hash.Hash
	now    func() time.Duration
	write  func(line string)
	buffer []byte
	lines  int
}

func newTrace(now func() time.Duration, write func(string)) trace {
	return trace{digest: sha256.New(), now: now, write: write}
}

// linef adds a line.
func (t *trace) linef(format string, args ...any) {
	t.buffer = fmt.Appendf(t.buffer[:0], "%14.6f ", t.now().Seconds())
	t.buffer = fmt.Appendf(t.buffer, format, args...)
	t.buffer = append(t.buffer, '\n')
	_, _ = t.digest.Write(t.buffer) // a hash takes everything
	t.lines++
	if t.write != nil {
		t.write(string(t.buffer[:len(t.buffer)-1]))
	}
}

func (t *trace) sum() string { return hex.EncodeToString(t.digest.Sum(nil)) }
