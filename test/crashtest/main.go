// Command crashtest runs the real binary killed, stopped, disconnected, on
// failing disks: one cluster, one client, one checker, several nemeses.
//
// A run starts a cluster (gateways, the sandbox's bank, webhook receivers and,
// with -engine postgres, a PostgreSQL server), places orders, injects faults, and
// then compares four records: what the clients saw acknowledged, what the gateway
// shows, what the bank did, and what the receivers got. The checker reads JSON and
// follows the API's contract; it shares no logic with the gateway. A fault that a
// run had to inject and that never fired fails the run.
//
// A seed determines the faults that are drawn, not the run: processes and disks
// have timing of their own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Engines that a cluster can store its data in.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

var engines = []string{sqlite, postgres}

// Exit codes.
const (
	exitViolation = 1
	exitUnfit     = 2 // this machine lacks what the run needs
	exitUsage     = 64
	exitError     = 70
)

var (
	// errViolation is the error of a run that found a violation and printed it.
	errViolation = errors.New("violations were found")
	// errUnfit says what this machine lacks.
	errUnfit = errors.New("this machine cannot run it")
	errUsage = errors.New("usage")
)

// roles are what this program can be other than the test itself, by its first
// argument: processes that must be killed, or must not be this one.
var roles = map[string]func(ctx context.Context, arguments []string) error{
	receiverRole: receive,
	readerRole:   readUntilEnd,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:])
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "crashtest:", err)
	code := exitError
	for of, c := range map[error]int{errViolation: exitViolation, errUnfit: exitUnfit, errUsage: exitUsage} {
		if errors.Is(err, of) {
			code = c
		}
	}
	os.Exit(code)
}

func command(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 && roles[arguments[0]] != nil {
		return roles[arguments[0]](ctx, arguments[1:])
	}
	o, err := parse(arguments, os.Stdout)
	if err != nil || o == nil {
		return err
	}
	if len(o.scenarios) > 0 {
		if err := canMount(); err != nil {
			return err
		}
	}
	built, remove, err := build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	o.programs = built
	var all []*totals
	for _, engine := range o.engines {
		t := newTotals(engine)
		all = append(all, t)
		if len(o.scenarios) > 0 {
			err = runScenarios(ctx, o, t)
		} else {
			err = runKills(ctx, o, t)
		}
		if err != nil {
			break
		}
	}
	printTotals(o.out, all)
	return err
}
