package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Backup writes a copy of an SQLite database, as of now, to a path where no
// file is, beside whatever else goes on. PostgreSQL has tools of its own.
func (s *Store) Backup(ctx context.Context, path string) error {
	if s.solo == nil {
		return errors.New("store: back PostgreSQL up with its own tools")
	}
	db, err := sql.Open("sqlite", sqliteDSN(s.path, false))
	if err != nil {
		return fmt.Errorf("store: back up: %w", err)
	}
	if _, err = db.ExecContext(ctx, "VACUUM INTO $1", path); err != nil {
		err = fmt.Errorf("store: back up: %w", err)
	}
	return errors.Join(err, db.Close())
}
