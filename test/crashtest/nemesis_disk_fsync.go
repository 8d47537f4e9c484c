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
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // registers the driver of the reader
)

// failure is a failed fsync of a file, and the action after it.
type failure struct {
	file string // suffix of its name; "" is any file
	then func(d *diskRun, ctx context.Context, file string) error
}

// failures are the injected failures of an engine, in order.
func failures(engine string) (list []failure) {
	if engine == postgres { // the server ends and starts by itself
		return []failure{{"", (*diskRun).keepRunning}, {"", (*diskRun).keepRunning}, {"", (*diskRun).killAfter}}
	}
	for _, file := range []string{databaseFile + "-wal", databaseFile, "bank.journal", "installation.epoch.new", ""} {
		for _, then := range []func(*diskRun, context.Context, string) error{(*diskRun).keepRunning, (*diskRun).killAfter, (*diskRun).killAtOnce} {
			list = append(list, failure{file, then})
		}
	}
	return append(list, failure{databaseFile, (*diskRun).delayCheckpoint})
}

// fsync makes fsyncs of each file fail. Each time the power is cut at the end, which reveals
// the writes that the failed fsync has dropped.
func (d *diskRun) fsync(ctx context.Context) error {
	for _, f := range failures(d.engine) {
		if err := work(ctx, time.Second); err != nil {
			return err
		}
		if err := f.then(d, ctx, f.file); err != nil {
			return err
		}
		if err := d.recovers(ctx); err != nil {
			return err
		}
		if err := work(ctx, time.Duration(d.random.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		if err := d.powerCut(ctx); err != nil {
			return err
		}
	}
	return nil
}

// keepRunning makes a few fsyncs of a file fail. The gateway is not killed.
func (d *diskRun) keepRunning(ctx context.Context, file string) error {
	before := d.disk.Counts().FailedSyncs
	d.disk.FailSyncs(file, 1+int(d.random.Int64N(3)))
	d.awaitFailedSync(ctx, before)
	return nil
}

// killAfter kills the gateway after such a failure.
func (d *diskRun) killAfter(ctx context.Context, file string) error {
	if err := d.keepRunning(ctx, file); err != nil {
		return err
	}
	return d.kill(ctx)
}

// killAtOnce kills all processes right after a failed fsync: the next process can read the
// write that failed to sync, but it is not on the disk.
func (d *diskRun) killAtOnce(ctx context.Context, file string) error {
	select {
	case <-d.disk.FailSyncAndFreeze(file):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return d.killFrozen(ctx)
}

// failedSyncMax bounds the time until a file that is rarely synced is synced.
const failedSyncMax = time.Minute

// awaitFailedSync waits until an fsync has failed.
func (d *diskRun) awaitFailedSync(ctx context.Context, before int64) {
	for began := clock.Monotonic(); clock.Monotonic()-began < failedSyncMax && ctx.Err() == nil; {
		if d.disk.Counts().FailedSyncs > before {
			return
		}
		wait(ctx, readyLook)
	}
	d.reportf("never fired", "no fsync failed")
}

// delayCheckpoint uses a reader to delay a checkpoint of SQLite's write-ahead log, so that
// only a part is written to the database file, and the fsync after the rest fails.
func (d *diskRun) delayCheckpoint(ctx context.Context, file string) error {
	path := filepath.Join(d.mountPoint, file)
	release, err := startReader(ctx, path)
	if err != nil {
		return err
	}
	moved, err := d.awaitCheckpoint(ctx, path)
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	if !moved {
		d.reportf("never fired", "no checkpoint wrote to the database file")
	}
	return d.keepRunning(ctx, file)
}

// awaitCheckpoint waits until a checkpoint has written to the database file.
func (d *diskRun) awaitCheckpoint(ctx context.Context, path string) (moved bool, err error) {
	before, err := os.Stat(path)
	for began := clock.Monotonic(); err == nil && clock.Monotonic()-began < failedSyncMax; {
		if err = work(ctx, time.Second); err != nil {
			break
		}
		var now os.FileInfo
		if now, err = os.Stat(path); err == nil && now.Size() > before.Size() {
			return true, nil
		}
	}
	return false, err
}

// This process serves the disk, and SQLite maps a part of a database into memory. A
// page fault here would wait for the process itself; so the reader is another process.

// readerRole is the first argument of a process that is a reader.
const readerRole = "reader"

// startReader starts a read transaction on a database, which lasts until release is
// called.
func startReader(ctx context.Context, path string) (release func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, readerRole, path)
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

// readUntilEnd is the reader: its transaction lasts until its input ends.
func readUntilEnd(ctx context.Context, arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("%s: arguments %q", readerRole, arguments)
	}
	db, err := sql.Open("sqlite", "file:"+arguments[0]+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
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
	fmt.Println("reading")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, tx.Rollback())
}
