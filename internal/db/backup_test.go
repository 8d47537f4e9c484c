package db_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/db"
)

// mark changes a copy before it is complete.
func mark(ctx context.Context, to *sql.DB) error {
	_, err := to.ExecContext(ctx, "INSERT INTO notes (name, value) VALUES ('mark', 'copy')")
	return err
}

func TestBackup(t *testing.T) {
	t.Parallel()
	o := prepare(t, "sqlite", systemEnv())
	d := open(t, o)
	must(t, writeNote(t, d, "kept", "yes"))
	folder := t.TempDir()
	path := filepath.Join(folder, "copy of today.db")
	must(t, d.Backup(t.Context(), path, mark))
	if list, err := os.ReadDir(folder); err != nil || len(list) != 1 {
		t.Errorf("the folder has more than the copy: %v, %v", list, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v; want a file for its owner only", info.Mode(), err)
	}
	o.Database = path
	copied := open(t, o)
	wantNote(t, copied, "kept", "yes")
	wantNote(t, copied, "mark", "copy")
	wantNote(t, d, "mark", "")
}

// A backup replaces nothing, and a failed one leaves nothing behind.
func TestFailedBackup(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "sqlite", systemEnv()))
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken.db")
	must(t, os.WriteFile(taken, []byte("mine"), 0o600))
	for _, to := range []string{taken, filepath.Join(folder, "nowhere", "copy.db")} {
		if err := d.Backup(t.Context(), to, mark); err == nil {
			t.Errorf("backed up to %s", to)
		}
	}
	errMark := errors.New("mark failed")
	if err := d.Backup(t.Context(), filepath.Join(folder, "unmarked.db"), func(context.Context, *sql.DB) error { return errMark }); !errors.Is(err, errMark) {
		t.Errorf("a copy that could not be marked: %v", err)
	}
	if text, err := os.ReadFile(taken); string(text) != "mine" || err != nil {
		t.Errorf("the existing file became %q, %v", text, err)
	}
	if list, err := filepath.Glob(filepath.Join(folder, "*")); len(list) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// Writes continue during a backup, which contains every commit from before it
// began and no part of a transaction.
func TestBackupBesideWriters(t *testing.T) {
	t.Parallel()
	o := prepare(t, "sqlite", systemEnv())
	d := open(t, o)
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		var err error
		for i := 0; i < 200 && err == nil; i++ {
			n := strings.Repeat("x", i)
			err = d.Write(t.Context(), func(tx *db.Tx) error {
				return errors.Join(setNote(t.Context(), tx, "one", n), setNote(t.Context(), tx, "other", n))
			})
			if i == 10 {
				close(started)
			}
		}
		done <- err
	}()
	<-started
	path := filepath.Join(t.TempDir(), "copy.db")
	must(t, d.Backup(t.Context(), path, mark))
	must(t, <-done)
	o.Database = path
	copied := open(t, o)
	one, err1 := readNote(t, copied, "one")
	other, err2 := readNote(t, copied, "other")
	if err1 != nil || err2 != nil || one != other || len(one) < 10 {
		t.Errorf("the copy has %d and %d, %v, %v", len(one), len(other), err1, err2)
	}
}

func TestPostgresBackupIsRefused(t *testing.T) {
	t.Parallel()
	d := open(t, prepare(t, "postgres", systemEnv()))
	if err := d.Backup(t.Context(), filepath.Join(t.TempDir(), "copy"), mark); err == nil || !strings.Contains(err.Error(), "pg_dump") {
		t.Errorf("%v", err)
	}
}
