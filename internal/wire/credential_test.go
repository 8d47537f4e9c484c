package wire

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/problem"
)

func TestDecodeRotation(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]time.Duration{
		"": 24 * time.Hour, "{}": 24 * time.Hour, `{"overlapSeconds":null}`: 24 * time.Hour, `{"overlapSeconds":0}`: 0, `{"overlapSeconds":604800}`: 7 * 24 * time.Hour,
	} {
		if got, err := DecodeRotation([]byte(body)); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", body, got, err, want)
		}
	}
	for body, want := range map[string]problem.Kind{
		`{"overlapSeconds":604801}`: problem.ValidationFailed, `{"overlapSeconds":-1}`: problem.ValidationFailed, `{"overlapSeconds":"1"}`: problem.ValidationFailed,
		`{"overlapSeconds":1e2}`: problem.ValidationFailed, `{"overlap":1}`: problem.UnknownField, `{"overlapSeconds":1,"overlapSeconds":2}`: problem.DuplicateField, "[": problem.MalformedJSON,
	} {
		if _, err := DecodeRotation([]byte(body)); err == nil || err.Kind != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

// FuzzDecodeRotation checks that an accepted overlap is within its bounds.
func FuzzDecodeRotation(f *testing.F) {
	for _, body := range append(hostileBodies(`{"overlapSeconds":1}`), "", `{"overlapSeconds":604800}`, `{"overlapSeconds":-9223372036854775808}`) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if overlap, err := DecodeRotation(body); err == nil && (overlap < 0 || overlap > 7*24*time.Hour) {
			t.Errorf("accepted %v", overlap)
		}
	})
}
