package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/porteira/porteira/internal/payment"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// ErrSchema says that the database's schema is not the one of this program.
var ErrSchema = errors.New("store: schema")

// migrations are the embedded files with the engine's words filled in.
func (s *Store) migrations() (fs.FS, error) {
	files := fstest.MapFS{}
	entries, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(migrationFiles, "migrations/"+e.Name())
		if err != nil {
			return nil, err
		}
		files[e.Name()] = &fstest.MapFile{Data: []byte(s.dialect.migration(string(text)))}
	}
	return files, nil
}

func (s *Store) provider() (*goose.Provider, error) {
	files, err := s.migrations()
	if err != nil {
		return nil, err
	}
	if s.solo != nil {
		return goose.NewProvider(goose.DialectSQLite3, s.writer, files)
	}
	// Nodes that start together wait for the one that migrates.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, s.writer, files, goose.WithSessionLocker(locker))
}

// Migrate brings the schema of a database up to this program's, and names the
// installation if it has no name yet. It returns the versions that it applied.
func Migrate(ctx context.Context, o Options) (applied []int64, err error) {
	s := &Store{keys: o.Keys, env: o.Env, log: o.Log}
	defer func() { err = errors.Join(err, s.Close()) }()
	if IsPostgres(o.Database) {
		err = s.openPostgres(ctx, o)
	} else {
		err = s.openSQLite(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	if s.solo != nil { // goose wants the pool, whose one connection we hold
		if err := s.solo.close(); err != nil {
			return nil, err
		}
	}
	p, err := s.provider()
	if err != nil {
		return nil, fmt.Errorf("store: migrations: %w", err)
	}
	if err := s.refuseNewer(ctx, p); err != nil {
		return nil, err
	}
	done, err := p.Up(ctx)
	for _, d := range done {
		applied = append(applied, d.Source.Version)
	}
	if err != nil {
		return applied, fmt.Errorf("store: migrate: %w", err)
	}
	if s.solo != nil {
		if err := s.describe(ctx); err != nil {
			return applied, err
		}
	}
	return applied, s.found(ctx, o)
}

// found names a new installation. Where the database was new and the caller
// knows the name from outside, that name stays.
func (s *Store) found(ctx context.Context, o Options) error {
	now := o.Env.Clock.Now()
	id := payment.ID(o.Env.IDs.NewID(now))
	_, err := s.writer.ExecContext(ctx, `INSERT INTO installation (singleton, id, beat, restored_at, created_at)
		VALUES (1, $1, 1, 0, $2) ON CONFLICT DO NOTHING`, id[:], micros(now))
	if err != nil {
		return fmt.Errorf("store: name the installation: %w", err)
	}
	// The platform itself, with the zero id: it keeps money whose merchant
	// cannot be found.
	_, err = s.writer.ExecContext(ctx, `INSERT INTO merchants (id, number, name, city, processor, webhook_secret, return_hosts, closed_at, created_at)
		VALUES ($1, 0, 'platform', '', '', $2, '', $3, $3) ON CONFLICT DO NOTHING`, make([]byte, 16), []byte{}, micros(now))
	if err != nil {
		return fmt.Errorf("store: name the platform: %w", err)
	}
	return nil
}

func (s *Store) refuseNewer(ctx context.Context, p *goose.Provider) error {
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("store: schema version: %w", err)
	}
	if current > target {
		return fmt.Errorf("%w: the database has version %d, this program knows %d: run a newer porteira", ErrSchema, current, target)
	}
	return nil
}

// checkSchema compares the schema's version without touching it.
func (s *Store) checkSchema(ctx context.Context) error {
	entries, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	target := int64(len(entries))
	var current sql.NullInt64
	err = s.queryRow(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&current)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the database has none yet: run porteira migrate", ErrSchema)
	case current.Int64 > target:
		return fmt.Errorf("%w: the database has version %d, this program knows %d: run a newer porteira", ErrSchema, current.Int64, target)
	case current.Int64 < target:
		return fmt.Errorf("%w: the database has version %d, this program wants %d: run porteira migrate", ErrSchema, current.Int64, target)
	}
	return nil
}

// identify reads who this installation is.
func (s *Store) identify(ctx context.Context) error {
	var id []byte
	if err := s.queryRow(ctx, "SELECT id FROM installation").Scan(&id); err != nil {
		return fmt.Errorf("store: installation: %w", err)
	}
	var err error
	s.installation, err = payment.IDFromBytes(id)
	return err
}
