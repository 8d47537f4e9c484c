package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// restore takes a backup under load, works on for a while, and replaces the database by
// the backup. All clients then repeat every request: the bank must transfer nothing
// twice.
func (d *diskRun) restore(ctx context.Context) error {
	if err := work(ctx, 2*time.Second); err != nil {
		return err
	}
	backup := filepath.Join(d.folder, "backup")
	if err := d.backUp(ctx, backup); err != nil {
		return err
	}
	taken := clock.Monotonic()
	// The epoch outside the database must have advanced: a backup that is restored
	// within a second cannot be detected.
	if err := work(ctx, 3*time.Second); err != nil {
		return err
	}
	resume, err := suspend(ctx, d.gateways)
	defer resume()
	if err != nil {
		return err
	}
	d.gateway.kill()
	lost := len(d.clients.acknowledgedBetween(taken, clock.Monotonic()))
	if lost == 0 {
		d.reportf("never fired", "no order was acknowledged after the backup")
	}
	d.totals.add("orders that a restored backup lacked", "", int64(lost))
	if err := d.putBack(ctx, backup); err != nil {
		return err
	}
	d.restored = true
	resume()
	return errors.Join(d.awaitCalm(ctx), d.recovers(ctx), work(ctx, time.Second))
}

// backUp copies the database while it is in use.
func (d *diskRun) backUp(ctx context.Context, to string) error {
	if d.engine == postgres {
		return d.command(ctx, d.postgresTool("pg_dump"), "--format=custom", "--dbname="+d.database.direct, "--file="+to)
	}
	if out, err := d.porteira(ctx, d.programs.plain, "backup", "--to", to); err != nil {
		return fmt.Errorf("backup: %w\n%s", err, out)
	}
	return nil
}

// putBack replaces the database by a backup. The gateway is down; all else in its data
// folder stays.
func (d *diskRun) putBack(ctx context.Context, backup string) error {
	if d.engine == postgres {
		return errors.Join(
			d.database.exec(ctx, "postgres", "DROP DATABASE "+databaseName+" WITH (FORCE)"),
			d.database.exec(ctx, "postgres", "CREATE DATABASE "+databaseName),
			d.command(ctx, d.postgresTool("pg_restore"), "--exit-on-error", "--dbname="+d.database.direct, backup))
	}
	path := filepath.Join(d.mountPoint, databaseFile)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	// By another process: this one serves the disk.
	return d.command(ctx, "dd", "if="+backup, "of="+path, "conv=fsync", "status=none")
}

func (d *diskRun) postgresTool(name string) string {
	return filepath.Join(filepath.Dir(d.database.server.args[0]), name)
}

func (d *diskRun) command(ctx context.Context, name string, arguments ...string) error {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Env = environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out)
	}
	return nil
}
