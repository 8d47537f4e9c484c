package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// The disk is served by this process, and SQLite maps a part of what it reads
// into memory. Were that done here, a page could be awaited by the very process
// that is to bring it; so whoever reads the database on the disk is another.

// holdVerb makes this program such a reader.
const holdVerb = "hold-a-reader-open"

// holdReader begins to read a database, which it holds as it was then until
// release is called.
func holdReader(ctx context.Context, path string) (release func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, holdVerb, path)
	c.Stderr = os.Stderr
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("reader: %w", err), in.Close(), c.Wait())
	}
	return func() error { return errors.Join(in.Close(), c.Wait()) }, nil
}

// hold is what the reader does, until its input ends.
func hold(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM payouts").Scan(&n); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, tx.Rollback())
}
