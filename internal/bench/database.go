package bench

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/env"
)

// databaseTimeout bounds one statement of the run's own.
const databaseTimeout = 30 * time.Second

// database is one of the run's own on a PostgreSQL server.
type database struct {
	clock env.Clock
	admin string // URL that the operator gave
	name  string
	url   string
}

// createDatabase makes a database that is dropped with the run: a load must
// never end up among orders that somebody needs.
func createDatabase(ctx context.Context, w env.Env, admin string) (*database, error) {
	var token [6]byte
	w.Random.Read(token[:])
	d := &database{clock: w.Clock, admin: admin, name: "porteira_bench_" + hex.EncodeToString(token[:])}
	u, err := url.Parse(admin)
	if err != nil {
		return nil, errors.New("bench: the database's URL cannot be read") // its text may hold a password
	}
	u.Path = "/" + d.name
	q := u.Query()
	for _, name := range []string{"dbname", "database"} { // they count for more than the path
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	d.url = u.String()
	if err := d.exec(ctx, "CREATE DATABASE "+d.name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, fmt.Errorf("bench: make a database of the run's own, which the user of the URL must be allowed to: %w", err)
	}
	if err := d.arrive(ctx); err != nil {
		return nil, errors.Join(err, d.drop(ctx))
	}
	return d, nil
}

// arrive makes sure that the URL which the gateway is given leads to the run's
// own database, and nowhere else.
func (d *database) arrive(ctx context.Context) error {
	own := &database{clock: d.clock, admin: d.url}
	return own.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var name string
		err := c.QueryRow(ctx, "SELECT current_database()").Scan(&name)
		if err == nil && name != d.name {
			err = fmt.Errorf("bench: the URL leads to the database %s instead of the run's own: write it as postgres://user@host/name", name)
		}
		return err
	})
}

func (d *database) exec(ctx context.Context, text string) error {
	return d.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, text)
		return err
	})
}

// with opens a connection for the time of work.
func (d *database) with(ctx context.Context, work func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := d.clock.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	c, err := pgx.Connect(ctx, d.admin)
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, c), c.Close(ctx))
}

// written is how many bytes of write-ahead log the server has written since it
// was made; unknown where it does not tell.
func (d *database) written(ctx context.Context) int64 {
	n := int64(unknown)
	_ = d.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var at int64
		err := c.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&at)
		if err == nil {
			n = at
		}
		return err
	})
	return n
}

// size is how many bytes the database takes.
func (d *database) size(ctx context.Context) (n int64, err error) {
	err = d.with(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&n)
	})
	return n, err
}

// drop removes the database.
func (d *database) drop(ctx context.Context) error {
	if err := d.exec(context.WithoutCancel(ctx), "DROP DATABASE "+d.name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("bench: drop the database %s: %w", d.name, err)
	}
	return nil
}
