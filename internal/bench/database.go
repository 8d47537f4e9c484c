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

// databaseTimeout bounds one statement.
const databaseTimeout = 30 * time.Second

// database is the run's own database on a PostgreSQL server.
type database struct {
	clock     env.Clock
	serverURL string // from the operator
	name      string
	url       string
}

// createDatabase creates a database for the run: the load must never be written to
// a database with real orders.
func createDatabase(ctx context.Context, w env.Env, admin string) (*database, error) {
	var token [6]byte
	w.Random.Read(token[:])
	d := &database{clock: w.Clock, serverURL: admin, name: "porteira_bench_" + hex.EncodeToString(token[:])}
	u, err := url.Parse(admin)
	if err != nil {
		return nil, errors.New("bench: invalid database URL") // without its text, which may contain a password
	}
	u.Path = "/" + d.name
	q := u.Query()
	for _, name := range []string{"dbname", "database"} { // they override the path
		q.Del(name)
	}
	u.RawQuery = q.Encode()
	d.url = u.String()
	if err := d.exec(ctx, "CREATE DATABASE "+d.name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, fmt.Errorf("bench: create a database (the URL's user needs the privilege): %w", err)
	}
	if err := d.checkName(ctx); err != nil {
		return nil, errors.Join(err, d.drop(ctx))
	}
	return d, nil
}

// checkName checks that the gateway's URL connects to the run's own database.
func (d *database) checkName(ctx context.Context) error {
	own := &database{clock: d.clock, serverURL: d.url}
	return own.connect(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var name string
		err := c.QueryRow(ctx, "SELECT current_database()").Scan(&name)
		if err == nil && name != d.name {
			err = fmt.Errorf("bench: the URL connects to the database %s instead of the run's own: write it as postgres://user@host/name", name)
		}
		return err
	})
}

func (d *database) exec(ctx context.Context, text string) error {
	return d.connect(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, text)
		return err
	})
}

// connect runs work with a connection.
func (d *database) connect(ctx context.Context, work func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := d.clock.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	c, err := pgx.Connect(ctx, d.serverURL)
	if err != nil {
		return err
	}
	return errors.Join(work(ctx, c), c.Close(ctx))
}

// written is the number of bytes of write-ahead log that the server has written since
// its creation; unknown if the query fails.
func (d *database) written(ctx context.Context) int64 {
	n := int64(unknown)
	_ = d.connect(ctx, func(ctx context.Context, c *pgx.Conn) error {
		var at int64
		err := c.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&at)
		if err == nil {
			n = at
		}
		return err
	})
	return n
}

// drop removes the database.
func (d *database) drop(ctx context.Context) error {
	if err := d.exec(context.WithoutCancel(ctx), "DROP DATABASE "+d.name+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("bench: drop the database %s: %w", d.name, err)
	}
	return nil
}
