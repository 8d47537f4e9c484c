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
	for _, epoch := range []int64{1, 41, 42} {
		if err := m.Write(epoch); err != nil {
			t.Fatal(err)
		}
		reads(epoch)
	}
	m.installation = payment.ID{2} // the folder of another database
	reads(0)

	complete := m.installation.String() + " 1234\n"
	damaged := []string{m.installation.String() + " garbage\n", m.installation.String() + " -1\n", complete + complete, "garbage"}
	for n := range len(complete) { // partly written, as on a full disk
		damaged = append(damaged, complete[:n])
	}
	for _, text := range damaged {
		if err := os.WriteFile(filepath.Join(m.path, markerFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if epoch, err := m.Read(); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q reads as %d, %v", text, epoch, err)
		}
	}
}

// A key is written once: overwriting it would make the sealed data unreadable.
func TestKeepKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "master.key")
	if err := keepKey(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := keepKey(path, []byte("second")); err == nil {
		t.Error("a key was overwritten")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "Zmlyc3Q=\n" {
		t.Errorf("the file contains %q, %v", text, err)
	}
}
