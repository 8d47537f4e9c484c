package main

import (
	"context"
	"slices"
	"syscall"
	"time"
)

// restartMax bounds how long a process may take until it serves, while its
// database and its bank are killed too; diskRestartMax, while only the disk fails.
const (
	restartMax     = 60 * time.Second
	diskRestartMax = 30 * time.Second
)

// readyLook is the interval of readiness checks of a process that starts.
const readyLook = 10 * time.Millisecond

// SIGKILLs during a start, in per cent of starts by kind.
var startKillPercent = map[string]int{kindGateway: 20, kindBank: 15, kindServer: 15}

const (
	startKillMin = 10 * time.Millisecond
	startKillMax = 500 * time.Millisecond
)

// supervise keeps a process running until ctx ends, and runs the nemeses' actions
// on it.
func (r *run) supervise(ctx context.Context, p *process) {
	draw := newRandom(r.seed, streamSupervisors+uint64(slices.Index(r.processes, p)))
	defer func() {
		if p.pid() != 0 {
			p.kill()
		}
	}()
	for r.restart(ctx, p, draw) {
		select {
		case <-ctx.Done():
		case <-p.end():
		case action := <-p.actions:
			action()
		case suspended := <-p.suspensions:
			suspended()
		}
	}
}

// restart starts a process that does not run and waits until it serves; false if
// ctx ended first.
func (r *run) restart(ctx context.Context, p *process, draw random) bool {
	for ctx.Err() == nil && p.pid() == 0 {
		started := clock.Monotonic()
		waited := started // the time in which its database was disturbed does not count
		if err := p.start(r.chooseFailpoint(p, draw), r.failedSyncs()); err != nil {
			r.giveUp(violation{kind: "does not start", details: []string{err.Error()}})
			return false
		}
		if r.disturbs(faultStart) && draw.percent(startKillPercent[p.kind]) {
			wait(ctx, draw.between(startKillMin, startKillMax))
			if p.kill() {
				r.totals.add("kills", p.kind+" while it starts", 1)
			}
			continue
		}
		for p.pid() != 0 && !p.ready(ctx) && r.waitToStart(ctx, p) {
			if p.needs != nil && p.needs.disturbed() {
				waited = clock.Monotonic()
			}
			if clock.Monotonic()-waited > r.restartMax(p) {
				r.giveUp(violation{kind: "does not serve", details: []string{p.label + " after " + r.restartMax(p).String(), p.logTail()}})
				return false
			}
		}
		if p.pid() != 0 && ctx.Err() == nil {
			p.serves()
			r.totals.slowest("restart", p.kind, clock.Monotonic()-started)
			if p.kind == kindServer {
				r.awaitGateways(ctx)
			}
		}
	}
	return ctx.Err() == nil
}

// waitToStart waits between two readiness checks; false if ctx ended.
func (r *run) waitToStart(ctx context.Context, p *process) bool {
	timer := clock.NewTimer(readyLook)
	defer timer.Stop()
	select {
	case <-timer.C():
	case suspended := <-p.suspensions:
		suspended()
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (r *run) restartMax(p *process) time.Duration {
	if r.disk != nil && p.kind != kindServer {
		return diskRestartMax
	}
	return restartMax
}

// awaitGateways measures how long gateways that outlived their database take until
// they are ready again.
func (r *run) awaitGateways(ctx context.Context) {
	began := clock.Monotonic()
	for _, p := range r.gateways {
		for pid := p.pid(); pid != 0 && pid == p.pid() && clock.Monotonic()-began < disturbance; wait(ctx, readyLook) {
			if p.ready(ctx) {
				r.totals.slowest("time to ready after the database", "", clock.Monotonic()-began)
				break
			}
		}
	}
}

// ended counts the end of a process at its failpoint, and reports an end that no
// fault explains: only a failed fsync may end a process, and only a missing
// database may fail a start.
func (r *run) ended(e end) {
	switch {
	case e.atFailpoint():
		r.totals.add("kills", e.process.kind+" at a failpoint", 1)
		r.totals.add("failpoints", failpointName(e.failpoint), 1)
	case e.killed:
	case e.terminated && (e.status.Signaled() || e.status.ExitStatus() == 0 || r.database.disturbed()):
		// in order, or at once at the second signal
	case !e.served && e.process.needs != nil && e.process.needs.disturbed():
	case e.process.kind != kindServer && r.failedSyncs() > e.failedSyncs:
		r.totals.add("restarts after a failed fsync", e.process.kind, 1)
	default:
		r.report(violation{kind: "ended by itself", details: []string{e.String(), e.process.logTail()}})
	}
}

// failedSyncs is the number of failed fsyncs of the disk.
func (r *run) failedSyncs() int64 {
	if r.disk == nil {
		return 0
	}
	return r.disk.Counts().FailedSyncs
}

// try runs an action on a process; false if another runs, or the process starts.
func try(p *process, action func(*process)) bool {
	select {
	case p.actions <- func() { action(p) }:
		return true
	default:
		return false
	}
}

// do runs an action on a process once it is up and no other action runs, and waits
// for the action's end.
func do(ctx context.Context, p *process, action func(*process)) error {
	done := make(chan struct{})
	select {
	case p.actions <- func() { defer close(done); action(p) }:
		<-done
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// suspend keeps supervisors from starting processes until resume is called.
func suspend(ctx context.Context, list []*process) (resume func(), err error) {
	suspended, resume := context.WithCancel(ctx)
	for _, p := range list {
		select {
		case p.suspensions <- func() { <-suspended.Done() }:
		case <-ctx.Done():
			return resume, context.Cause(ctx)
		}
	}
	return resume, nil
}

// awaitUp waits until processes serve.
func (r *run) awaitUp(ctx context.Context, list ...*process) error {
	for _, p := range list {
		for !p.up() {
			if !wait(ctx, readyLook) {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// awaitCalm waits until every process is up and no action runs.
func (r *run) awaitCalm(ctx context.Context) error {
	for _, p := range r.processes {
		if err := do(ctx, p, func(*process) {}); err != nil {
			return err
		}
	}
	return nil
}

// killAll kills processes at the same time, with the server's backends, and waits
// for their end. between runs when the signals are sent.
func (r *run) killAll(list []*process, between func()) {
	for _, p := range list {
		p.signal(syscall.SIGKILL)
		if p.kind == kindServer {
			killInFolder(r.database.home)
		}
	}
	between()
	for _, p := range list {
		<-p.end()
	}
}
