// Command disk tries the real gateway on a disk that fails: full, read-only,
// slow, too slow for what is asked of it, with an fsync that fails, without power, and restored from an older
// backup. Clients ask all the while and note what is acknowledged; afterwards
// that is compared with what the gateway shows and what the sandbox's bank did.
//
// The disk is one of ours, mounted by FUSE (see faultdisk), as no real one
// fails on demand. So this needs Linux, /dev/fuse and the right to mount; where
// they lack, it says so and exits with 2: what was not tried is not passed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/porteira/porteira/internal/env"
)

// Engines that hold the gateway's books.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// scenario is one way in which a disk fails.
type scenario struct {
	name string
	run  func(*trial) error
	// flags are given to the gateway besides.
	flags []string
}

var scenarios = []scenario{
	{"full", (*trial).full, nil},
	{"readonly", (*trial).readOnly, nil},
	{"fsync", (*trial).fsync, nil},
	{"slow", (*trial).slow, []string{"--max-in-flight", strconv.Itoa(slowCrowd / 2)}},
	{"overload", (*trial).overload, nil},
	{"power", (*trial).power, nil},
	{"restore", (*trial).restore, nil},
}

// Exit codes.
const (
	exitFaulty   = 1
	exitUnfit    = 2 // this machine cannot run the trial
	exitUsage    = 64
	programError = 70
)

var (
	// errFaulty says that a trial found something wrong, and has told what.
	errFaulty = errors.New("the gateway did what it must not")
	// errUnfit says what this machine lacks.
	errUnfit = errors.New("this machine cannot run the trial")
	errUsage = errors.New("this makes no sense")
)

// settings are what was asked for.
type settings struct {
	only    []string
	engine  string
	rounds  int
	seed    uint64
	keep    bool
	out     io.Writer
	program string // the gateway's binary
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) == 3 && os.Args[1] == holdVerb {
		err = hold(ctx, os.Args[2])
	} else {
		err = command(ctx)
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "disk:", err)
	code := programError
	for of, c := range map[error]int{errFaulty: exitFaulty, errUnfit: exitUnfit, errUsage: exitUsage} {
		if errors.Is(err, of) {
			code = c
		}
	}
	os.Exit(code) //nolint:gocritic // stop has nothing left to do
}

func command(ctx context.Context) error {
	only := flag.String("only", "", "scenarios, with commas between: full, readonly, fsync, slow, overload, power, restore; all where it is left out")
	s := settings{out: os.Stdout}
	flag.StringVar(&s.engine, "engine", "", "sqlite or postgres; both where it is left out")
	flag.IntVar(&s.rounds, "rounds", 1, "how often to run each scenario")
	flag.Uint64Var(&s.seed, "seed", 0, "of faults and orders; drawn where it is 0")
	flag.BoolVar(&s.keep, "keep", false, "leave logs and journals behind, and say where")
	flag.Parse()
	if *only != "" {
		s.only = strings.Split(*only, ",")
	}
	if err := s.complete(); err != nil {
		return err
	}
	if err := fit(); err != nil {
		return err
	}
	program, remove, err := build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	s.program = program
	for _, engine := range []string{sqlite, postgres} {
		if s.engine != "" && s.engine != engine {
			continue
		}
		if err := s.runAll(ctx, engine); err != nil {
			return err
		}
	}
	return nil
}

// complete fills in what was left out, and refuses what makes no sense.
func (s *settings) complete() error {
	if !slices.Contains([]string{"", sqlite, postgres}, s.engine) {
		return fmt.Errorf("%w: there is no engine %q", errUsage, s.engine)
	}
	for _, name := range s.only {
		if !slices.ContainsFunc(scenarios, func(c scenario) bool { return c.name == name }) {
			return fmt.Errorf("%w: there is no scenario %q", errUsage, name)
		}
	}
	if s.rounds < 1 {
		return fmt.Errorf("%w: -rounds is at least 1", errUsage)
	}
	if s.seed == 0 {
		s.seed = uint64(env.SystemRandom().Int64N(1 << 53))
	}
	return nil
}

// runAll runs each scenario on one engine.
func (s *settings) runAll(ctx context.Context, engine string) error {
	total := newFigures(engine)
	for round := range s.rounds {
		for _, c := range scenarios {
			if len(s.only) > 0 && !slices.Contains(s.only, c.name) {
				continue
			}
			if err := s.runOne(ctx, c, engine, s.seed+uint64(round), total); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *settings) runOne(ctx context.Context, c scenario, engine string, seed uint64, total *figures) error {
	began := clock.Monotonic()
	_, _ = fmt.Fprintf(s.out, "%s on %s, seed %d\n", c.name, engine, seed)
	t, err := newTrial(ctx, s, engine, seed, c.flags)
	if err != nil {
		return err
	}
	err = c.run(t)
	if err == nil {
		t.finish(c.name)
	}
	err = errors.Join(err, t.close())
	_, _ = fmt.Fprintf(s.out, "%s  took %v\n", t.figures, (clock.Monotonic() - began).Round(100*1e6))
	for _, v := range t.found {
		_, _ = fmt.Fprintln(s.out, "  FAULTY:", v)
	}
	if err != nil {
		return fmt.Errorf("%s on %s: %w\n%s", c.name, engine, err, t.lastWords)
	}
	if len(t.found) > 0 {
		return fmt.Errorf("%s on %s, -seed %d: %w", c.name, engine, seed, errFaulty)
	}
	total.join(t.figures)
	return nil
}
