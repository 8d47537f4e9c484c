package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite's write-ahead log is moved into the database file by us, and not by
// COMMIT, which would keep an error of that to itself. What a failed fsync was
// to write is lost, though it can still be read, and the next fsync succeeds
// without it. For the log that is harmless: a commit whose fsync failed is
// undone, and the next one writes over it. For the database file it is not:
// pages that an earlier, incomplete checkpoint had moved are not moved again,
// and once the log begins anew they are nowhere. Their one true copy is the log
// as it stands, which the next process moves as a whole. So this one must end,
// and without closing the database, as the last to close it removes the log.

// checkpointAfter is how many pages gather in the log before they are moved:
// eight times what SQLite would wait for, as a page of an index that is written
// by many commits is then moved once.
const checkpointAfter = 8000

// While its last part is moved the writer waits, for two fsyncs and more. Where
// they are slow, it goes on for moveRest times as long before the next move
// begins: a twentieth of its time goes to that. checkpointMost times as many
// pages (128 MB) are moved all the same.
const (
	moveRest       = 20
	checkpointMost = 4
)

// Modes of a checkpoint (sqlite.org/pragma.html#pragma_wal_checkpoint).
const (
	checkpointLook   = "NOOP"     // tells how the log stands
	checkpointMove   = "PASSIVE"  // moves what no reader holds back
	checkpointEmpty  = "TRUNCATE" // moves everything and empties the log
	checkpointBeside = "PASSIVE beside the writer"
)

// ErrDisk says that an fsync of the database file failed. The process must end;
// another one finds all that was acknowledged.
var ErrDisk = errors.New("store: the disk failed to sync the database file")

// checkpoint is how the log stands after one: pages in it, and how many of
// them are in the database file.
type checkpoint struct {
	busy       bool // somebody held it back
	log, moved int
}

func (w *soloWriter) runCheckpoint(ctx context.Context, mode string) (c checkpoint, err error) {
	scan := func(r *sql.Row) error { return r.Scan(&c.busy, &c.log, &c.moved) }
	if mode == checkpointBeside {
		return c, scan(w.mover.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"))
	}
	st, err := w.prepared(ctx, "PRAGMA wal_checkpoint("+mode+")")
	if err == nil {
		err = scan(st.QueryRowContext(ctx))
	}
	return c, err
}

// secure moves what was found in the log at opening into the database file,
// before anything is written behind it. A process that was killed right after
// a failed fsync leaves a log that can be read and is not on disk: what came
// behind such a gap would be lost with it by a power cut.
func (w *soloWriter) secure(ctx context.Context) error {
	if w.failed != nil {
		return w.failed
	}
	if w.secured || !w.owner {
		return nil
	}
	c, err := w.checkpoint(ctx, checkpointEmpty)
	switch {
	case err != nil:
		return w.checkpointFailed(err)
	case c.busy:
		return fmt.Errorf("%w: a reader holds the write-ahead log", ErrUnavailable)
	}
	w.secured = true
	return nil
}

// tidy moves the log when enough has gathered. Most of it is moved beside the
// writer, which goes on meanwhile; what was written until then is few pages, and
// is moved here, as the log begins anew only when all of it has been moved. It
// returns what went wrong: the commit before it is durable in the log all the same.
func (w *soloWriter) tidy(ctx context.Context) error {
	if !w.owner { // which must learn of it if an fsync fails
		return nil
	}
	c, err := w.checkpoint(ctx, checkpointLook)
	switch {
	case err != nil, w.moving:
	case w.moved:
		w.moved = false
		began := w.clock.Monotonic()
		_, err = w.checkpoint(ctx, checkpointMove)
		ended := w.clock.Monotonic()
		w.moveAfter = ended + moveRest*(ended-began)
	case w.clock.Monotonic() < w.moveAfter && c.log-c.moved < w.gather*checkpointMost:
	case c.log-c.moved >= w.gather:
		w.moving = true
		run := w.checkpoint
		w.moves.Go(func() { w.move(ctx, run) })
	}
	if err != nil {
		return w.checkpointFailed(err)
	}
	return nil
}

// move runs a checkpoint beside the writer.
func (w *soloWriter) move(ctx context.Context, run func(context.Context, string) (checkpoint, error)) {
	_, err := run(ctx, checkpointBeside)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moving, w.moved = false, err == nil
	if err != nil && w.failed == nil {
		w.log.ErrorContext(ctx, "the write-ahead log is not moved", "error", w.checkpointFailed(err))
	}
}

// checkpointFailed makes an error of a checkpoint one of the store's. Where an
// fsync failed, that is the end.
func (w *soloWriter) checkpointFailed(err error) error {
	var coded interface{ Code() int }
	if errors.As(err, &coded) && coded.Code() == sqlite3.SQLITE_IOERR_FSYNC {
		w.failed = fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrDisk, err)
		close(w.ended)
		return w.failed
	}
	return fmt.Errorf("%w: checkpoint: %w", ErrUnavailable, err)
}

// Ended is closed when this process must end, as it cannot know any more what
// is on disk; see [ErrDisk]. Closing the store then does nothing.
func (s *Store) Ended() <-chan struct{} {
	if s.solo == nil {
		return nil
	}
	return s.solo.ended
}
