package db_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

func TestMakeFolder(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	path := filepath.Join(base, "a", "b", "c")
	for range 2 { // the second call finds it
		if err := db.MakeFolder(path); err != nil {
			t.Fatal(err)
		}
	}
	for at := path; at != base; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v; want a folder for its owner only", at, info.Mode(), err)
		}
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.MakeFolder(filepath.Join(file, "below")); err == nil {
		t.Error("a folder was made below a file")
	}
}
