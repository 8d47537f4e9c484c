package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"time"
)

// trace is a digest of the lines of a run: the same seed gives the same bytes.
type trace struct {
	digest hash.Hash
	now    func() time.Duration
	write  func(line string)
	buffer []byte
}

func newTrace(now func() time.Duration, write func(string)) trace {
	return trace{digest: sha256.New(), now: now, write: write}
}

// linef adds a line.
func (t *trace) linef(format string, args ...any) {
	t.buffer = fmt.Appendf(t.buffer[:0], "%14.6f ", t.now().Seconds())
	t.buffer = fmt.Appendf(t.buffer, format, args...)
	t.buffer = append(t.buffer, '\n')
	_, _ = t.digest.Write(t.buffer) // a hash never fails
	if t.write != nil {
		t.write(string(t.buffer[:len(t.buffer)-1]))
	}
}

func (t *trace) sum() string { return hex.EncodeToString(t.digest.Sum(nil)) }
