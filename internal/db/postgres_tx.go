package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
)

// pgTransaction queues statements, and sends them together. The first ones are sent with BEGIN, the
// last ones with COMMIT.
type pgTransaction struct {
	pooled  *sql.Conn // its connection, reserved
	conn    *pgx.Conn
	pending []statement
	begun   bool // BEGIN was sent
}

// The names by which each connection has prepared the statements that begin and end a transaction.
const (
	begin  = "begin"
	commit = "commit"
)

// connected prepares a new connection.
func connected(ctx context.Context, c *pgx.Conn) error {
	encodeArrays(c)
	_, err := c.Prepare(ctx, begin, "BEGIN")
	if err == nil {
		_, err = c.Prepare(ctx, commit, "COMMIT")
	}
	return err
}

func (pgDialect) begin(ctx context.Context, d *DB) (transaction, error) {
	pooled, err := d.writer.Conn(ctx)
	if err != nil {
		return nil, err
	}
	t := &pgTransaction{pooled: pooled}
	err = pooled.Raw(func(c any) error {
		t.conn = c.(*stdlib.Conn).Conn()
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, pooled.Close())
	}
	return t, nil
}

func (t *pgTransaction) queue(_ context.Context, s statement) error {
	t.pending = append(t.pending, s)
	return nil
}

func (t *pgTransaction) queued() bool { return len(t.pending) > 0 }

func (t *pgTransaction) reads() bool {
	for i := range t.pending {
		if t.pending[i].read != nil || t.pending[i].count != nil {
			return true
		}
	}
	return false
}

func (t *pgTransaction) flush(ctx context.Context) error { return t.send(ctx, "") }

// send sends the queued statements and a last one, if there is any, in one round trip.
func (t *pgTransaction) send(ctx context.Context, last string) error {
	pending := t.pending
	t.pending = nil
	if len(pending) == 0 && last == "" {
		return nil
	}
	batch := &pgx.Batch{}
	first := !t.begun
	if first {
		batch.Queue(begin)
		t.begun = true
	}
	for i := range pending {
		batch.Queue(pending[i].text, pending[i].args...)
	}
	if last != "" {
		batch.Queue(last)
	}
	results := t.conn.SendBatch(ctx, batch)
	err := t.results(results, pending, first, last != "")
	return errors.Join(err, closed(results, err))
}

// closed ends the reading of results. After an error the connection is read to the end.
func closed(results pgx.BatchResults, err error) error {
	if closing := results.Close(); err == nil {
		return closing
	}
	return nil
}

func (t *pgTransaction) results(results pgx.BatchResults, pending []statement, first, last bool) error {
	if first {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	for i := range pending {
		if err := pending[i].result(results); err != nil {
			return named(pending[i].what, conflict(err))
		}
	}
	if last {
		tag, err := results.Exec()
		if err == nil && tag.String() != "COMMIT" {
			err = errNotCommitted
		}
		return err
	}
	return nil
}

// conflict adds ErrConflict to the error of a statement that adds a row twice.
func conflict(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "23505" {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// errNotCommitted is a fault of the program: it committed after an error.
var errNotCommitted = errors.New("db: COMMIT of a transaction that had failed")

func (s *statement) result(results pgx.BatchResults) error {
	if s.read == nil {
		tag, err := results.Exec()
		if err == nil && s.count != nil {
			err = s.count(tag.RowsAffected())
		}
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	return s.read(&pgRows{Rows: rows})
}

// pgRows are rows of the driver. A row that could not be scanned can be scanned again, unlike the
// driver's.
type pgRows struct {
	pgx.Rows

	plans []pgtype.ScanPlan
	types []reflect.Type // of the destinations that plans are for
}

// Scan implements [Scanner].
func (r *pgRows) Scan(dest ...any) error {
	fields, values := r.FieldDescriptions(), r.RawValues()
	if len(fields) != len(dest) || len(values) != len(dest) {
		return fmt.Errorf("db: %d destinations of %d columns", len(dest), len(fields))
	}
	if r.plans == nil {
		r.plans, r.types = make([]pgtype.ScanPlan, len(dest)), make([]reflect.Type, len(dest))
	}
	for i, d := range dest {
		if of := reflect.TypeOf(d); r.types[i] != of {
			r.plans[i], r.types[i] = r.Conn().TypeMap().PlanScan(fields[i].DataTypeOID, fields[i].Format, d), of
		}
		if err := r.plans[i].Scan(values[i], d); err != nil {
			return fmt.Errorf("column %s: %w", fields[i].Name, err)
		}
	}
	return nil
}

// Close implements [Rows].
func (r *pgRows) Close() error {
	r.Rows.Close()
	return nil
}

func (t *pgTransaction) exec(ctx context.Context, text string, args ...any) (n int64, err error) {
	t.pending = append(t.pending, statement{text: text, args: args, count: func(changed int64) error {
		n = changed
		return nil
	}})
	return n, t.flush(ctx)
}

func (t *pgTransaction) query(ctx context.Context, text string, args ...any) (Rows, error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	rows, err := t.conn.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return &pgRows{Rows: rows}, nil
}

func (t *pgTransaction) queryRow(ctx context.Context, text string, args ...any) Scanner {
	if err := t.begin(ctx); err != nil {
		return failedRow{err}
	}
	return t.conn.QueryRow(ctx, text, args...)
}

// begin begins the transaction, unless a statement has done that.
func (t *pgTransaction) begin(ctx context.Context) error {
	if t.begun {
		return nil
	}
	t.begun = true
	_, err := t.conn.Exec(ctx, begin)
	return err
}

func (t *pgTransaction) commit(ctx context.Context) error {
	var err error
	if t.begun || t.queued() {
		err = t.send(ctx, commit)
	}
	t.release(ctx)
	return err
}

func (t *pgTransaction) rollback(ctx context.Context) { t.release(ctx) }

// release returns the connection to the pool, without a transaction.
func (t *pgTransaction) release(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	if !t.conn.IsClosed() && t.conn.PgConn().TxStatus() != 'I' {
		if _, err := t.conn.Exec(ctx, "rollback"); err != nil {
			_ = t.conn.Close(ctx)
		}
	}
	_ = t.pooled.Close()
}
