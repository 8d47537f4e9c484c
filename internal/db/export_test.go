package db

import (
	"context"
	"fmt"
	"strings"
)

// CheckSQLiteVersion is for tests.
var CheckSQLiteVersion = checkSQLiteVersion

// Unnamed and SomeRows are for tests.
var Unnamed = unnamed

const SomeRows = someRows

// Classify names what an error of the database means for its transaction.
func (d *DB) Classify(err error) string {
	return [...]string{failed: "failed", retryable: "retryable", broken: "broken"}[d.dialect.classify(err)]
}

// CommitError is what Write makes of an error at COMMIT.
func (d *DB) CommitError(err error) error { return d.translateCommit(err) }

// LimitPages bounds the size of an SQLite database from now on, in pages of
// 4 KiB beyond those in use.
func (d *DB) LimitPages(ctx context.Context, more int) error {
	d.sqlite.mu.Lock()
	defer d.sqlite.mu.Unlock()
	var used int
	if err := d.sqlite.conn.QueryRowContext(ctx, "PRAGMA page_count").Scan(&used); err != nil {
		return err
	}
	_, err := d.sqlite.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", used+more))
	return err
}

// FailCheckpoints makes each checkpoint of a mode fail with an SQLite code; 0
// ends that.
func (d *DB) FailCheckpoints(mode string, code int) {
	d.sqlite.mu.Lock()
	defer d.sqlite.mu.Unlock()
	d.sqlite.checkpoint = func(ctx context.Context, requested string) (checkpoint, error) {
		if strings.HasPrefix(requested, mode) && code != 0 {
			return checkpoint{}, sqliteCode(code)
		}
		return d.sqlite.runCheckpoint(ctx, requested)
	}
}

// BeforeCheckpoints calls f before each checkpoint, with its mode.
func (d *DB) BeforeCheckpoints(f func(mode string)) {
	d.sqlite.mu.Lock()
	defer d.sqlite.mu.Unlock()
	d.sqlite.checkpoint = func(ctx context.Context, requested string) (checkpoint, error) {
		f(requested)
		return d.sqlite.runCheckpoint(ctx, requested)
	}
}

type sqliteCode int

func (c sqliteCode) Error() string { return fmt.Sprintf("code %d", int(c)) }
func (c sqliteCode) Code() int     { return int(c) }

// CheckpointAfter sets how many pages the log may have before a checkpoint.
func (d *DB) CheckpointAfter(pages int) {
	d.sqlite.mu.Lock()
	defer d.sqlite.mu.Unlock()
	d.sqlite.pages = pages
}

// LogPages is how many pages of the write-ahead log are not in the database file,
// when no checkpoint runs.
func (d *DB) LogPages(ctx context.Context) (int, error) {
	d.sqlite.checkpoints.Wait()
	d.sqlite.mu.Lock()
	defer d.sqlite.mu.Unlock()
	c, err := d.sqlite.runCheckpoint(ctx, checkpointState)
	return c.log - c.copied, err
}

// KeyText is for tests.
var KeyText = keyText
