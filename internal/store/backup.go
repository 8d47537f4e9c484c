package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of an SQLite database, as of now, to a path where no
// file is, beside whatever else goes on. The copy is whole and on disk, or not
// there. PostgreSQL has tools of its own.
//
// The copy knows that it is one: its beat stands before every other, so that a
// gateway which is started on it asks about payouts before it sends them, even
// where nothing outside the database tells how far that had come.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	if s.solo == nil {
		return errors.New("store: back PostgreSQL up with its own tools, such as pg_dump")
	}
	beside := path + ".new"
	// SQLite writes into an empty file, which must be for its owner alone.
	f, err := os.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("store: back up: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close(), os.Remove(beside)); err != nil {
			err = fmt.Errorf("store: back up: %w", err)
		}
	}()
	if err := s.copyTo(ctx, beside); err != nil {
		return err
	}
	// SQLite does not sync what VACUUM INTO writes (sqlite.org/lang_vacuum.html).
	if err := errors.Join(f.Sync(), os.Link(beside, path)); err != nil { // Link fails where there is one
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// copyTo fills an empty file with a copy of the database.
func (s *Store) copyTo(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", sqliteDSN(s.path, false))
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", path)
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	made, err := sql.Open("sqlite", copyDSN(path))
	if err != nil {
		return err
	}
	_, err = made.ExecContext(ctx, "UPDATE installation SET beat = $1", beatOfCopy)
	return errors.Join(err, made.Close())
}

// beatOfCopy stands before the beat of every database, and before that which is
// read outside where none was ever kept.
const beatOfCopy = -1
