package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/porteira/porteira/internal/store"
)

// ErrBusy says that somebody else works on the store.
var ErrBusy = errors.New("the store is in use")

// seedLockKey is the advisory lock of whoever fills or measures a PostgreSQL
// database; its bytes spell "seed".
const seedLockKey = 0x73656564

// lockSeeded keeps a PostgreSQL database for this process until release is
// called, or the process ends: two that fill it at once would each count only
// what they made themselves. SQLite's file has a lock of its own.
func lockSeeded(ctx context.Context, url string) (release func(), err error) {
	if url == "" {
		return func() {}, nil
	}
	if !store.IsPostgres(url) {
		return nil, fmt.Errorf("%w: %s", ErrUsage, notPostgres)
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, errUnreachable
	}
	release = func() {
		ctx := context.WithoutCancel(ctx)
		_, _ = c.Exec(ctx, "SELECT pg_advisory_unlock_all()") // the server ends the session in its own time
		_ = c.Close(ctx)
	}
	var got bool
	if err = c.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", seedLockKey).Scan(&got); err == nil && !got {
		err = fmt.Errorf("%w: another porteira bench works on the database; let it come to its end", ErrBusy)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// errUnreachable says no more than that: the error may hold a password.
var errUnreachable = errors.New("bench: the database cannot be reached")
