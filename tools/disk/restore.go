package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/porteira/porteira/tools/rig"
)

// restore takes a backup under load, goes on for a while, and puts the backup
// in the place of the database. All clients then ask again for all that they
// ever asked for: the bank must send nothing twice.
func (t *trial) restore() error {
	t.crowd.begin(t.ctx, "restore", crowdSize)
	if err := t.work(2 * time.Second); err != nil {
		return err
	}
	backup := filepath.Join(t.folder, "backup")
	if err := t.backUp(backup); err != nil {
		return err
	}
	taken := clock.Monotonic()
	// The beat outside must have gone on: what is restored within the second
	// in which it was taken cannot be told from what was never away.
	if err := t.work(3 * time.Second); err != nil {
		return err
	}
	t.gateway.end(syscall.SIGKILL)
	lost := len(t.crowd.acks(taken, clock.Monotonic()))
	if lost == 0 {
		t.blamef("nothing was acknowledged after the backup: nothing is proved")
	}
	t.figures.add("orders that a restored backup lacked", int64(lost))
	if err := t.putBack(backup); err != nil {
		return err
	}
	t.forgets = true
	if err := t.start(); err != nil {
		return err
	}
	return errors.Join(t.recovers(), t.work(time.Second))
}

// backUp copies the database while it is in use.
func (t *trial) backUp(to string) error {
	if t.engine == postgres {
		file, err := os.Create(to)
		if err != nil {
			return err
		}
		cmd := exec.CommandContext(t.ctx, filepath.Join(t.server.binaries, "pg_dump"), "--format=custom", "--dbname="+t.server.url)
		cmd.Env, cmd.Stdout, cmd.Stderr = rig.Environ(), file, os.Stderr
		if err := errors.Join(cmd.Run(), file.Close()); err != nil {
			return fmt.Errorf("pg_dump: %w", err)
		}
		return nil
	}
	cmd := exec.CommandContext(t.ctx, t.program, append([]string{"backup", "--to", to}, t.storage...)...)
	cmd.Env = rig.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("backup: %w\n%s", err, out)
	}
	return nil
}

// putBack puts a backup in the place of the database. The gateway is down; all
// else in its data folder stays.
func (t *trial) putBack(backup string) error {
	if t.engine == postgres {
		if err := errors.Join(
			t.server.exec(t.ctx, "postgres", "DROP DATABASE "+databaseName+" WITH (FORCE)"),
			t.server.exec(t.ctx, "postgres", "CREATE DATABASE "+databaseName)); err != nil {
			return err
		}
		cmd := exec.CommandContext(t.ctx, filepath.Join(t.server.binaries, "pg_restore"), "--exit-on-error", "--dbname="+t.server.url, backup)
		cmd.Env = rig.Environ()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("pg_restore: %w\n%s", err, out)
		}
		return nil
	}
	path := filepath.Join(t.data, database)
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return copyFile(backup, path)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
