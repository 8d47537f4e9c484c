package store

import (
	"context"
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

// checkpointAfter is how many pages gather in the log before they are moved,
// as SQLite itself would do it.
const checkpointAfter = 1000

// Modes of a checkpoint (sqlite.org/pragma.html#pragma_wal_checkpoint).
const (
	checkpointLook  = "NOOP"     // tells how the log stands
	checkpointMove  = "PASSIVE"  // moves what no reader holds back
	checkpointEmpty = "TRUNCATE" // moves everything and empties the log
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
	st, err := w.prepared(ctx, "PRAGMA wal_checkpoint("+mode+")")
	if err == nil {
		err = st.QueryRowContext(ctx).Scan(&c.busy, &c.log, &c.moved)
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

// tidy moves the log when enough has gathered. It returns what went wrong: the
// commit before it is durable in the log all the same.
func (w *soloWriter) tidy(ctx context.Context) error {
	if !w.owner { // which must learn of it if an fsync fails
		return nil
	}
	c, err := w.checkpoint(ctx, checkpointLook)
	if err == nil && c.log-c.moved >= checkpointAfter {
		_, err = w.checkpoint(ctx, checkpointMove)
	}
	if err != nil {
		return w.checkpointFailed(err)
	}
	return nil
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
