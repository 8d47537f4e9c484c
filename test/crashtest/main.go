// Command crashtest runs the real binary killed, stopped, disconnected, on
// failing disks: one cluster, one client, one checker, several nemeses.
//
// A run starts a cluster (gateways, the sandbox's bank, webhook receivers and, with
// -engine postgres, a PostgreSQL server), places orders, injects faults, and then
// compares four records: the clients' acknowledgements, the gateway's orders and events,
// the bank's transfers and payments, and the receivers' deliveries. The checker follows
// the API's contract and shares no code with the gateway. A run fails if a required fault
// never fired.
//
// A seed determines only the choice of faults: processes and disks have their own timing.
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
	exitUnfit     = 2 // this machine does not meet the requirements
	exitUsage     = 64
	exitError     = 70
)

var (
	// errViolation is the error of a run that found a violation and printed it.
	errViolation = errors.New("violations were found")
	// errUnfit means that this machine does not meet the requirements.
	errUnfit = errors.New("this machine cannot run it")
	errUsage = errors.New("usage")
)

// roles are the helper processes of a run, by the first argument of this program.
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
