package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/payment"
)

func TestMarker(t *testing.T) {
	t.Parallel()
	m := &marker{path: t.TempDir(), installation: payment.ID{1}}
	reads := func(what string, want cluster.Mark) {
		t.Helper()
		if got, err := m.Read(); got != want || err != nil {
			t.Errorf("%q reads as %+v, %v, want %+v", what, got, err, want)
		}
	}
	reads("no file", cluster.Mark{})
	for _, mark := range []cluster.Mark{{Epoch: 1}, {Epoch: 41, Stop: "a1"}, {Epoch: 42}} {
		if err := m.Write(mark); err != nil {
			t.Fatal(err)
		}
		reads("the last one", mark)
	}
	m.installation = payment.ID{2}
	reads("that of another database", cluster.Mark{})

	complete := m.installation.String() + " 1234 a1\n"
	damaged := []string{m.installation.String() + " garbage\n", m.installation.String() + " -1\n", complete + complete, "garbage", m.installation.String() + " 1 a1 b2\n"}
	for n := range len(complete) { // partly written, as on a full disk
		damaged = append(damaged, complete[:n])
	}
	for _, text := range damaged { // the next start is cold
		if err := os.WriteFile(filepath.Join(m.path, markerFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		reads(text, cluster.Mark{})
	}
}

// A file by a name that others know is replaced; what a link by that name points to is not written.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other, link := filepath.Join(folder, "other"), filepath.Join(folder, "known.new")
	if err := errors.Join(os.WriteFile(other, []byte("kept"), 0o600), os.Symlink(other, link)); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(filepath.Join(folder, "known"), "text", true); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"other": "kept", "known": "text"} {
		info, err := os.Lstat(filepath.Join(folder, name))
		if err != nil || !info.Mode().IsRegular() {
			t.Fatalf("%s is %v, %v", name, info, err)
		}
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(text) != want {
			t.Errorf("%s has %q, %v, want %q", name, text, err, want)
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
