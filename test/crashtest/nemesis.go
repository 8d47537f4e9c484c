package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// Intervals of the nemeses.
const (
	tickMin = 300 * time.Millisecond
	tickMax = 1000 * time.Millisecond
	stopMin = time.Second
	stopMax = 8 * time.Second
)

// killsMax and killsMaxPerKill bound the time in which the kills must be reached, or after a duration
// the orders.
const (
	killsMax        = time.Minute
	killsMaxPerKill = 5 * time.Second
)

// The other faults of a tick, in per cent of ticks.
const (
	stopPercent    = 12
	drainPercent   = 8
	bankPercent    = 60
	cutPercent     = 80
	secondPercent  = 5
	pairPercent    = 10 // another kill in the same tick
	victimAttempts = 10 // to find a process without a fault
)

// acknowledgedMin is the minimum number of acknowledged orders per kill.
const acknowledgedMin = 2

// runKills runs the process, bank and network nemeses on one engine.
func runKills(ctx context.Context, o *options, t *totals) error {
	r, remove, err := newRun(o, t, o.seed)
	if err != nil {
		return err
	}
	defer remove()
	_, _ = fmt.Fprintln(o.out, o.repetition(t.engine, o.seed))
	return r.outcome(r.kills(ctx))
}

// defaultGateways is the number of gateways by engine.
var defaultGateways = map[string]int{sqlite: 1, postgres: 2}

func (r *run) kills(ctx context.Context) (err error) {
	l := r.layout()
	if l.gateways = r.gatewayCount; l.gateways == 0 {
		l.gateways = defaultGateways[r.engine]
	}
	l.cuttable, l.sharedKey = true, true
	r.bankFaults = r.injects(faultBank)
	if r.cluster, err = newCluster(l); err != nil {
		return err
	}
	ctx, stop, err := r.start(ctx)
	defer stop()
	if err != nil {
		return err
	}
	r.startClients(ctx, workload{clients: clientCount})
	r.disturb(ctx)
	r.undisturbed.Store(true)
	if err := errors.Join(r.clients.stop(), context.Cause(ctx)); err != nil {
		return err
	}
	if kills := r.totals.sum("kills"); kills < r.killCount || !r.progresses() {
		return fmt.Errorf("%d kills and %d orders acknowledged: too few", kills, r.totals.sum("orders acknowledged"))
	}
	if list := r.unfired(); len(list) > 0 {
		r.report(violation{kind: "never fired", details: list})
	}
	if err := r.endFaults(ctx); err != nil {
		return err
	}
	return r.check(ctx)
}

// disturb injects faults until there are enough kills or the time is over.
func (r *run) disturb(ctx context.Context) {
	began := clock.Monotonic()
	enough := func() bool {
		took, most := clock.Monotonic()-began, r.duration+killsMax
		if r.killCount > 0 {
			most = killsMax + killsMaxPerKill*time.Duration(r.killCount)
		}
		return took > most || took >= r.duration && r.totals.sum("kills") >= r.killCount && r.progresses() && len(r.unfired()) == 0
	}
	for !enough() && wait(ctx, r.random.between(tickMin, tickMax)) {
		if r.progresses() {
			r.tick(ctx)
		}
	}
	r.totals.add("seconds of faults", "", int64((clock.Monotonic() - began).Seconds()))
}

// progresses reports whether enough orders are acknowledged for the kills so far. Else faults wait: a
// gateway that starts cold takes no payout for some seconds, and one that is always killed before
// that takes none at all.
func (r *run) progresses() bool {
	return r.totals.sum("orders acknowledged") >= acknowledgedMin*r.totals.sum("kills")
}

// tick injects the faults of one tick.
func (r *run) tick(ctx context.Context) {
	draw := r.random
	if r.injects(faultKill) {
		r.tryAny(r.killOne)
		if draw.percent(pairPercent) {
			r.tryAny(r.killOne)
		}
	}
	if draw.percent(stopPercent) && r.injects(faultStop) {
		length := draw.between(stopMin, stopMax)
		r.tryAny(func(p *process) { r.stopOne(ctx, p, length) })
	}
	if draw.percent(drainPercent) && r.injects(faultDrain) {
		how := drainMode(draw.below(3))
		try(pick(draw, r.gateways), func(p *process) { r.drain(ctx, p, how) })
	}
	if r.engine == sqlite && draw.percent(secondPercent) && r.injects(faultSecond) {
		try(r.gateways[0], func(p *process) { r.startSecond(ctx, p) })
	}
	if draw.percent(bankPercent) && r.injects(faultBank) {
		r.armBankFault(ctx)
	}
	if len(r.database.proxies) > 0 && draw.percent(cutPercent) && r.injects(faultNetwork) {
		r.database.disturb()
		pick(draw, r.database.proxies).plan(pick(draw, cuts), draw.below(40))
	}
}

// victimKinds are drawn before the process, so that the number of processes of a kind does
// not matter.
var victimKinds = []string{kindGateway, kindGateway, kindGateway, kindGateway, kindBank, kindBank, kindReceiver, kindServer}

// tryAny runs an action on a process without a fault.
func (r *run) tryAny(action func(*process)) {
	for range victimAttempts {
		kind := pick(r.random, victimKinds)
		var list []*process
		for _, p := range r.processes {
			if p.kind == kind {
				list = append(list, p)
			}
		}
		if len(list) > 0 && try(pick(r.random, list), action) {
			return
		}
	}
}

// endFaults ends every fault and waits until all processes are up, also those stopped by
// the last action. Then it shuts down gateways with a failpoint and removes the bank's
// faults.
func (r *run) endFaults(ctx context.Context) error {
	for _, p := range r.database.proxies {
		p.plan(cutNever, 0)
	}
	if err := r.awaitCalm(ctx); err != nil {
		return err
	}
	for _, p := range r.gateways {
		if err := do(ctx, p, func(p *process) { r.drain(ctx, p, drainOnce) }); err != nil {
			return err
		}
	}
	if err := r.awaitCalm(ctx); err != nil {
		return err
	}
	for range readTries {
		if r.bankOperator().send(ctx, "DELETE", r.bankURL+"/control/faults", "").status == 200 {
			return nil
		}
		wait(ctx, tickMin)
	}
	return errors.New("the bank does not answer")
}

// fullRun is the number of kills from which on every fault must have fired at least once.
const fullRun = 250

// unfired lists the required faults of a full run that never fired.
func (r *run) unfired() (list []string) {
	look := func(figure, detail string) {
		if r.totals.count(figure, detail) == 0 {
			list = append(list, figure+": "+detail)
		}
	}
	if r.killCount < fullRun || len(r.faults) < len(faults) {
		return nil
	}
	for _, f := range env.Failpoints {
		look("failpoints", failpointName(string(f)))
	}
	for _, kind := range bankapi.FaultKinds {
		look("bank faults", words(string(kind)))
	}
	for _, p := range r.processes {
		look("kills", p.kind)
		look("stops", p.kind)
	}
	if len(r.database.proxies) > 0 {
		for _, c := range cuts {
			look("cuts", string(c))
		}
		look("kills", backendKilled)
		look("kills", sessionEnded)
	}
	return slices.Compact(list)
}

// words formats an identifier for the totals.
func words(name string) string { return strings.NewReplacer(".", " ", "_", " ").Replace(name) }
