package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// options are the command line.
type options struct {
	engines      []string
	killCount    int           // SIGKILLs to reach per engine; 0 stops by duration
	duration     time.Duration // per engine; 0 stops by kills
	gatewayCount int           // on one database; 0 is the default of the engine
	seed         uint64
	scenarios    []string // of the disk; empty runs kills
	rounds       int      // of each scenario
	faults       []string // that a run of kills may inject
	keep         bool     // keep logs and journals
	out          io.Writer
	programs     programs
}

// faults that a run of kills injects.
const (
	faultKill      = "kill"
	faultStart     = "start"
	faultFailpoint = "failpoint"
	faultStop      = "stop"
	faultDrain     = "drain"
	faultSecond    = "second"
	faultBank      = "bank"
	faultNetwork   = "network"
)

// faults are all of them, with their explanations.
var faults = []struct{ name, explanation string }{
	{faultKill, "SIGKILL of a gateway, the bank, a receiver, the PostgreSQL server or one of its backends"},
	{faultStart, "SIGKILL of a process while it starts"},
	{faultFailpoint, "gateways that die at a failpoint"},
	{faultStop, "SIGSTOP of a process for some seconds; then SIGCONT or SIGKILL"},
	{faultDrain, "SIGTERM of a gateway, sometimes followed by another or by SIGKILL"},
	{faultSecond, "a second gateway on one SQLite database, which must refuse to run"},
	{faultBank, "faults of the bank: refusals, time-outs, late, garbled or repeated answers and notices"},
	{faultNetwork, "cut connections to PostgreSQL, at message boundaries and around COMMIT"},
}

const usage = `Usage: crashtest -kills N | -for DURATION [-engine sqlite|postgres] [-gateways N] [-only FAULT,...] [-seed N]
       crashtest -disk SCENARIO,...|all [-rounds N] [-engine sqlite|postgres] [-seed N]

Starts gateways, the sandbox's bank, receivers and PostgreSQL, places orders, injects faults, and compares the
acknowledgements with the records of the gateway, the bank and the receivers. With -disk the data is on a FUSE disk that fails:
that needs Linux, /dev/fuse and the right to mount. PostgreSQL is Debian's package.

`

// parse reads the command line. Without an error it returns nil if only help was
// asked for.
func parse(arguments []string, out io.Writer) (*options, error) {
	o := &options{out: out}
	set := flag.NewFlagSet("crashtest", flag.ContinueOnError)
	set.SetOutput(out)
	set.Usage = func() { o.help(set) }
	engine := set.String("engine", "", "`engine`: sqlite or postgres (default both)")
	set.IntVar(&o.killCount, "kills", 0, "inject faults until this `number` of processes was killed, per engine")
	set.DurationVar(&o.duration, "for", 0, "inject faults for this `duration`, per engine")
	set.IntVar(&o.gatewayCount, "gateways", 0, "`number` of gateways on one database, 1 or 2 (default 1 on sqlite, 2 on postgres)")
	set.Uint64Var(&o.seed, "seed", 0, "`seed` of the faults and orders (default random)")
	disk := set.String("disk", "", "`scenarios` of the disk, separated by commas, or all")
	set.IntVar(&o.rounds, "rounds", 1, "`number` of runs of each scenario")
	only := set.String("only", "", "`faults` of -kills and -for, separated by commas (default all)")
	set.BoolVar(&o.keep, "keep", false, "keep logs and journals, and print their folder")
	if err := set.Parse(arguments); errors.Is(err, flag.ErrHelp) {
		return nil, nil //nolint:nilnil // help was printed
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("%w: unexpected argument %q", errUsage, set.Arg(0))
	}
	if err := o.complete(*engine, split(*disk), split(*only)); err != nil {
		return nil, fmt.Errorf("%w: %w: see crashtest -h", errUsage, err)
	}
	return o, nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func (o *options) help(set *flag.FlagSet) {
	_, _ = fmt.Fprint(o.out, usage)
	set.PrintDefaults()
	_, _ = fmt.Fprint(o.out, "\nScenarios of -disk:\n")
	for _, s := range scenarios {
		_, _ = fmt.Fprintf(o.out, "  %-10s %s\n", s.name, s.explanation)
	}
	_, _ = fmt.Fprint(o.out, "\nFaults of -kills and -for:\n")
	for _, f := range faults {
		_, _ = fmt.Fprintf(o.out, "  %-10s %s\n", f.name, f.explanation)
	}
	_, _ = fmt.Fprintf(o.out, "\nExit status: %d for a violation, %d if this machine cannot run it, %d for usage, %d for other errors.\n",
		exitViolation, exitUnfit, exitUsage, exitError)
}

// complete sets defaults and checks the combination of options.
func (o *options) complete(engine string, disk, only []string) error {
	o.engines = engines
	if engine != "" {
		if !slices.Contains(engines, engine) {
			return fmt.Errorf("unknown engine %q", engine)
		}
		o.engines = []string{engine}
	}
	if (o.killCount > 0) == (o.duration > 0) && len(disk) == 0 {
		return errors.New("one of -kills, -for and -disk is needed")
	}
	if len(disk) > 0 && (o.killCount > 0 || o.duration > 0 || len(only) > 0 || o.gatewayCount > 1) {
		return errors.New("-disk goes with -engine, -rounds and -seed only")
	}
	if o.gatewayCount < 0 || o.gatewayCount > 2 {
		return errors.New("-gateways is 1 or 2")
	}
	if o.gatewayCount == 2 && slices.Contains(o.engines, sqlite) {
		return errors.New("one SQLite database serves one gateway: -gateways 2 needs -engine postgres")
	}
	if o.rounds < 1 {
		return errors.New("-rounds is at least 1")
	}
	if err := o.chooseScenarios(disk); err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = uint64(env.SystemRandom().Int64N(1 << 53))
	}
	return o.chooseFaults(only)
}

func (o *options) chooseScenarios(disk []string) error {
	for _, s := range scenarios {
		if slices.Contains(disk, s.name) || slices.Equal(disk, []string{"all"}) {
			o.scenarios = append(o.scenarios, s.name)
		}
	}
	if len(disk) > 0 && !slices.Equal(disk, []string{"all"}) && len(o.scenarios) != len(disk) {
		return fmt.Errorf("unknown scenario in %q", strings.Join(disk, ","))
	}
	return nil
}

func (o *options) chooseFaults(only []string) error {
	for _, f := range faults {
		if len(only) == 0 || slices.Contains(only, f.name) {
			o.faults = append(o.faults, f.name)
		}
	}
	if len(only) > 0 && len(o.faults) != len(only) {
		return fmt.Errorf("unknown fault in %q", strings.Join(only, ","))
	}
	kills := slices.ContainsFunc(o.faults, func(f string) bool { return f == faultKill || f == faultStart || f == faultFailpoint })
	if o.killCount > 0 && !kills {
		return errors.New("-kills needs a fault that kills: kill, start or failpoint")
	}
	return nil
}

// injects reports whether a run of kills may inject a fault.
func (o *options) injects(fault string) bool { return slices.Contains(o.faults, fault) }

// repetition is the command line that repeats a run.
func (o *options) repetition(engine string, seed uint64) string {
	what := fmt.Sprintf("-kills %d", o.killCount)
	if o.duration > 0 {
		what = fmt.Sprintf("-for %s", o.duration)
	}
	if o.gatewayCount > 0 {
		what += fmt.Sprintf(" -gateways %d", o.gatewayCount)
	}
	if len(o.faults) < len(faults) {
		what += " -only " + strings.Join(o.faults, ",")
	}
	return fmt.Sprintf("crashtest -engine %s %s -seed %d", engine, what, seed)
}
