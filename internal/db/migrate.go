package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrate brings the schema of a database up to o.Migrations, and then runs
// after, for example to insert the first rows. It returns the versions that it
// applied.
//
// A migration is SQL with two placeholders: {{bytewise}} makes a text column
// compare by bytes on every engine, and {{narrow}} ends the definition of a table
// of small rows, which SQLite then stores in the order of its key.
func Migrate(ctx context.Context, o Options, after func(context.Context, *sql.DB) error) (applied []int64, err error) {
	d, err := connect(ctx, o)
	defer func() { err = errors.Join(err, d.Close()) }()
	if err != nil {
		return nil, err
	}
	if d.sqlite != nil { // goose needs the pool, whose one connection is the writer's
		if err := d.sqlite.close(); err != nil {
			return nil, err
		}
	}
	p, err := d.provider(o.Migrations)
	if err != nil {
		return nil, fmt.Errorf("db: migrations: %w", err)
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("db: schema version: %w", err)
	}
	if err := compareSchema(current, p.ListSources()[0].Version, target); err != nil {
		return nil, err
	}
	done, err := p.Up(ctx)
	for _, v := range done {
		applied = append(applied, v.Source.Version)
	}
	if err != nil {
		return applied, fmt.Errorf("db: migrate: %w", err)
	}
	if d.sqlite != nil {
		if err := d.setStatistics(ctx); err != nil {
			return applied, fmt.Errorf("db: statistics: %w", err)
		}
	}
	return applied, after(ctx, d.writer)
}

// filled are migrations with the engine's words in the placeholders.
func (d *DB) filled(migrations fs.FS) (fs.FS, error) {
	files := fstest.MapFS{}
	entries, err := fs.ReadDir(migrations, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(migrations, e.Name())
		if err != nil {
			return nil, err
		}
		files[e.Name()] = &fstest.MapFile{Data: []byte(d.dialect.migration(string(text)))}
	}
	return files, nil
}

func (d *DB) provider(migrations fs.FS) (*goose.Provider, error) {
	files, err := d.filled(migrations)
	if err != nil {
		return nil, err
	}
	if d.sqlite != nil {
		return goose.NewProvider(goose.DialectSQLite3, d.writer, files)
	}
	// Nodes that start together wait for the one that migrates.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, d.writer, files, goose.WithSessionLocker(locker))
}

// compareSchema rejects a schema that this program cannot use: that of a newer
// program, or one from before the first migration. Until v0.1.0 the migrations
// are one file, which gets a new number when it changes.
func compareSchema(current, first, last int64) error {
	switch {
	case current > last:
		return fmt.Errorf("%w: the database has version %d, this program supports %d: run a newer porteira", ErrSchema, current, last)
	case current != 0 && current < first:
		return fmt.Errorf("%w: an older development version of porteira made this database, and there are no upgrades before v0.1.0: "+
			"delete it (for porteira dev: the data folder) or name a new one", ErrSchema)
	}
	return nil
}

// checkSchema compares the schema's version with the migrations, and changes
// nothing.
func (d *DB) checkSchema(ctx context.Context, migrations fs.FS) error {
	files, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return err
	}
	versions := make([]int64, len(files))
	for i, name := range files {
		if versions[i], err = goose.NumericComponent(name); err != nil {
			return err
		}
	}
	first, last := slices.Min(versions), slices.Max(versions)
	var current sql.NullInt64
	err = d.QueryRow(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&current)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the database has no schema yet: run porteira migrate", ErrSchema)
	case current.Int64 == 0 || current.Int64 >= first && current.Int64 < last:
		return fmt.Errorf("%w: the database has version %d, this program wants %d: run porteira migrate", ErrSchema, current.Int64, last)
	}
	return compareSchema(current.Int64, first, last)
}
