package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// PostgreSQL pool.
const (
	pgConnections = 16
	pgLanesMax    = 4
	pgIdle        = 5 * time.Minute
)

// IsPostgres reports whether a database is named by a PostgreSQL URL.
func IsPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

func (d *DB) openPostgres(ctx context.Context, o Options) error {
	cfg, err := pgx.ParseConfig(o.Database)
	if err != nil {
		return errors.New("db: the database URL cannot be read") // its text may contain a password
	}
	if cfg.RuntimeParams == nil {
		cfg.RuntimeParams = map[string]string{}
	}
	cfg.RuntimeParams["application_name"] = "porteira"
	cfg.RuntimeParams["lock_timeout"] = "10s"
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = "60s"
	n := o.Connections
	if n == 0 {
		n = pgConnections
	}
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(encodeArrays))
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	pool.SetConnMaxIdleTime(pgIdle)
	d.reader, d.writer = pool, pool
	d.dialect = pgDialect{lanes: max(1, min(pgLanesMax, n/2))}
	if err := d.Ping(ctx); err != nil {
		return fmt.Errorf("db: PostgreSQL does not answer: %w", err)
	}
	if o.AllowUnsafe {
		return nil
	}
	return d.checkPostgres(ctx)
}

// checkPostgres rejects settings that may lose acknowledged commits.
func (d *DB) checkPostgres(ctx context.Context) error {
	var errs []error
	for _, c := range []struct{ setting, safe, advice string }{
		{"fsync", "on", "a crash would corrupt the database; set fsync = on"},
		{"full_page_writes", "on", "a power cut would corrupt the database; set full_page_writes = on"},
		{"synchronous_commit", "on remote_apply remote_write local", "a crash would lose acknowledged orders; set synchronous_commit = on"},
		{"server_encoding", "UTF8", "names would be mangled; create the database with ENCODING 'UTF8'"},
		{"transaction_read_only", "off", "this is a standby, or set to read only; give the address of the primary"},
	} {
		var value string
		if err := d.reader.QueryRowContext(ctx, "SHOW "+c.setting).Scan(&value); err != nil {
			return fmt.Errorf("db: SHOW %s: %w", c.setting, err)
		}
		errs = append(errs, want(slices.Contains(strings.Fields(c.safe), value), "PostgreSQL runs with %s=%s: %s", c.setting, value, c.advice))
	}
	return errors.Join(errs...)
}

// ServerTime is the clock of a database server. SQLite has none: then ok is false.
func (d *DB) ServerTime(ctx context.Context) (now time.Time, ok bool, err error) {
	if _, ok = d.dialect.(pgDialect); !ok {
		return now, false, nil
	}
	if err := d.reader.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return now, true, fmt.Errorf("db: clock of the server: %w", err)
	}
	return now.UTC(), true, nil
}

// isDriverError reports whether err comes from a driver rather than from our
// rules.
func isDriverError(err error) bool {
	var lite *sqlite.Error
	var pg *pgconn.PgError
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &lite) || errors.As(err, &pg) || errors.As(err, &connect) ||
		errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		pgconn.SafeToRetry(err) || isBroken(err)
}

// isBroken recognises a connection that ended in the middle of an exchange.
func isBroken(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "conn closed")
}

// serverSpoke reports whether COMMIT got a definite answer: an ERROR is one. An
// error that ends the session or the server (FATAL, PANIC) does not show whether
// the commit record was written.
func serverSpoke(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR"
}
