package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Backup writes a copy of an SQLite database, as of now, to a path that does not
// exist, while a gateway may be running. mark may change the copy before it is
// complete. The path appears only when the copy is complete and on disk.
// PostgreSQL has its own tools.
func (d *DB) Backup(ctx context.Context, path string, mark func(context.Context, *sql.DB) error) (err error) {
	if d.sqlite == nil {
		return errors.New("db: back PostgreSQL up with its own tools, such as pg_dump")
	}
	temporary := path + ".new"
	// SQLite writes into an empty file, which only its owner may read.
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("db: backup: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close(), os.Remove(temporary)); err != nil {
			err = fmt.Errorf("db: backup: %w", err)
		}
	}()
	if err := d.copyTo(ctx, temporary, mark); err != nil {
		return err
	}
	// SQLite does not sync what VACUUM INTO writes (sqlite.org/lang_vacuum.html).
	if err := errors.Join(f.Sync(), os.Link(temporary, path)); err != nil { // Link fails if path exists
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// copyTo fills an empty file with a copy of the database.
func (d *DB) copyTo(ctx context.Context, path string, mark func(context.Context, *sql.DB) error) error {
	from, err := sql.Open("sqlite", sqliteDSN(d.path, false))
	if err != nil {
		return err
	}
	_, err = from.ExecContext(ctx, "VACUUM INTO $1", path)
	if err = errors.Join(err, from.Close()); err != nil {
		return err
	}
	made, err := sql.Open("sqlite", copyDSN(path))
	if err != nil {
		return err
	}
	return errors.Join(mark(ctx, made), made.Close())
}
