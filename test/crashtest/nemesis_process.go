package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// killOne kills a process; of a database server, sometimes only one of its parts.
func (r *run) killOne(p *process) {
	if p.kind == kindServer {
		r.killServer(p)
		return
	}
	if p.kill() {
		r.totals.add("kills", p.kind, 1)
	}
}

// killServer kills the server, one of its parts, or all of it in its own way
// (pg_ctl stop --mode=immediate is SIGQUIT).
func (r *run) killServer(p *process) {
	r.database.disturb()
	defer r.database.disturb() // from when it is down
	switch r.random.below(4) {
	case 0:
		if p.kill() {
			r.totals.add("kills", p.kind, 1)
		}
	case 1:
		if p.signal(syscall.SIGQUIT) {
			<-p.end()
			r.totals.add("kills", p.kind+" by immediate stop", 1)
		}
	case 2:
		r.killBackend(p, syscall.SIGKILL, backendKilled)
	default:
		r.killBackend(p, syscall.SIGTERM, sessionEnded)
	}
}

// Parts of the server, as the totals show them.
const (
	backendKilled = "database backend"
	sessionEnded  = "database session ended"
)

// killBackend signals one of the server's processes that serve a gateway.
func (r *run) killBackend(p *process, s syscall.Signal, name string) {
	backends := childrenOf(p.pid(), "127.0.0.1(")
	if len(backends) == 0 {
		return
	}
	if syscall.Kill(pick(r.random, backends), s) == nil {
		r.totals.add("kills", name, 1)
	}
}

// stopOne stops a process for a while, as if its machine slept. After a long stop it
// is killed.
func (r *run) stopOne(ctx context.Context, p *process, length time.Duration) {
	if p.kind == kindServer {
		r.database.disturb()
	}
	if !p.signal(syscall.SIGSTOP) {
		return
	}
	r.totals.add("stops", p.kind, 1)
	wait(ctx, length)
	if length > (stopMin+stopMax)*2/3 {
		if p.kill() {
			r.totals.add("kills", p.kind+" while it is stopped", 1)
		}
		return
	}
	p.signal(syscall.SIGCONT)
}

// drainMax is the maximum time of an orderly end: the configured 10 s, and some for a
// busy machine.
const drainMax = 15 * time.Second

// drainMode is what follows the SIGTERM of a drain.
type drainMode int

const (
	drainOnce  drainMode = iota
	drainTwice           // another SIGTERM
	drainKill            // a SIGKILL
)

// drain shuts a gateway down with SIGTERM.
func (r *run) drain(ctx context.Context, p *process, mode drainMode) {
	if !p.signal(syscall.SIGTERM) {
		return
	}
	began := clock.Monotonic()
	r.totals.add("drains", p.kind, 1)
	switch mode {
	case drainTwice:
		wait(ctx, tickMin)
		p.signal(syscall.SIGTERM)
	case drainKill:
		wait(ctx, tickMin)
		if p.kill() {
			r.totals.add("kills", p.kind+" while it drains", 1)
		}
		return
	}
	limited, cancel := clock.WithTimeout(ctx, drainMax)
	defer cancel()
	select {
	case <-p.end():
		r.totals.slowest("drain", p.kind, clock.Monotonic()-began)
	case <-limited.Done():
		if ctx.Err() == nil {
			r.report(violation{kind: "does not end", details: []string{p.label + " runs " + drainMax.String() + " after SIGTERM", p.logTail()}})
		}
		p.kill()
	}
}

// secondMax is the time in which a second gateway must refuse to run.
const secondMax = 10 * time.Second

// startSecond starts a second gateway on one SQLite database, which must refuse to
// run. If the first one dies meanwhile, the result means nothing.
func (r *run) startSecond(ctx context.Context, p *process) {
	first := p.pid()
	ctx, cancel := clock.WithTimeout(ctx, secondMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.programs.plain, slices.Concat(p.args[1:], []string{"--listen", "127.0.0.1:0"})...)
	cmd.Env = append(environ(), p.environ...)
	out, err := cmd.CombinedOutput()
	if first == 0 || first != p.pid() {
		return
	}
	r.totals.add("second gateways refused", "", 1)
	if _, refused := errors.AsType[*exec.ExitError](err); !refused || ctx.Err() != nil {
		r.report(violation{kind: "two gateways on one SQLite database", details: []string{string(out)}})
	}
}

// failpointPercent is how often a gateway starts with a failpoint.
const failpointPercent = 50

// chooseFailpoint draws a failpoint at which a gateway is to die, or "": "failpoint:n"
// is the n-th time that the gateway reaches it.
func (r *run) chooseFailpoint(p *process, draw random) string {
	if p.failpoint == "" || !r.disturbs(faultFailpoint) || !draw.percent(failpointPercent) {
		return ""
	}
	// Of two, the one that fired less often: some are rarely reached.
	chosen, other := pick(draw, env.Failpoints), pick(draw, env.Failpoints)
	if r.totals.count("failpoints", failpointName(string(other))) < r.totals.count("failpoints", failpointName(string(chosen))) {
		chosen = other
	}
	most := 1 << draw.below(9) // small numbers are as likely as large ones
	return fmt.Sprintf("%s:%d", chosen, 1+draw.below(most))
}

// failpointName is the failpoint in "failpoint:n".
func failpointName(failpoint string) string {
	name, _, _ := strings.Cut(failpoint, ":")
	return words(name)
}
