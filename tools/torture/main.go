// Command torture kills and stops the real gateway, its bank, its receivers
// and its database at random under load, cuts its connections, and then
// compares the four books that are left: what the clients were told, what the
// gateway shows, what the bank did, and what the receivers were sent.
//
// The comparison shares no logic with the gateway: it reads JSON and knows the
// contract. A run draws its kills from a seed, but processes and disks keep
// their own time, so a seed repeats the plan and not the run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// engines are what a run can put under the gateway.
var engines = []string{sqlite, postgres}

const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// settings are what a run was asked for.
type settings struct {
	engine       string
	kills        int           // SIGKILLs to reach; 0 goes by duration
	duration     time.Duration // how long to go on; 0 goes by kills
	seed         uint64
	gatewayCount int // on one database
	binaries     binaries
	keep         bool // leave the folder behind
	out          io.Writer
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == receiverRole {
		os.Exit(receive(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// errFaulty says that a run found the books to differ, and has told how.
var errFaulty = errors.New("the books differ")

// command runs what the flags ask for, one engine after the other.
func command(ctx context.Context) error {
	engine := flag.String("engine", "", "sqlite or postgres; both where it is left out")
	kills := flag.Int("kills", 0, "how often to kill, per engine")
	duration := flag.Duration("for", 0, "how long to go on, per engine, instead of -kills")
	seed := flag.Uint64("seed", 0, "of the plan; drawn where it is 0")
	gateways := flag.Int("gateways", 0, "on one database, 1 or 2; PostgreSQL has 2 where it is left out, SQLite has 1")
	keep := flag.Bool("keep", false, "leave logs and journals behind, and say where")
	flag.Parse()
	if *kills <= 0 && *duration <= 0 {
		return errors.New("say how much by -kills or -for")
	}
	list := engines
	if *engine != "" {
		list = []string{*engine}
	}
	built, remove, err := build(ctx)
	if err != nil {
		return err
	}
	defer remove()
	for _, e := range list {
		s := settings{engine: e, kills: *kills, duration: *duration, seed: *seed, gatewayCount: *gateways, binaries: built, keep: *keep, out: os.Stdout}
		if err := s.complete(); err != nil {
			return err
		}
		if _, err := tortured(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// complete fills in what was left out, and refuses what makes no sense.
func (s *settings) complete() error {
	switch s.engine {
	case sqlite:
		if s.gatewayCount > 1 {
			return errors.New("one SQLite database serves one gateway")
		}
		s.gatewayCount = 1
	case postgres:
		if s.gatewayCount == 0 {
			s.gatewayCount = 2
		}
	default:
		return fmt.Errorf("there is no engine %q: choose %s", s.engine, strings.Join(engines, " or "))
	}
	if s.gatewayCount < 1 || s.gatewayCount > 2 {
		return errors.New("-gateways is 1 or 2")
	}
	if s.seed == 0 {
		s.seed = uint64(env.SystemRandom().Int64N(1 << 53))
	}
	return nil
}

// command repeats the run.
func (s *settings) command() string {
	amount := fmt.Sprintf("-kills %d", s.kills)
	if s.kills == 0 {
		amount = fmt.Sprintf("-for %s", s.duration)
	}
	return fmt.Sprintf("go run ./tools/torture -engine %s %s -gateways %d -seed %d", s.engine, amount, s.gatewayCount, s.seed)
}
