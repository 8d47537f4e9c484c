package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/porteira/porteira/test/crashtest/faultdisk"
)

// scenario is one way in which a disk fails.
type scenario struct {
	name         string
	explanation  string
	run          func(*diskRun, context.Context) error
	workload     workload
	embeddedBank bool
	flags        []string // of the gateway, besides
}

// scenarios run with all data of the gateway and the bank on the failing disk; with
// PostgreSQL, all data of the server.
var scenarios = []scenario{
	{"full", "runs full twice; reads continue, orders are refused, a gateway starts; then the power is cut",
		(*diskRun).full, workload{clients: clientCount}, false, nil},
	{"readonly", "turns read-only twice; on postgres the server does",
		(*diskRun).readOnly, workload{clients: clientCount}, false, nil},
	{"fsync", "fsyncs of each file fail with EIO; then the gateway continues or is killed, and the power is cut",
		(*diskRun).fsync, workload{clients: clientCount}, false, nil},
	{"slow", "fsyncs take up to 50 ms, 500 ms and 2 s, under 400 clients",
		(*diskRun).slow, workload{clients: slowClients, plain: true}, true, []string{"--max-in-flight", strconv.Itoa(slowClients / 2)}},
	{"overload", "fsyncs take up to 600 ms, under 2, 5 and 10 times the orders that the gateway can accept",
		(*diskRun).overload, workload{clients: clientCount, plain: true}, true, nil},
	{"power", "power cuts at random times: unsynced writes are kept, lost or torn",
		(*diskRun).power, workload{clients: clientCount}, false, nil},
	{"restore", "an older backup replaces the database",
		(*diskRun).restore, workload{clients: clientCount, plain: true}, true, nil},
}

// diskRun is a run on a disk that fails.
type diskRun struct {
	*run

	mountPoint string
	mounted    *faultdisk.Mount // nil while it is not mounted
	gateway    *process
	logFrom    int // length of PostgreSQL's log when the disk began to run full
}

// canMount returns an error if no disk can be mounted here.
func canMount() error {
	folder, err := os.MkdirTemp("", "porteira-crashtest-mount-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(folder) }()
	m, err := faultdisk.New(1).Mount(folder)
	if err != nil {
		return fmt.Errorf("%w: -disk needs Linux, /dev/fuse and the right to mount (as root): %w", errUnfit, err)
	}
	return m.Unmount()
}

// runScenarios runs the chosen scenarios on one engine.
func runScenarios(ctx context.Context, o *options, t *totals) error {
	for round := range o.rounds {
		for _, s := range scenarios {
			if !slices.Contains(o.scenarios, s.name) {
				continue
			}
			if err := runScenario(ctx, o, t, s, o.seed+uint64(round)); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

func runScenario(ctx context.Context, o *options, t *totals, s scenario, seed uint64) error {
	began := clock.Monotonic()
	_, _ = fmt.Fprintf(o.out, "crashtest -disk %s -engine %s -seed %d\n", s.name, t.engine, seed)
	r, remove, err := newRun(o, t, seed)
	if err != nil {
		return err
	}
	d := &diskRun{run: r, mountPoint: filepath.Join(r.folder, "disk")}
	err = d.execute(ctx, s)
	if err := errors.Join(err, d.unmount(ctx)); err != nil {
		err = r.outcome(err)
		if d.mounted == nil {
			remove()
		}
		return err
	}
	err = r.outcome(nil)
	remove()
	_, _ = fmt.Fprintf(o.out, "  took %v\n", (clock.Monotonic() - began).Round(time.Second/10))
	return err
}

// execute runs a scenario on a cluster whose data is on the disk, and compares the
// records.
func (d *diskRun) execute(ctx context.Context, s scenario) (err error) {
	if err := os.Mkdir(d.mountPoint, 0o755); err != nil {
		return err
	}
	d.disk = faultdisk.New(d.seed)
	if d.mounted, err = d.disk.Mount(d.mountPoint); err != nil {
		return err
	}
	l := d.layout()
	l.data, l.readyPath, l.embeddedBank, l.flags = d.mountPoint, "/healthz", s.embeddedBank, s.flags
	if d.cluster, err = newCluster(l); err != nil {
		return err
	}
	d.gateway = d.gateways[0]
	ctx, stop, err := d.start(ctx)
	defer stop()
	if err != nil {
		return err
	}
	if d.database.server != nil { // the server's installation is not under test
		d.disk.SyncAll()
	}
	d.startClients(ctx, s.workload)
	err = s.run(d, ctx)
	if err := errors.Join(err, d.clients.stop(), context.Cause(ctx)); err != nil {
		return err
	}
	if err := d.check(ctx); err != nil {
		return err
	}
	d.count(s)
	return nil
}

// count adds the faults that fired to the totals.
func (d *diskRun) count(s scenario) {
	counts := d.disk.Counts()
	d.totals.add("scenarios", s.name, 1)
	d.totals.add("fsyncs failed", "", counts.FailedSyncs)
	d.totals.add("fsyncs delayed", "", counts.Slow)
	d.totals.add("writes refused", "disk full", counts.Full)
	d.totals.add("writes refused", "disk read-only", counts.ReadOnly)
	d.totals.add("writes undone by power cuts", "", counts.Lost)
}

// kill kills the gateway and waits until it serves again.
func (d *diskRun) kill(ctx context.Context) error {
	if err := do(ctx, d.gateway, func(p *process) { p.kill() }); err != nil {
		return err
	}
	d.totals.add("kills", kindGateway, 1)
	return d.awaitCalm(ctx)
}

// powerCut kills all processes at the same time, undoes unsynced changes, and restarts them.
func (d *diskRun) powerCut(ctx context.Context) error {
	list := d.onMachine()
	resume, err := suspend(ctx, list)
	defer resume()
	if err != nil {
		return err
	}
	d.database.disturb()
	d.disk.Freeze()
	// Processes blocked on the disk end only when it answers.
	d.killAll(list, d.disk.FailFrozen)
	if err := d.unmount(ctx); err != nil {
		return err
	}
	d.disk.PowerCut()
	d.totals.add("power cuts", "", 1)
	if d.mounted, err = d.disk.Mount(d.mountPoint); err != nil {
		return err
	}
	resume()
	return d.awaitCalm(ctx)
}

// killFrozen kills all processes on a frozen disk, and restarts them on a working one. The
// kernel's cache of the disk is kept.
func (d *diskRun) killFrozen(ctx context.Context) error {
	list := d.onMachine()
	resume, err := suspend(ctx, list)
	defer resume()
	if err != nil {
		return err
	}
	d.killAll(list, d.disk.FailFrozen)
	d.disk.Thaw()
	d.totals.add("kills", "all on a frozen disk", 1)
	resume()
	return d.awaitCalm(ctx)
}

// unmountMax bounds the time until the last file of a killed process is closed.
const unmountMax = 10 * time.Second

// unmount unmounts the disk after the last killed process has ended.
func (d *diskRun) unmount(ctx context.Context) error {
	if d.mounted == nil {
		return nil
	}
	var err error
	for began := clock.Monotonic(); clock.Monotonic()-began < unmountMax; {
		if err = d.mounted.Unmount(); !errors.Is(err, syscall.EBUSY) {
			break
		}
		wait(context.WithoutCancel(ctx), readyLook)
	}
	if err == nil {
		d.mounted = nil
	}
	return err
}

// work waits while the clients work.
func work(ctx context.Context, length time.Duration) error {
	if !wait(ctx, length) {
		return context.Cause(ctx)
	}
	return nil
}

// keepReading reads for a while: reads must be answered during all faults of the disk, unless
// PostgreSQL itself has stopped.
func (d *diskRun) keepReading(ctx context.Context, length time.Duration) {
	paths := []string{"/healthz", "/balance", "/payout?limit=5"}
	if list := d.clients.acknowledgedBetween(0, clock.Monotonic()); len(list) > 0 {
		paths = append(paths, "/"+list[0].kind+"/"+list[0].id)
	}
	for began := clock.Monotonic(); clock.Monotonic()-began < length && ctx.Err() == nil; {
		for _, path := range paths {
			asked := clock.Monotonic()
			got := d.api.send(ctx, "GET", d.gatewayURLs[0]+path, "")
			if got.status == 503 && d.database.panickedSince(d.logFrom) {
				d.totals.add("reads refused while PostgreSQL had no space for its log", "", 1)
				continue
			}
			if got.status != 200 && ctx.Err() == nil {
				d.reportf("read refused", "while the disk fails, GET %s is answered %d: %s", path, got.status, got.body)
				return
			}
			d.totals.add("reads while the disk failed", "", 1)
			d.totals.slowest("read while the disk failed", "", clock.Monotonic()-asked)
		}
		wait(ctx, 50*time.Millisecond)
	}
}

// recoverMax is the maximum time after a fault until the gateway accepts orders again.
const recoverMax = 10 * time.Second

// recovers waits until an order is accepted after the end of a fault.
func (d *diskRun) recovers(ctx context.Context) error {
	ended := clock.Monotonic()
	for clock.Monotonic()-ended < recoverMax {
		if last, _ := d.clients.progress(); last > ended {
			d.totals.slowest("recovery", "", last-ended)
			return nil
		}
		if err := work(ctx, readyLook); err != nil {
			return err
		}
	}
	d.reportf("no recovery", "%v after the end of the fault no order is accepted", recoverMax)
	return nil
}

// notAcknowledged reports orders that were placed after from, while nothing could be
// written, and acknowledged before to.
func (d *diskRun) notAcknowledged(from, to time.Duration) {
	for _, o := range d.clients.acknowledgedBetween(from, to) {
		d.reportf("acknowledged without a write", "%s %s was acknowledged as %s while nothing could be written", o.kind, o.reference, o.id)
	}
}
