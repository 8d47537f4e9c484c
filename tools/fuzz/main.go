// Command fuzz runs every fuzz target of this module, one after the other, and
// tells how many inputs each of them tried.
//
//	go run ./tools/fuzz [-each 5s | -total 20m] [-only REGEXP] [-record]
//
// It stops at the first failure, and shows the failing input, which Go has put
// into the package's testdata, and the command that repeats it. What reached
// new code is kept in Go's build cache, as go test -fuzz does, so that runs
// build upon each other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/tools/results"
)

// eachDefault is the time of a target where none is given.
const eachDefault = 5 * time.Second

// memory is where Linux keeps files in memory. What targets write goes there: it
// need not survive a power cut, and a disk's syncs would cost most of the time.
const memory = "/dev/shm"

func main() {
	if len(os.Args) > 1 && os.Args[1] == stripVerb {
		os.Exit(strip(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	each, total time.Duration
	only        *regexp.Regexp
	record      bool
}

func parse(arguments []string) (o options, err error) {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.DurationVar(&o.each, "each", 0, "time for each target (5s unless -total is given)")
	flags.DurationVar(&o.total, "total", 0, "time for all targets, in equal shares")
	only := flags.String("only", "", "regular expression of the targets to run, such as brcode or FuzzDecode$")
	flags.BoolVar(&o.record, "record", false, "add the figures to RESULTS.md")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 || o.each < 0 || o.total < 0 || o.each > 0 && o.total > 0 {
		return o, errors.New("give either -each or -total, and nothing else")
	}
	if o.each == 0 && o.total == 0 {
		o.each = eachDefault
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, out io.Writer, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	room, err := os.MkdirTemp("", "porteira-fuzz-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(room) }()
	targets, err := prepare(ctx, out, o.only, room)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(memory, "porteira-fuzz-")
	if err != nil {
		scratch = room
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	figures := map[string]int64{}
	clock := env.NewSystemClock()
	began := clock.Monotonic()
	for i, t := range targets {
		share := o.each
		if o.total > 0 {
			share = max((o.total-(clock.Monotonic()-began))/time.Duration(len(targets)-i), time.Second)
		}
		start := clock.Monotonic()
		count, err := t.fuzz(ctx, share, scratch)
		if err != nil {
			return err
		}
		took := clock.Monotonic() - start
		_, _ = fmt.Fprintf(out, "%-32s %-20s %6.0fs %12d executions %8.0f/s %6d inputs kept\n",
			t.folder, t.name, took.Seconds(), count.executions, float64(count.executions)/took.Seconds(), count.kept)
		figures["executions"] += count.executions
		figures["executions: "+strings.ReplaceAll(strings.TrimPrefix(t.folder, "internal/"), "/", " ")+" "+t.name] = count.executions
	}
	took := clock.Monotonic() - began
	figures["seconds"] = int64(took.Seconds())
	figures["max targets"] = int64(len(targets))
	_, _ = fmt.Fprintf(out, "%d targets, %d executions in %s\n", len(targets), figures["executions"], took.Round(time.Second))
	if !o.record {
		return nil
	}
	command := strings.TrimSpace("go run ./tools/fuzz " + strings.Join(arguments, " "))
	return results.Add("fuzz", command, figures)
}
