// Package store reads and writes rows: one file and one column table per noun; load, decide, save;
// read queries.
//
// There are two ways to write. [Store.Commit] loads the rows of operations, lets them decide, and
// saves their changes: see commit.go. [Store.Transact] is a plain transaction for the few writes
// that are not operations.
package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/payment"
)

// Errors that callers distinguish; see package db.
var (
	ErrNotFound      = db.ErrNotFound
	ErrConflict      = db.ErrConflict
	ErrCommitUnknown = db.ErrCommitUnknown
	ErrUnavailable   = db.ErrUnavailable
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the files of the schema.
func migrations() fs.FS {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil { // it is embedded
		panic(err)
	}
	return files
}

// Store is an open database of payments. It is safe for concurrent use.
type Store struct {
	keyError error // why the root of keyed hashes does not open
	db       *db.DB
	external payment.ExternalIDs
	numbers  sync.Map // merchant number -> payment.ID
}

// Open opens a database whose schema is in place; see [Migrate].
func Open(ctx context.Context, o db.Options) (*Store, error) {
	o.Migrations = migrations()
	d, err := db.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Store{db: d}
	var id, key []byte
	if err := d.QueryRow(ctx, "SELECT id, external_id_key FROM installation").Scan(&id, &key); err != nil {
		return nil, errors.Join(fmt.Errorf("store: installation: %w", err), d.Close())
	}
	if s.external.Installation, err = payment.IDFromBytes(id); err != nil {
		return nil, errors.Join(fmt.Errorf("store: installation: %w", err), d.Close())
	}
	if copy(s.external.Key[:], key) != payment.ExternalIDKeyLength {
		return nil, errors.Join(errors.New("store: installation: the key of external ids has the wrong length"), d.Close())
	}
	if err := s.openRoot(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return s, nil
}

// Migrate upgrades the schema of a database to this program's, and gives a new
// installation its id and the key of its external ids. It returns the versions that it applied.
func Migrate(ctx context.Context, o db.Options) (applied []int64, err error) {
	o.Migrations = migrations()
	now := o.Env.Clock.Now()
	id, key := payment.ID(o.Env.IDs.NewID(now)), make([]byte, payment.ExternalIDKeyLength)
	o.Env.Random.Read(key)
	root, keys, err := newRoot(o)
	if err != nil {
		return nil, err
	}
	return db.Migrate(ctx, o, func(ctx context.Context, to *sql.DB) error {
		row := installationRow{Installation: Installation{ID: id, Epoch: 1}, singleton: 1, externalIDKey: key, createdAt: now}
		if _, err := to.ExecContext(ctx, installationTable.insert.One(), installationTable.row(&row)...); err != nil {
			return fmt.Errorf("store: create the installation: %w", err)
		}
		if _, err := to.ExecContext(ctx, settingTable.insert.One(), settingTable.row(&root)...); err != nil {
			return fmt.Errorf("store: create the root of keyed hashes: %w", err)
		}
		// The platform itself, with the zero id. Money whose merchant cannot be found is booked on
		// its accounts.
		platform := Merchant{Name: PlatformName, Limits: limits.Default(), ClosedAt: now, CreatedAt: now}
		platform.mac = merchantHash.mac(keys, &platform)
		if _, err := to.ExecContext(ctx, merchantTable.insert.One(), merchantTable.row(&platform)...); err != nil {
			return fmt.Errorf("store: create the platform: %w", err)
		}
		first := firstAudit(keys, now)
		if _, err := to.ExecContext(ctx, auditTable.insert.One(), auditTable.row(&first)...); err != nil {
			return fmt.Errorf("store: begin the audit: %w", err)
		}
		return nil
	})
}

// epochOfCopy precedes the epoch of every database, and the default outside the
// database.
const epochOfCopy = -1

// Backup writes a copy of an SQLite database at this time to a path that does not exist, while a
// gateway may be running. The copy gets an epoch that precedes every other. So a gateway started on
// it looks up payouts before it sends them, even if the epoch outside the database is missing.
func (s *Store) Backup(ctx context.Context, path string) error {
	return s.db.Backup(ctx, path, func(ctx context.Context, to *sql.DB) error {
		_, err := to.ExecContext(ctx, "UPDATE installation SET epoch = $1", epochOfCopy)
		return err
	})
}

// Close ends all connections and releases the SQLite file's lock.
func (s *Store) Close() error { return s.db.Close() }

// Engine names the database engine: sqlite or postgres.
func (s *Store) Engine() string { return s.db.Engine() }

// Writers is how many transactions the engine commits concurrently.
func (s *Store) Writers() int { return s.db.Writers() }

// Keys seal and hash for this store.
func (s *Store) Keys() *db.Keyring { return s.db.Keys() }

// Installation is the id from which this installation derives external ids.
func (s *Store) Installation() payment.ID { return s.external.Installation }

// Ping checks that the database answers; else ErrUnavailable.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// ServerTime is the clock of the database server; ok is false if there is no server.
func (s *Store) ServerTime(ctx context.Context) (now time.Time, ok bool, err error) {
	return s.db.ServerTime(ctx)
}

// Ended is closed when this process must end; see [db.ErrDisk].
func (s *Store) Ended() <-chan struct{} { return s.db.Ended() }

// AnalyzeGrown refreshes the statistics of tables that have grown; see
// [db.DB.AnalyzeGrown].
func (s *Store) AnalyzeGrown(ctx context.Context) (int, error) { return s.db.AnalyzeGrown(ctx) }

// Tx is a plain transaction; see [Store.Transact].
type Tx struct {
	*db.Tx

	s *Store
}

// Transact runs work in a plain transaction; see [db.DB.Write]. What operators and credentials
// configure is changed by [Store.Administer] instead. These are its only uses:
//   - settings, and cases about accounts;
//   - the sandbox's clock;
//   - the membership of the cluster, and the schedules after a change of the clock;
//   - the retention of deliveries and of counters;
//   - redelivery.
func (s *Store) Transact(ctx context.Context, work func(tx *Tx) error) error {
	return s.db.Write(ctx, func(tx *db.Tx) error { return work(&Tx{tx, s}) })
}

// Ref names a row of a merchant.
type Ref struct{ Merchant, ID payment.ID }

func (r Ref) key() []any { return []any{r.Merchant[:], r.ID[:]} }

func scanRef(r db.Scanner) (Ref, error) {
	var v Ref
	err := r.Scan((*idDest)(&v.Merchant), (*idDest)(&v.ID))
	return v, err
}

func scanID(r db.Scanner) (payment.ID, error) {
	var id payment.ID
	err := r.Scan((*idDest)(&id))
	return id, err
}

// ExternalRef names an order by its external id.
type ExternalRef struct {
	Merchant   payment.ID
	ExternalID string
}

func (r ExternalRef) key() []any { return []any{r.Merchant[:], r.ExternalID} }

// compare is the order in which external ids are inserted: an insert waits for another
// transaction's of the same id.
func (r ExternalRef) compare(other ExternalRef) int {
	if order := payment.CompareIDs(r.Merchant, other.Merchant); order != 0 {
		return order
	}
	return strings.Compare(r.ExternalID, other.ExternalID)
}

// keysOf are the keys of the refs, each once.
func keysOf[R interface {
	comparable
	key() []any
}](refs []R) [][]any {
	keys := make([][]any, 0, len(refs))
	seen := make(map[R]bool, len(refs))
	for i := range refs {
		if !seen[refs[i]] {
			seen[refs[i]] = true
			keys = append(keys, refs[i].key())
		}
	}
	return keys
}

// saveRows updates the changed rows of a table, and then adds the new ones: an undecided
// send ends before the next one begins. A row that changes twice is written once, with its
// last values. Errors: ErrConflict if a changed row does not exist, or a new one does.
func saveRows[T any, K comparable](ctx context.Context, tx *db.Tx, what string, u *updateOf[T], changed []T, key func(*T) K, t *tableOf[T], added []T) error {
	missed, err := tx.Update(ctx, u.RowUpdate, latestRows(u, changed, key)...)
	if err == nil && len(missed) > 0 {
		err = ErrConflict
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	rows := make([][]any, len(added))
	for i := range added {
		rows[i] = t.row(&added[i])
	}
	return tx.InsertNew(ctx, t.insert, rows...)
}

// latestRows are the last values of each row of a list of changes.
func latestRows[T any, K comparable](u *updateOf[T], changed []T, key func(*T) K) [][]any {
	if len(changed) == 0 {
		return nil
	}
	last := make(map[K]int, len(changed))
	for i := range changed {
		last[key(&changed[i])] = i
	}
	rows := make([][]any, 0, len(last))
	for i := range changed {
		if v := &changed[i]; last[key(v)] == i {
			rows = append(rows, u.row(v))
		}
	}
	return rows
}

// insertOrRetry adds rows. If another transaction has added one of them meanwhile, this one
// runs again.
func insertOrRetry(ctx context.Context, tx *db.Tx, t *db.Table, rows ...[]any) error {
	added, err := tx.Insert(ctx, t, rows...)
	if err == nil && slices.Contains(added, false) {
		err = db.ErrRetry
	}
	return err
}

// updateOrRetry updates rows, which this transaction has locked indirectly. If another one has
// changed them nevertheless, this one runs again.
func updateOrRetry(ctx context.Context, tx *db.Tx, u *db.RowUpdate, rows ...[]any) error {
	missed, err := tx.Update(ctx, u, rows...)
	if err == nil && len(missed) > 0 {
		err = db.ErrRetry
	}
	return err
}

// keysDue lists the values of a column, such as merchants, that have rows due in a table. It skips
// from one to the next in the index of (column, next_at) of the rows that meet condition, so that
// one with many rows hides no other.
func keysDue(table, column, condition string) string {
	return `WITH RECURSIVE queue (` + column + `) AS (
			SELECT * FROM (SELECT ` + column + ` FROM ` + table + ` WHERE next_at > 0` + condition + ` ORDER BY ` + column + ` LIMIT 1) AS first
			UNION ALL
			SELECT (SELECT t.` + column + ` FROM ` + table + ` t WHERE t.next_at > 0` + condition + ` AND t.` + column + ` > queue.` + column + `
				ORDER BY t.` + column + ` LIMIT 1) FROM queue WHERE queue.` + column + ` IS NOT NULL)
		SELECT ` + column + ` FROM queue WHERE ` + column + ` IS NOT NULL AND EXISTS (SELECT 1 FROM ` + table + ` t
			WHERE t.` + column + ` = queue.` + column + ` AND t.next_at > 0 AND t.next_at <= $1` + condition + `)`
}

// accountsDue lists the accounts of a column of a table that have rows due which meet condition.
func (s *Store) accountsDue(ctx context.Context, what, table, column, condition string, now time.Time) ([]string, error) {
	rows, err := s.db.Query(ctx, keysDue(table, column, condition), micros(now))
	list, err := db.Collect(rows, err, func(r db.Scanner) (account string, err error) {
		err = r.Scan(textDest[string]{&account})
		return account, err
	})
	return list, s.db.ReadError(what, err)
}

// minID bounds ids by a time; a time finer than a millisecond is rounded up.
func minID(t time.Time) []byte {
	if cut := t.Truncate(time.Millisecond); cut.Before(t) {
		t = cut.Add(time.Millisecond)
	}
	id := payment.MinIDAt(t)
	return id[:]
}
