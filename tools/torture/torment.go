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
	"github.com/porteira/porteira/tools/rig"
)

// How the tormentor paces itself.
const (
	tickMin = 300 * time.Millisecond
	tickMax = 1000 * time.Millisecond
	stopMin = time.Second
	stopMax = 8 * time.Second
)

// tormentMax and what each kill adds to it bound how long kills are tried for.
const (
	tormentMax        = time.Minute
	tormentMaxPerKill = 5 * time.Second
)

// What else happens in a tick, in per cent of ticks.
const (
	stopPercent    = 12
	drainPercent   = 8
	faultPercent   = 60
	cutPercent     = 80
	intrudePercent = 5
	pairPercent    = 10 // another kill in the same tick
	victimAttempts = 10 // to find one that is not being tormented already
)

// torment breaks things until there were enough kills, or enough time passed.
func (o *ordeal) torment(ctx context.Context) {
	began := clock.Monotonic()
	enough := func() bool {
		took := clock.Monotonic() - began
		if o.kills == 0 {
			return took >= o.duration
		}
		kills := o.figures.total("kills")
		return took > tormentMax+tormentMaxPerKill*time.Duration(o.kills) ||
			kills >= o.kills && o.figures.total("orders acknowledged") >= acknowledgedMin*kills && len(o.unfired()) == 0
	}
	c := o.tormentor
	for !enough() && wait(ctx, c.between(tickMin, tickMax)) {
		o.assault(c, o.kill)
		if c.percent(pairPercent) {
			o.assault(c, o.kill)
		}
		if c.percent(stopPercent) {
			length := c.between(stopMin, stopMax)
			o.assault(c, func(p *process) { o.stop(ctx, p, length) })
		}
		if c.percent(drainPercent) {
			o.assaultOne(pick(c, o.gateways), func(p *process) { o.drain(ctx, p, c.below(3)) })
		}
		if o.engine == sqlite && c.percent(intrudePercent) {
			o.assaultOne(o.gateways[0], func(p *process) { o.intrude(ctx, p) })
		}
		if c.percent(faultPercent) {
			o.armFault(ctx, c)
		}
		if len(o.database.wires) > 0 && c.percent(cutPercent) {
			o.database.disturb()
			pick(c, o.database.wires).arm(pick(c, cuts), c.below(40))
		}
	}
	o.figures.add("torment", "seconds", int((clock.Monotonic() - began).Seconds()))
}

// victims are drawn by kind, as each kind matters alike however many there are.
var victimKinds = []string{kindGateway, kindGateway, kindGateway, kindGateway, kindBank, kindBank, kindReceiver, kindServer}

// assault does something to some process that is not in the middle of
// something else.
func (o *ordeal) assault(c chance, act func(*process)) {
	for range victimAttempts {
		kind := pick(c, victimKinds)
		var list []*process
		for _, p := range o.processes {
			if p.kind == kind {
				list = append(list, p)
			}
		}
		if len(list) > 0 && o.assaultOne(pick(c, list), act) {
			return
		}
	}
}

func (o *ordeal) assaultOne(p *process, act func(*process)) bool {
	select {
	case p.acts <- func() { act(p) }:
		return true
	default:
		return false // it is being tormented already, or it is on its way up
	}
}

// kill kills a process; of a database server, sometimes only one of its parts.
func (o *ordeal) kill(p *process) {
	if p.kind == kindServer {
		o.killServer(p)
		return
	}
	if p.kill() {
		o.figures.add("kills", p.kind, 1)
	}
}

// stop lets a process stand still, as a machine that sleeps, and go on. Some
// are killed before they go on.
func (o *ordeal) stop(ctx context.Context, p *process, length time.Duration) {
	if p.kind == kindServer {
		o.database.disturb()
	}
	if !p.signal(syscall.SIGSTOP) {
		return
	}
	o.figures.add("stops", p.kind, 1)
	wait(ctx, length)
	if length > (stopMin+stopMax)*2/3 {
		if p.kill() {
			o.figures.add("kills", p.kind+" while it is stopped", 1)
		}
		return
	}
	p.signal(syscall.SIGCONT)
}

// drainMax is how long an orderly end may take: the configured 10 s, and some
// for a machine that is busy with all this.
const drainMax = 15 * time.Second

// drain asks a gateway to end in order. Some are told twice, or killed in the
// middle of it.
func (o *ordeal) drain(ctx context.Context, p *process, how int) {
	if !p.signal(syscall.SIGTERM) {
		return
	}
	began := clock.Monotonic()
	o.figures.add("drains", p.kind, 1)
	switch how {
	case 1:
		wait(ctx, tickMin)
		p.signal(syscall.SIGTERM)
	case 2:
		wait(ctx, tickMin)
		if p.kill() {
			o.figures.add("kills", p.kind+" while it drains", 1)
		}
		return
	}
	limited, cancel := clock.WithTimeout(ctx, drainMax)
	defer cancel()
	select {
	case <-p.end():
		o.figures.slowest("drain", p.kind, clock.Monotonic()-began)
	case <-limited.Done():
		if ctx.Err() == nil {
			o.blame(violation{kind: "does not end", says: []string{p.label + " got SIGTERM, and is there after " + drainMax.String(), p.lastWords()}})
		}
		p.kill()
	}
}

// intrudeMax is how long a second gateway has to find out that it is one.
const intrudeMax = 10 * time.Second

// intrude starts a second gateway on one SQLite database. It must refuse to
// run; where the first dies meanwhile, that says nothing.
func (o *ordeal) intrude(ctx context.Context, p *process) {
	first := p.pid()
	ctx, cancel := clock.WithTimeout(ctx, intrudeMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.binaries.plain, slices.Concat(p.args[1:], []string{"--listen", "127.0.0.1:0"})...)
	cmd.Env = append(rig.Environ(), p.environ...)
	out, err := cmd.CombinedOutput()
	if first == 0 || first != p.pid() {
		return
	}
	o.figures.add("second gateways refused", "", 1)
	if _, refused := errors.AsType[*exec.ExitError](err); !refused || ctx.Err() != nil {
		o.blame(violation{kind: "two gateways on one SQLite database", says: []string{string(out)}})
	}
}

// faultOperations and faultKinds are what the bank can be asked to do wrong.
var (
	faultOperations = []string{"charge", "transfer", "transfer", "query"}
	faultKinds      = []string{
		"refuse", "not_sent", "timeout_before", "timeout_after", "server_error_after", "late", "rubbish",
		"notify_twice", "notify_reordered", "notify_never",
	}
)

// armFault has the bank misbehave; a bank that is dead cannot.
func (o *ordeal) armFault(ctx context.Context, c chance) {
	kind := pick(c, faultKinds)
	body := fmt.Sprintf(`{"operation":%q,"kind":%q,"count":%d}`, pick(c, faultOperations), kind, 1+c.below(8))
	if o.bankCaller().send(ctx, "POST", o.bank+"/control/faults", body).status == 200 {
		o.figures.add("bank's faults armed", words(kind), 1)
	}
}

func (o *ordeal) bankCaller() *caller {
	return newCaller(pushTimeout, map[string]string{"Authorization": "Bearer " + bankSecret})
}

// momentPercent is how often a gateway is started that will die at a moment.
const momentPercent = 50

// chooseMoment draws where a gateway is to die, or nowhere: "moment:n" is the
// n-th time that it comes to the moment.
func (o *ordeal) chooseMoment(p *process, c chance) string {
	if p.tagged == "" || o.calm.Load() || !c.percent(momentPercent) {
		return ""
	}
	// Of two, the one that fired less often: some are rarely come to.
	moment, other := pick(c, env.Failpoints), pick(c, env.Failpoints)
	if o.figures.count("moments", momentName(string(other))) < o.figures.count("moments", momentName(string(moment))) {
		moment = other
	}
	most := 1 << c.below(9) // small numbers are as likely as large ones
	return fmt.Sprintf("%s:%d", moment, 1+c.below(most))
}

// wholeRun is how many kills, asked for, make a run in which everything must have fired at
// least once: what never fired proves nothing.
const wholeRun = 250

// unfired lists what a whole run was to do, and never did.
func (o *ordeal) unfired() (list []string) {
	look := func(figure, detail string) {
		if o.figures.count(figure, detail) == 0 {
			list = append(list, figure+": "+detail)
		}
	}
	if o.kills < wholeRun {
		return nil
	}
	for _, m := range env.Failpoints {
		look("moments", momentName(string(m)))
	}
	for _, kind := range faultKinds {
		look("bank's faults armed", words(kind))
	}
	for _, p := range o.processes {
		look("kills", p.kind)
		look("stops", p.kind)
	}
	if len(o.database.wires) > 0 {
		for _, c := range cuts {
			look("cuts", string(c))
		}
		look("kills", backendKilled)
		look("kills", sessionEnded)
	}
	return slices.Compact(list)
}

// momentName is the moment in "moment:n".
func momentName(moment string) string {
	name, _, _ := strings.Cut(moment, ":")
	return words(name)
}

// words is a name as figures may have it.
func words(name string) string { return strings.NewReplacer(".", " ", "_", " ").Replace(name) }

// disarm ends what faults are left: gateways that would die at a moment are
// ended in order, and the bank forgets what it was asked to do wrong.
func (o *ordeal) disarm(ctx context.Context) error {
	for _, w := range o.database.wires {
		w.arm(cutNever, 0)
	}
	for _, p := range o.gateways {
		done := make(chan struct{})
		select {
		case p.acts <- func() { defer close(done); o.drain(ctx, p, 0) }:
			<-done
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for range readTries {
		if o.bankCaller().send(ctx, "DELETE", o.bank+"/control/faults", "").status == 200 {
			return nil
		}
		wait(ctx, tickMin)
	}
	return fmt.Errorf("the bank does not come back: %w", ctx.Err())
}
