package checker

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// Rewind returns a checker for an older copy of the database, which has seen what this
// one had seen when the copy was made. o.DB is the copy.
func (c *Checker) Rewind(ctx context.Context, o Options) (*Checker, error) {
	then, err := New(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := o.DB.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM checker_log").Scan(&then.seq); err != nil {
		return nil, fmt.Errorf("checker: read the log of a copy: %w", err)
	}
	first := 0
	for _, last := range c.commits {
		if last > first && c.lines[last-1].seq > then.seq {
			break
		}
		then.lines = append(then.lines, c.lines[first:last]...)
		then.commits = append(then.commits, last)
		for i := first; i < last; i++ {
			then.apply(&then.lines[i])
		}
		then.checkCommit()
		first = last
	}
	then.takeViolations() // this checker has reported them
	then.Rewound = true
	return then, then.columns.err
}

// Reopen continues on another connection to the same database.
func (c *Checker) Reopen(ctx context.Context, db *sql.DB) (err error) {
	c.DB = db
	if c.log, err = db.PrepareContext(ctx, readLog); err != nil {
		return fmt.Errorf("checker: read the log: %w", err)
	}
	return nil
}

// Ignore reads the changes since the last call of [Checker.Commit] or Ignore, and forgets
// them: a fault has made them, not the gateway.
func (c *Checker) Ignore(ctx context.Context) error {
	first := len(c.lines)
	err := c.readLines(ctx)
	c.lines = slices.Clip(c.lines[:first])
	return err
}

// Acknowledged returns the id under which an order is stored, by its external id, and
// whether it was canceled; ok is false if there is none.
func (c *Checker) Acknowledged(externalID string) (id string, canceled, ok bool) {
	o := c.externalIDs[externalID]
	if o == nil {
		return "", false, false
	}
	return o.key.id.String(), o.canceled, true
}
