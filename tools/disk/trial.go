package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/tools/disk/faultdisk"
	"github.com/porteira/porteira/tools/rig"
)

// crowdSize is how many clients ask at once, unless a scenario says otherwise.
const crowdSize = 8

// trial is one gateway on one disk that fails, and its clients.
type trial struct {
	*settings

	ctx     context.Context
	engine  string
	figures *figures
	random  env.Random

	folder  string // on an ordinary disk
	point   string // where the disk that fails is mounted
	data    string // the gateway's data folder
	disk    *faultdisk.Disk
	mounted *faultdisk.Mount
	storage []string // flags that name the database
	gateway *program
	server  *server // nil for SQLite

	failedSyncs int64 // when the gateway was started

	caller    *caller
	crowd     *crowd
	found     []string // what is wrong
	forgets   bool     // an older backup was restored
	lastWords string
}

// newTrial mounts a disk, starts a gateway on it, and lets clients loose. With
// SQLite all that the gateway keeps is on that disk; with PostgreSQL all that
// the server keeps.
func newTrial(ctx context.Context, s *settings, engine string, seed uint64, flags []string) (t *trial, err error) {
	t = &trial{settings: s, ctx: ctx, engine: engine, figures: newFigures(engine), random: env.SeededRandom(seed)}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.folder, err = os.MkdirTemp("", "porteira-disk-"); err != nil {
		return t, err
	}
	t.point = filepath.Join(t.folder, "disk")
	if err := os.Mkdir(t.point, 0o755); err != nil {
		return t, err
	}
	if err := os.Chmod(t.folder, 0o755); err != nil { // the server's account must reach the disk
		return t, err
	}
	t.disk = faultdisk.New(seed)
	if t.mounted, err = t.disk.Mount(t.point); err != nil {
		return t, err
	}
	t.data = filepath.Join(t.point, "data")
	t.storage = []string{"--data", t.data}
	if engine == postgres {
		t.data = filepath.Join(t.folder, "data")
		if t.server, err = newServer(t); err != nil {
			return t, err
		}
		t.storage = []string{"--data", t.data, "--database", t.server.url}
	}
	listen, err := address(t.random)
	if err != nil {
		return t, err
	}
	t.gateway = &program{
		args: slices.Concat([]string{s.program, "dev", "--listen", listen, "--log-level", "warn"}, t.storage, flags),
		log:  filepath.Join(t.folder, "gateway.log"),
	}
	t.caller = newCaller("http://" + listen)
	if err := t.start(); err != nil {
		return t, err
	}
	return t, t.newCrowd()
}

func (t *trial) newCrowd() error {
	file, err := os.OpenFile(filepath.Join(t.folder, "acknowledged"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	t.crowd = &crowd{caller: t.caller, figures: t.figures, file: file, random: t.random}
	return err
}

// startMax is how long a gateway may take to serve.
const startMax = 30 * time.Second

// start starts the gateway and waits until it serves.
func (t *trial) start() error {
	t.failedSyncs = t.disk.Counts().FailedSyncs
	if err := t.gateway.start(); err != nil {
		return err
	}
	for began := clock.Monotonic(); clock.Monotonic()-began < startMax; {
		if t.caller.send(t.ctx, http.MethodGet, "/healthz", "").status == http.StatusOK {
			return nil
		}
		if err := t.supervise(); err != nil {
			return err
		}
		if !wait(t.ctx, 20*time.Millisecond) {
			return context.Cause(t.ctx)
		}
	}
	return errors.New("the gateway does not serve")
}

// supervise starts the gateway again if it has ended because an fsync failed,
// as it may. That it ends for no such reason is an error.
func (t *trial) supervise() error {
	if !t.gateway.gone() {
		return nil
	}
	failed := t.disk.Counts().FailedSyncs
	if failed == t.failedSyncs {
		return errors.New("the gateway has ended")
	}
	t.failedSyncs = failed
	t.figures.add("restarts after a failed fsync", 1)
	return t.gateway.start()
}

// kill kills the gateway and starts it again.
func (t *trial) kill() error {
	t.gateway.end(syscall.SIGKILL)
	t.figures.add("kills", 1)
	if t.server != nil { // which may be recovering, and a gateway wants it at its start
		if err := t.server.await(t.ctx); err != nil {
			return err
		}
	}
	return t.start()
}

// powerCut ends everything at once, undoes what was never synced, and starts
// everything again.
func (t *trial) powerCut() error {
	t.disk.Freeze()
	t.gateway.signal(syscall.SIGKILL)
	if t.server != nil {
		t.server.kill(t.point)
	}
	t.disk.FailFrozen() // they wait for the disk, and can die only when it answers
	t.gateway.end(syscall.SIGKILL)
	if t.server != nil {
		t.server.end(syscall.SIGKILL)
	}
	if err := t.unmount(); err != nil {
		return err
	}
	t.disk.PowerCut()
	t.figures.add("power cuts", 1)
	var err error
	if t.mounted, err = t.disk.Mount(t.point); err != nil {
		return err
	}
	if t.server != nil {
		if err := t.server.serve(t.ctx); err != nil {
			return err
		}
	}
	return t.start()
}

// killFrozen kills a gateway that waits for a frozen disk, and starts it again
// on one that works. What the kernel remembers of the disk stays.
func (t *trial) killFrozen() error {
	t.gateway.signal(syscall.SIGKILL)
	t.disk.FailFrozen()
	t.gateway.end(syscall.SIGKILL)
	t.disk.Thaw()
	t.figures.add("kills", 1)
	return t.start()
}

// unmount takes the disk off, once the last of those who were killed is gone.
func (t *trial) unmount() error {
	var err error
	for range 500 {
		if err = t.mounted.Unmount(); !errors.Is(err, syscall.EBUSY) {
			break
		}
		wait(context.WithoutCancel(t.ctx), 20*time.Millisecond)
	}
	if err == nil {
		t.mounted = nil
	}
	return err
}

// close ends everything, and takes away what it left.
func (t *trial) close() error {
	if t.crowd != nil && t.crowd.stop != nil {
		t.crowd.end()
	}
	if t.gateway != nil {
		t.gateway.end(syscall.SIGKILL)
		t.lastWords += t.gateway.lastWords()
	}
	if t.server != nil {
		if t.server.cmd != nil {
			t.server.kill(t.point)
		}
		t.server.end(syscall.SIGKILL)
		t.lastWords += t.server.lastWords()
	}
	var errs []error
	if t.mounted != nil {
		errs = append(errs, t.unmount())
	}
	if t.crowd != nil {
		errs = append(errs, t.crowd.failed, t.crowd.file.Close())
	}
	if t.keep {
		_, _ = fmt.Fprintln(t.out, "  left behind:", t.folder)
	} else if len(errs) == 0 || errs[0] == nil {
		errs = append(errs, os.RemoveAll(t.folder))
	}
	return errors.Join(errs...)
}

// blamef notes something that must not be.
func (t *trial) blamef(format string, args ...any) {
	t.found = append(t.found, fmt.Sprintf(format, args...))
}

// work lets the clients work for a while.
func (t *trial) work(d time.Duration) error {
	if !wait(t.ctx, d) {
		return context.Cause(t.ctx)
	}
	return nil
}

// readsGoOn reads all the while, which must go on whatever is written.
func (t *trial) readsGoOn(d time.Duration) {
	paths := []string{"/healthz", "/balance", "/payout?limit=5"}
	if list := t.crowd.acks(0, clock.Monotonic()); len(list) > 0 {
		paths = append(paths, "/"+list[0].Kind+"/"+orderOf(list[0].Acked).ID)
	}
	for began := clock.Monotonic(); clock.Monotonic()-began < d && t.ctx.Err() == nil; {
		for _, path := range paths {
			asked := clock.Monotonic()
			if got := t.caller.send(t.ctx, http.MethodGet, path, ""); got.status != http.StatusOK && t.ctx.Err() == nil {
				t.blamef("while the disk fails, GET %s is answered %d: %s", path, got.status, got.body)
				return
			}
			t.figures.add("reads while the disk failed", 1)
			t.figures.slowest("read while the disk failed", clock.Monotonic()-asked)
		}
		wait(t.ctx, 50*time.Millisecond)
	}
}

// recoverMax is how long the gateway may take until it accepts orders again by
// itself, and payouts reach the bank again.
const recoverMax = 10 * time.Second

// recovers waits for an order that is accepted after the fault has ended.
func (t *trial) recovers() error {
	ended := clock.Monotonic()
	for clock.Monotonic()-ended < recoverMax {
		if last, _ := t.crowd.since(); last > ended {
			t.figures.slowest("recovery", last-ended)
			return nil
		}
		if err := errors.Join(t.supervise(), t.work(10*time.Millisecond)); err != nil {
			return err
		}
	}
	t.blamef("%v after the fault has ended no order is accepted", recoverMax)
	return nil
}

// impossible blames acknowledgements of what was first asked for after from,
// while nothing could be written, until to.
func (t *trial) impossible(from, to time.Duration) {
	for _, a := range t.crowd.acks(from, to) {
		t.blamef("%s %s was acknowledged while nothing could be written: %s", a.Kind, a.Reference, a.Acked)
	}
}

// verify runs porteira verify.
func (t *trial) verify() string {
	cmd := exec.CommandContext(t.ctx, t.program, append([]string{"verify"}, t.storage...)...)
	cmd.Env = rig.Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v\n%s", err, out)
	}
	return ""
}

// checkLog blames what a log should never say.
func (t *trial) checkLog() {
	text, err := os.ReadFile(t.gateway.log)
	if err != nil {
		t.blamef("%v", err)
	}
	for _, word := range []string{"panic", "fatal error"} {
		if at := strings.Index(string(text), word); at >= 0 {
			t.blamef("the log says %s", text[max(0, at-500):min(len(text), at+1500)])
		}
	}
}
