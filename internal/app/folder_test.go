package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/payment"
)

func TestMarker(t *testing.T) {
	t.Parallel()
	m := &marker{path: t.TempDir(), installation: payment.ID{1}}
	reads := func(want int64) {
		t.Helper()
		if got, err := m.Read(); got != want || err != nil {
			t.Errorf("reads %d, %v, want %d", got, err, want)
		}
	}
	reads(0)
	for _, beat := range []int64{1, 41, 42} {
		if err := m.Write(beat); err != nil {
			t.Fatal(err)
		}
		reads(beat)
	}
	m.installation = payment.ID{2} // the folder of another database
	reads(0)

	whole := m.installation.String() + " 1234\n"
	damaged := []string{m.installation.String() + " rubbish\n", m.installation.String() + " -1\n", whole + whole, "rubbish"}
	for n := range len(whole) { // half a file, such as a full disk leaves
		damaged = append(damaged, whole[:n])
	}
	for _, text := range damaged {
		if err := os.WriteFile(filepath.Join(m.path, markerFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if beat, err := m.Read(); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q reads as %d, %v", text, beat, err)
		}
	}
}

// A key is written once: whoever comes second must not take the first one's
// data away.
func TestKeepKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := keepKey(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := keepKey(path, []byte("second")); err == nil {
		t.Error("a key was written over")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "Zmlyc3Q=\n" {
		t.Errorf("holds %q, %v", text, err)
	}
}
