package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/porteira/porteira/test/crashtest/faultdisk"
)

// run is one cluster under faults, from the first start to the last comparison.
type run struct {
	*options
	*cluster

	engine  string
	seed    uint64
	folder  string // of logs and journals
	totals  *totals
	random  random // of the nemeses
	api     *httpClient
	clients *clients

	disk          *faultdisk.Disk // nil on an ordinary disk
	bankFaults    bool            // the bank may refuse, time out or lose notices
	loadGenerator bool            // orders of others than the clients are expected
	restored      bool            // an older backup replaced the database
	undisturbed   atomic.Bool     // the last fault has ended

	abort context.CancelCauseFunc

	mu         sync.Mutex
	violations []violation
}

// violationsShown bounds the violations that are printed.
const violationsShown = 20

// newRun creates a run's folder. remove removes it unless it is kept.
func newRun(o *options, t *totals, seed uint64) (r *run, remove func(), err error) {
	folder, err := os.MkdirTemp("", "porteira-crashtest-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() { _ = os.RemoveAll(folder) }
	if o.keep {
		_, _ = fmt.Fprintf(o.out, "logs and journals: %s\n", folder)
		remove = func() {}
	}
	if err := os.Chmod(folder, 0o755); err != nil { // the server's account must reach its own folder in it
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return &run{
		options: o, engine: t.engine, seed: seed, folder: folder, totals: t,
		random: newRandom(seed, streamNemesis), api: newHTTPClient(answerMax, merchantHeaders),
	}, remove, nil
}

// layout is the cluster's layout on an ordinary disk.
func (r *run) layout() layout {
	return layout{
		engine: r.engine, seed: r.seed, gateways: 1, programs: r.programs, folder: r.folder, data: r.folder, readyPath: "/readyz",
	}
}

// start starts the cluster and waits until it serves. stop ends it.
func (r *run) start(ctx context.Context) (running context.Context, stop func(), err error) {
	ctx, r.abort = context.WithCancelCause(ctx)
	var supervisors sync.WaitGroup
	stop = func() {
		r.abort(nil)
		supervisors.Wait()
		r.database.close()
	}
	if err := r.database.open(ctx); err != nil {
		if s := r.database.server; s != nil && s.pid() != 0 {
			s.kill()
		}
		return ctx, stop, err
	}
	for _, p := range r.database.proxies {
		p.counted = func(c cut) { r.totals.add("cuts", string(c), 1) }
	}
	for _, p := range r.processes {
		p.onEnd = r.ended
		supervisors.Go(func() { r.supervise(ctx, p) })
	}
	return ctx, stop, r.awaitUp(ctx, r.processes...)
}

// outcome prints the violations of a run, and returns errViolation if there are any.
func (r *run) outcome(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.violations[:min(len(r.violations), violationsShown)] {
		_, _ = fmt.Fprintf(r.out, "\n%s", v)
	}
	if n := len(r.violations); n > 0 {
		return fmt.Errorf("%w: %d on %s, seed %d", errViolation, n, r.engine, r.seed)
	}
	if err != nil && r.cluster != nil {
		for _, p := range r.processes {
			_, _ = fmt.Fprintf(r.out, "\n%s logs:\n%s", p.label, p.logTail())
		}
	}
	return err
}

// errGone ends a run in which a process cannot be started any more.
var errGone = errors.New("a process does not start any more")

// giveUp reports a violation after which the run cannot continue.
func (r *run) giveUp(v violation) {
	r.report(v)
	r.abort(errGone)
}

// report records a violation.
func (r *run) report(v violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.violations = append(r.violations, v)
}

// reportf records a violation that concerns no order.
func (r *run) reportf(kind, format string, arguments ...any) {
	r.report(violation{kind: kind, details: []string{fmt.Sprintf(format, arguments...)}})
}

// disturbs reports whether a fault may be injected now.
func (r *run) disturbs(fault string) bool {
	return !r.undisturbed.Load() && r.disk == nil && r.injects(fault)
}
