package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"
)

// The write-ahead log is checkpointed here and not by COMMIT, which would hide an
// error of the checkpoint. If an fsync fails its pages are lost, though they can
// still be read, and the next fsync succeeds without them. For the log that is
// harmless: the failed commit is undone, and the next one overwrites it. For the
// database file it is not: pages that an earlier, incomplete checkpoint had
// copied are not copied again, and are lost once the log starts over. The only
// complete copy is the current log, which the next process checkpoints completely. So
// this process must end, and without closing the database, as the last connection
// to close removes the log.

// checkpointPages is how many pages the log may have before a checkpoint: eight
// times SQLite's default, so that a page of an index that many commits write is
// copied once.
const checkpointPages = 8000

// While the last part is copied the writer waits, for two fsyncs or more. If they
// are slow, the next checkpoint waits checkpointRest times as long: they then
// take a twentieth of the writer's time. Beyond checkpointMost times as many
// pages (128 MB) a checkpoint always runs.
const (
	checkpointRest = 20
	checkpointMost = 4
)

// Modes of a checkpoint (sqlite.org/pragma.html#pragma_wal_checkpoint).
const (
	checkpointState      = "NOOP"     // reports the state of the log
	checkpointPassive    = "PASSIVE"  // copies pages that no reader needs
	checkpointTruncate   = "TRUNCATE" // copies everything and empties the log
	checkpointConcurrent = "PASSIVE concurrently"
)

// ErrDisk means that an fsync of the database file failed. The process must end;
// the next one finds everything that was acknowledged.
var ErrDisk = errors.New("db: the disk failed to sync the database file")

// checkpoint is the state of the log after one: its pages, and how many of them
// are in the database file.
type checkpoint struct {
	busy        bool // a reader blocked it
	log, copied int
}

func (w *sqliteWriter) runCheckpoint(ctx context.Context, mode string) (c checkpoint, err error) {
	scan := func(r *sql.Row) error { return r.Scan(&c.busy, &c.log, &c.copied) }
	if mode == checkpointConcurrent {
		return c, scan(w.checkpointer.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"))
	}
	st, err := w.prepared(ctx, "PRAGMA wal_checkpoint("+mode+")")
	if err == nil {
		err = scan(st.QueryRowContext(ctx))
	}
	return c, err
}

// recoverLog copies the log found at opening into the database file, before
// anything is appended. A process killed right after a failed fsync leaves a log
// that can be read but is not on disk: a power cut would lose everything after
// such a gap.
func (w *sqliteWriter) recoverLog(ctx context.Context) error {
	if w.failed != nil {
		return w.failed
	}
	if w.recovered || !w.owner {
		return nil
	}
	c, err := w.checkpoint(ctx, checkpointTruncate)
	switch {
	case err != nil:
		return w.checkpointFailed(err)
	case c.busy:
		return fmt.Errorf("%w: a reader blocks the checkpoint of the write-ahead log", ErrUnavailable)
	}
	w.recovered = true
	return nil
}

// maybeCheckpoint runs a checkpoint if the log is long enough. Most of it is
// copied concurrently with the writer. The few pages written meanwhile are copied
// here, as the log starts over only when all of it has been copied. An error does
// not affect the commit before, which is durable in the log.
func (w *sqliteWriter) maybeCheckpoint(ctx context.Context) error {
	if !w.owner { // the owner must see the error if an fsync fails
		return nil
	}
	c, err := w.checkpoint(ctx, checkpointState)
	switch {
	case err != nil, w.copying:
	case w.copied:
		w.copied = false
		began := w.clock.Monotonic()
		_, err = w.checkpoint(ctx, checkpointPassive)
		ended := w.clock.Monotonic()
		w.nextCheckpoint = ended + checkpointRest*(ended-began)
	case w.clock.Monotonic() < w.nextCheckpoint && c.log-c.copied < w.pages*checkpointMost:
	case c.log-c.copied >= w.pages:
		w.copying = true
		run := w.checkpoint
		w.checkpoints.Go(func() { w.copyConcurrently(ctx, run) })
	}
	if err != nil {
		return w.checkpointFailed(err)
	}
	return nil
}

// copyConcurrently runs a checkpoint concurrently with the writer.
func (w *sqliteWriter) copyConcurrently(ctx context.Context, run func(context.Context, string) (checkpoint, error)) {
	_, err := run(ctx, checkpointConcurrent)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copying, w.copied = false, err == nil
	if err != nil && w.failed == nil {
		w.log.ErrorContext(ctx, "checkpoint failed", "error", w.checkpointFailed(err))
	}
}

// checkpointFailed translates an error of a checkpoint. A failed fsync ends the
// process.
func (w *sqliteWriter) checkpointFailed(err error) error {
	var coded interface{ Code() int }
	if errors.As(err, &coded) && coded.Code() == sqlite3.SQLITE_IOERR_FSYNC {
		w.failed = fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrDisk, err)
		close(w.ended)
		return w.failed
	}
	return fmt.Errorf("%w: checkpoint: %w", ErrUnavailable, err)
}

// Ended is closed when this process must end, as the content of the disk is
// unknown; see [ErrDisk]. Closing the database then has no effect.
func (d *DB) Ended() <-chan struct{} {
	if d.sqlite == nil {
		return nil
	}
	return d.sqlite.ended
}
