package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ordeal is one run on one engine.
type ordeal struct {
	settings

	*site
	figures   *figures
	tormentor chance
	abort     context.CancelCauseFunc
	calm      atomic.Bool // faults have stopped: nothing is broken any more

	mu         sync.Mutex
	violations []violation
}

// violationsShown bounds how many are told whole.
const violationsShown = 20

// tortured runs one ordeal, prints what came of it, and returns its figures.
// Its error is errFaulty where the books differ, or says what kept the ordeal
// from being one.
func tortured(ctx context.Context, s settings) (*figures, error) {
	if s.binaries == (binaries{}) {
		built, remove, err := build(ctx)
		if err != nil {
			return nil, err
		}
		defer remove()
		s.binaries = built
	}
	folder, err := os.MkdirTemp("", "porteira-torture-")
	if err != nil {
		return nil, err
	}
	if s.keep {
		_, _ = fmt.Fprintf(s.out, "logs and journals: %s\n", folder)
	} else {
		defer func() { _ = os.RemoveAll(folder) }()
	}
	o := &ordeal{settings: s, figures: newFigures(s.engine), tormentor: newChance(s.seed, 0)}
	_, _ = fmt.Fprintf(s.out, "%s\n", s.command())
	if err := o.run(ctx, folder); err != nil {
		return o.figures, err
	}
	o.figures.print(s.out)
	if n := len(o.violations); n > 0 {
		for _, v := range o.violations[:min(n, violationsShown)] {
			_, _ = fmt.Fprintf(s.out, "\n%s", v)
		}
		return o.figures, fmt.Errorf("%w: %d violations on %s, seed %d", errFaulty, n, s.engine, s.seed)
	}
	_, _ = fmt.Fprintf(s.out, "The four books agree.\n\n")
	return o.figures, nil
}

// run is the ordeal from the first start to the last comparison.
func (o *ordeal) run(ctx context.Context, folder string) (err error) {
	if o.site, err = newSite(o.settings, folder); err != nil {
		return err
	}
	ctx, o.abort = context.WithCancelCause(ctx)
	var keepers sync.WaitGroup
	defer func() {
		o.abort(nil)
		keepers.Wait()
		err = errors.Join(err, o.close())
	}()
	if err := o.open(ctx); err != nil {
		return err
	}
	for _, w := range o.database.wires {
		w.counted = func(c cut) { o.figures.add("cuts", string(c), 1) }
	}
	for _, p := range o.processes {
		p.onEnd = o.note
		keepers.Go(func() { o.keep(ctx, p) })
	}
	for _, p := range o.processes { // the first starts, which migrate, are disturbed by kills that come early
		for !p.up() {
			if !wait(ctx, readyLook) {
				return context.Cause(ctx)
			}
		}
	}
	crowd := o.begin(ctx, folder)
	o.torment(ctx)
	o.calm.Store(true)
	if err := errors.Join(crowd.end(), context.Cause(ctx)); err != nil {
		return err
	}
	kills, acknowledged := o.figures.total("kills"), o.figures.total("orders acknowledged")
	if kills < o.kills || acknowledged < acknowledgedMin*kills {
		return fmt.Errorf("%d kills and %d orders acknowledged: too little to prove anything", kills, acknowledged)
	}
	if list := o.unfired(); len(list) > 0 {
		o.blame(violation{kind: "never fired", says: list})
	}
	if err := o.disarm(ctx); err != nil {
		return err
	}
	return o.judge(ctx, folder)
}

// errHopeless ends an ordeal in which a process is gone for good.
var errHopeless = errors.New("a process is gone for good")

// giveUp is blame for what the ordeal cannot go on after.
func (o *ordeal) giveUp(v violation) {
	o.blame(v)
	o.abort(errHopeless)
}

// blame notes something wrong that was seen while the ordeal went on.
func (o *ordeal) blame(v violation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.violations = append(o.violations, v)
}

// acknowledgedMin is how many orders per kill must have been acknowledged, for
// the run to prove anything.
const acknowledgedMin = 2

// restartMax bounds how long a process may take until it serves, with its
// database and its bank dying meanwhile.
const restartMax = 60 * time.Second

// keep keeps a process alive until ctx ends: it does to it what the tormentor
// wants, and starts it again.
func (o *ordeal) keep(ctx context.Context, p *process) {
	c := newChance(o.seed, 1000+uint64(slices.Index(o.processes, p)))
	defer func() {
		if p.pid() != 0 {
			p.kill()
		}
	}()
	for o.restart(ctx, p, c) {
		select {
		case <-ctx.Done():
		case <-p.end():
		case act := <-p.acts:
			act()
		}
	}
}

// restart starts a process that is not running until it serves; false if ctx
// ended first.
func (o *ordeal) restart(ctx context.Context, p *process, c chance) bool {
	began := clock.Monotonic()
	for ctx.Err() == nil && p.pid() == 0 {
		started := clock.Monotonic()
		if err := p.start(o.chooseMoment(p, c)); err != nil {
			o.giveUp(violation{kind: "does not start", says: []string{err.Error()}})
			return false
		}
		if !o.calm.Load() && c.percent(startKillPercent[p.kind]) {
			wait(ctx, c.between(startKillMin, startKillMax))
			if p.kill() {
				o.figures.add("kills", p.kind+" while it starts", 1)
			}
			continue
		}
		for p.pid() != 0 && !p.ready(ctx) && wait(ctx, readyLook) {
			if clock.Monotonic()-began > restartMax {
				o.giveUp(violation{kind: "does not serve", says: []string{p.label + " after " + restartMax.String(), p.lastWords()}})
				return false
			}
		}
		if p.pid() != 0 && ctx.Err() == nil {
			p.serves()
			o.figures.slowest("restart to ready", p.kind, clock.Monotonic()-started)
			if p.kind == kindServer {
				o.awaitGateways(ctx)
			}
		}
	}
	return ctx.Err() == nil
}

// awaitGateways measures how long gateways that outlived their database take to
// serve again once it is back.
func (o *ordeal) awaitGateways(ctx context.Context) {
	began := clock.Monotonic()
	for _, p := range o.gateways {
		for pid := p.pid(); pid != 0 && pid == p.pid() && clock.Monotonic()-began < disturbance; wait(ctx, readyLook) {
			if p.ready(ctx) {
				o.figures.slowest("ready after its database", "", clock.Monotonic()-began)
				break
			}
		}
	}
}

// readyLook is how often a process that starts is asked whether it serves.
const readyLook = 10 * time.Millisecond

// Kills that come before a process serves, by kind.
var startKillPercent = map[string]int{kindGateway: 20, kindBank: 15, kindServer: 15}

const (
	startKillMin = 10 * time.Millisecond
	startKillMax = 500 * time.Millisecond
)

// note counts a process's death at its moment, and blames an end that nothing
// explains: only a start may fail, and only for want of a database.
func (o *ordeal) note(e end) {
	switch {
	case e.atMoment():
		o.figures.add("kills", e.process.kind+" at a named moment", 1)
		o.figures.add("moments", momentName(e.moment), 1)
	case e.killed:
	case e.told && (e.status.Signaled() || e.status.ExitStatus() == 0 || o.database.disturbed()):
		// in order, or at once at the second signal
	case !e.served && e.process.needs != nil && e.process.needs.disturbed():
	default:
		o.blame(violation{kind: "ended by itself", says: []string{e.String(), e.process.lastWords()}})
	}
}

// journalPath is where a client keeps its journal.
func journalPath(folder string, client int) string {
	return filepath.Join(folder, fmt.Sprintf("client-%d.journal", client))
}
