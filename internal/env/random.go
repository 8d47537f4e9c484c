package env

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"sync"
	"time"
)

// Random is a source of randomness. The system's is suitable for secrets.
type Random interface {
	// Read fills p. It cannot fail: without system randomness the program ends, as
	// crypto/rand documents.
	Read(p []byte)
	// Int64N returns a uniform random number in [0, n); n must be positive.
	Int64N(n int64) int64
	// Jitter returns d plus or minus up to percent per cent, uniformly.
	Jitter(d time.Duration, percent int) time.Duration
}

// SystemRandom returns the operating system's randomness.
func SystemRandom() Random { return randomness{systemSource{}} }

// SeededRandom returns a ChaCha8 stream that is the same for the same seed:
// for tests and simulation only.
func SeededRandom(seed uint64) Random {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return randomness{&seededSource{stream: mathrand.NewChaCha8(key)}}
}

// source yields random bytes and, for math/rand, words.
type source interface {
	Read(p []byte)
	Uint64() uint64
}

type randomness struct{ source }

func (r randomness) Int64N(n int64) int64 {
	return mathrand.New(r.source).Int64N(n) // unbiased
}

func (r randomness) Jitter(d time.Duration, percent int) time.Duration {
	// Dividing first prevents overflow; the error is below a microsecond.
	span := int64(d) / 100 * int64(percent)
	if span <= 0 {
		return d
	}
	return d + time.Duration(r.Int64N(2*span+1)-span)
}

type systemSource struct{}

func (systemSource) Read(p []byte) { _, _ = rand.Read(p) } // never fails

func (s systemSource) Uint64() uint64 {
	var word [8]byte
	s.Read(word[:])
	return binary.LittleEndian.Uint64(word[:])
}

type seededSource struct {
	mu     sync.Mutex
	stream *mathrand.ChaCha8
}

func (s *seededSource) Read(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.stream.Read(p) // documented never to fail
}

func (s *seededSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Uint64()
}
