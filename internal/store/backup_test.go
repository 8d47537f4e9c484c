package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/store/storetest"
)

func TestBackup(t *testing.T) {
	t.Parallel()
	o := storetest.Prepare(t, "sqlite", env.System(env.OutboundOptions{}))
	s := storetest.Open(t, o)
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.SetSetting(t.Context(), "kept", "yes") }); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "copy of today.db")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
		t.Errorf("beside the copy there is more: %v, %v", list, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v; want a file for its owner only", info.Mode(), err)
	}
	o.Database = path
	copied := storetest.Open(t, o)
	if value, err := copied.Setting(t.Context(), "kept"); value != "yes" || err != nil {
		t.Errorf("the copy says %q, %v", value, err)
	}
	mine, err1 := s.ReadInstallation(t.Context())
	its, err2 := copied.ReadInstallation(t.Context())
	if err1 != nil || err2 != nil || its.ID != mine.ID || its.Beat >= 0 || mine.Beat < 0 {
		t.Errorf("the copy is %+v, %v, of %+v, %v", its, err2, mine, err1)
	}

	// What is there is not written over, and a copy that failed leaves nothing.
	taken := filepath.Join(folder, "taken.db")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{taken, filepath.Join(folder, "nowhere", "copy.db")} {
		if err := s.Backup(t.Context(), to); err == nil {
			t.Errorf("backed up to %s", to)
		}
	}
	if text, err := os.ReadFile(taken); string(text) != "mine" || err != nil {
		t.Errorf("what was there is %q, %v", text, err)
	}
	if list, err := filepath.Glob(filepath.Join(folder, "*.new")); len(list) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

func TestPostgresBackupIsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Prepare(t, "postgres", env.System(env.OutboundOptions{})))
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy")); err == nil || !strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("%v", err)
	}
}
