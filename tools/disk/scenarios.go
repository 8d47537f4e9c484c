package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// roomLeft is what a disk still holds when it begins to be full: so much more
// is written before the first write fails, and at another place in each trial.
const roomLeft = 512 << 10

// full lets the disk run full, twice: clients are refused, reads go on, a
// gateway that is started then serves all the same, and when there is room
// again it goes on by itself. At the end the power is cut, so that what was
// acknowledged on a full disk must really be on it.
func (t *trial) full() error {
	t.crowd.begin(t.ctx, "full", crowdSize)
	for range 2 {
		if err := t.work(2 * time.Second); err != nil {
			return err
		}
		_, before := t.crowd.since()
		t.disk.Limit(t.disk.Used() + t.random.Int64N(roomLeft))
		t.awaitRefusal(before)
		t.readsGoOn(2 * time.Second)
		if t.engine == sqlite {
			if err := t.kill(); err != nil {
				return errors.Join(errors.New("a gateway does not start on a full disk"), err)
			}
			t.readsGoOn(time.Second)
		}
		t.disk.Limit(0)
		if err := t.recovers(); err != nil {
			return err
		}
	}
	if t.disk.Counts().Full == 0 {
		t.blamef("the disk was never full: nothing is proved")
	}
	if err := t.work(time.Second); err != nil {
		return err
	}
	return t.powerCut()
}

// awaitRefusal waits until clients are refused.
func (t *trial) awaitRefusal(before int64) {
	for began := clock.Monotonic(); clock.Monotonic()-began < time.Minute && t.ctx.Err() == nil; {
		if _, now := t.crowd.since(); now > before {
			return
		}
		wait(t.ctx, 10*time.Millisecond)
	}
	t.blamef("a full disk does not show")
}

// readOnly lets nothing be written: on SQLite the disk turns read-only, on
// PostgreSQL the server does, as one does that is about to hand over.
func (t *trial) readOnly() error {
	t.crowd.begin(t.ctx, "readonly", crowdSize)
	for range 2 {
		if err := t.work(time.Second); err != nil {
			return err
		}
		_, before := t.crowd.since()
		if err := t.setReadOnly(true); err != nil {
			return err
		}
		from := clock.Monotonic()
		t.awaitRefusal(before)
		t.readsGoOn(2 * time.Second)
		t.impossible(from, clock.Monotonic())
		if err := t.setReadOnly(false); err != nil {
			return err
		}
		if err := t.recovers(); err != nil {
			return err
		}
	}
	if t.engine == sqlite && t.disk.Counts().ReadOnly == 0 {
		t.blamef("the disk was never read-only: nothing is proved")
	}
	return t.powerCut()
}

func (t *trial) setReadOnly(on bool) error {
	if t.engine == sqlite {
		t.disk.SetReadOnly(on)
		return nil
	}
	value := "off"
	if on {
		value = "on"
	}
	return errors.Join(
		t.server.exec(t.ctx, "postgres", "ALTER SYSTEM SET default_transaction_read_only = "+value),
		t.server.exec(t.ctx, "postgres", "SELECT pg_reload_conf()"),
		t.server.exec(t.ctx, "postgres", "SELECT pg_sleep(0.2)"), // sessions read it before their next statement
	)
}

// database is the file of an SQLite database.
const database = "porteira.db"

// ending is what happens when an fsync of a file fails.
type ending struct {
	file string // "" is any
	then func(t *trial, file string) error
}

// endings are all that is tried on an engine, one after the other.
func endings(engine string) (list []ending) {
	if engine == postgres { // the server ends by itself, and begins again
		return []ending{{"", (*trial).goOn}, {"", (*trial).goOn}, {"", (*trial).killAfter}}
	}
	for _, file := range []string{database + "-wal", database, "bank.journal", "installation.beat.new", ""} {
		for _, then := range []func(*trial, string) error{(*trial).goOn, (*trial).killAfter, (*trial).killAtOnce} {
			list = append(list, ending{file, then})
		}
	}
	return append(list, ending{database, (*trial).holdBack})
}

// fsync lets fsyncs fail, of each file in turn. Then the gateway goes on, or is
// killed, or is killed before it does anything more; and each time the power is
// cut at the end, which shows what a failed fsync has dropped.
func (t *trial) fsync() error {
	t.crowd.begin(t.ctx, "fsync", crowdSize)
	for _, e := range endings(t.engine) {
		if err := t.work(time.Second); err != nil {
			return err
		}
		if err := e.then(t, e.file); err != nil {
			return err
		}
		if err := t.recovers(); err != nil {
			return err
		}
		if err := t.work(time.Duration(t.random.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		if err := t.powerCut(); err != nil {
			return err
		}
	}
	return nil
}

// holdBack lets a reader hold the write-ahead log back, so that a part of it is
// moved into the database file first, and the fsync fails that comes with the
// rest.
func (t *trial) holdBack(file string) error {
	path := filepath.Join(t.data, file)
	release, err := holdReader(t.ctx, path)
	if err != nil {
		return err
	}
	moved, err := t.workUntilMoved(path)
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	if !moved {
		t.blamef("nothing was moved into the database file: nothing is proved")
	}
	return t.goOn(file)
}

// workUntilMoved lets clients work until a checkpoint has written to the
// database file.
func (t *trial) workUntilMoved(path string) (moved bool, err error) {
	before, err := os.Stat(path)
	for began := clock.Monotonic(); err == nil && clock.Monotonic()-began < time.Minute; {
		if err = t.work(time.Second); err != nil {
			break
		}
		var now os.FileInfo
		if now, err = os.Stat(path); err == nil && now.Size() > before.Size() {
			return true, nil
		}
	}
	return false, err
}

// failSyncs lets a few fsyncs of a file fail.
func (t *trial) failSyncs(file string) {
	before := t.disk.Counts().FailedSyncs
	t.disk.FailSyncs(file, 1+int(t.random.Int64N(3)))
	t.awaitFailedSync(before)
}

func (t *trial) goOn(file string) error {
	t.failSyncs(file)
	return nil
}

func (t *trial) killAfter(file string) error {
	t.failSyncs(file)
	return t.kill()
}

// killAtOnce leaves what the failed fsync was to write as the last thing that
// was written: who is started next can read it, and it is not on the disk.
func (t *trial) killAtOnce(file string) error {
	select {
	case <-t.disk.FailSyncAndFreeze(file):
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	return t.killFrozen()
}

// awaitFailedSync waits until the fault has fired: the files that are rarely
// synced are written to once a second, or when enough has gathered.
func (t *trial) awaitFailedSync(before int64) {
	for began := clock.Monotonic(); clock.Monotonic()-began < time.Minute && t.ctx.Err() == nil; {
		if t.disk.Counts().FailedSyncs > before {
			return
		}
		wait(t.ctx, 5*time.Millisecond)
	}
	t.blamef("no fsync failed: nothing is proved")
}

// slowCrowd is more clients than are served at once, so that load must be shed.
const slowCrowd = 400

// slow makes each fsync slower and slower, up to 2 s.
func (t *trial) slow() error {
	t.crowd.begin(t.ctx, "slow", slowCrowd)
	for _, most := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		t.disk.Slow(most)
		t.readsGoOn(5 * time.Second)
	}
	if got := t.caller.send(t.ctx, http.MethodGet, "/readyz", ""); got.status != http.StatusOK {
		t.blamef("on a slow disk GET /readyz is answered %d", got.status)
	}
	t.disk.Slow(0)
	if err := t.recovers(); err != nil {
		return err
	}
	if _, refused := t.crowd.since(); refused == 0 || t.disk.Counts().Slow == 0 {
		t.blamef("no fsync was slow, or no client was refused: nothing is proved")
	}
	return t.powerCut()
}

// powerCuts is how often a trial cuts the power.
const powerCuts = 10

// power cuts the power at random moments under load.
func (t *trial) power() error {
	t.crowd.begin(t.ctx, "power", crowdSize)
	for range powerCuts {
		if err := t.work(time.Duration(t.random.Int64N(int64(time.Second)))); err != nil {
			return err
		}
		if err := t.powerCut(); err != nil {
			return err
		}
		if err := t.recovers(); err != nil {
			return err
		}
	}
	return nil
}
