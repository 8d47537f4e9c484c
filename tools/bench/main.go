// Command bench compares the gateway with a measuring stick: another program,
// which takes the same requests over HTTP. Both run in turn under the same
// load, several times, as the machine is never twice the same; what counts is
// the median of the ratios. Without a stick it prints the gateway's own
// figures.
//
// A stick is a Go program that listens at -addr, takes the bodies of pay-ins
// by POST /payin and POST /payout and answers 201 with {"id": a UUID,
// "referenceId"}; it stores with -store sqlite -driver modernc -file FILE, or
// with -store pg -dsn URL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store/storetest"
)

// Engines that hold the books.
const (
	sqlite   = "sqlite"
	postgres = "postgres"
)

// settings are what was asked for.
type settings struct {
	stick       string
	engines     string
	modes       string
	pairs       int
	concurrency int
	duration    time.Duration
	warmup      time.Duration
	open        bool
	data        string
	out         io.Writer
}

func main() {
	s := settings{out: os.Stdout}
	flag.StringVar(&s.stick, "stick", "", "folder of the measuring stick's main package; the gateway alone where it is left out")
	flag.StringVar(&s.engines, "engine", "", "sqlite or postgres; both where it is left out")
	flag.StringVar(&s.modes, "modes", "payin,payout", "what to measure, with commas between; with a stick payin and payout only")
	flag.IntVar(&s.pairs, "pairs", 5, "how often each of both runs")
	flag.IntVar(&s.concurrency, "c", 64, "connections that ask at once")
	flag.DurationVar(&s.duration, "d", 5*time.Second, "how long to measure")
	flag.DurationVar(&s.warmup, "w", time.Second, "how long the load runs before")
	flag.BoolVar(&s.open, "open", false, "compare latencies too, in an open loop at half of what the gateway can do")
	flag.StringVar(&s.data, "data", "", "folder on the disk to be measured; the system's for temporary files where it is left out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

// trial is what both programs run in.
type trial struct {
	*settings

	env     env.Env
	folder  string
	program string // the gateway
	stick   string // "" without
	engine  string
	server  *storetest.Server // nil on SQLite
}

func (s *settings) run(ctx context.Context) (err error) {
	if s.pairs < 1 {
		return errors.New("-pairs is at least 1")
	}
	t := &trial{settings: s, env: env.System(env.OutboundOptions{})}
	if t.folder, err = os.MkdirTemp(s.data, "porteira-stick-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(t.folder)) }()
	t.program = filepath.Join(t.folder, "porteira")
	if err := build(ctx, "", t.program, "-trimpath", "github.com/porteira/porteira/cmd/porteira"); err != nil {
		return err
	}
	if s.stick != "" {
		t.stick = filepath.Join(t.folder, "stick")
		if err := build(ctx, s.stick, t.stick, "."); err != nil {
			return err
		}
	}
	for _, engine := range []string{sqlite, postgres} {
		if s.engines == "" || s.engines == engine {
			if err := t.runEngine(ctx, engine); err != nil {
				return err
			}
		}
	}
	return nil
}

// build builds a Go program in a folder, or in this one.
func build(ctx context.Context, folder, to string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-o", to}, args...)...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

func (t *trial) runEngine(ctx context.Context, engine string) (err error) {
	t.engine, t.server = engine, nil
	if engine == postgres {
		if t.server, err = storetest.StartServer(); errors.Is(err, storetest.ErrNoPostgres) && t.engines == "" {
			_, _ = fmt.Fprintf(t.out, "postgres is left out: %v\n", err)
			return nil
		} else if err != nil {
			return err
		}
		defer t.server.Close()
	}
	for mode := range strings.SplitSeq(t.modes, ",") {
		if t.stick == "" {
			err = t.alone(ctx, bench.Mode(mode))
		} else {
			err = t.compare(ctx, bench.Mode(mode))
		}
		if err != nil {
			return fmt.Errorf("%s on %s: %w", mode, engine, err)
		}
	}
	return nil
}

// alone prints the gateway's own figures.
func (t *trial) alone(ctx context.Context, mode bench.Mode) error {
	report, err := bench.Run(ctx, t.gateway(mode, 0))
	if report != nil {
		report.Print(t.out)
		_, _ = fmt.Fprintln(t.out)
	}
	return err
}

// compare runs both in turn, and prints each pair and the median.
func (t *trial) compare(ctx context.Context, mode bench.Mode) error {
	_, _ = fmt.Fprintf(t.out, "%s on %s, closed loop of %d connections, %v each\n\n  pair    gateway      stick  ratio     memory\n", mode, t.engine, t.concurrency, t.duration)
	var ratios, gateways []float64
	for pair := range t.pairs {
		ours, theirs, err := t.pair(ctx, mode, 0, pair)
		if err != nil {
			return err
		}
		ratios = append(ratios, ours.Throughput/theirs.Throughput)
		gateways = append(gateways, ours.Throughput)
		_, _ = fmt.Fprintf(t.out, "  %4d  %7.0f/s  %7.0f/s  %5.2f  %7s\n", pair+1, ours.Throughput, theirs.Throughput, ratios[pair], memory(ours))
	}
	_, _ = fmt.Fprintf(t.out, "  median of the ratios      %5.2f\n\n", median(ratios))
	if t.open {
		return t.compareLatency(ctx, mode, int(median(gateways))/2)
	}
	return nil
}

// compareLatency does so with the latencies of an open loop.
func (t *trial) compareLatency(ctx context.Context, mode bench.Mode, rate int) error {
	_, _ = fmt.Fprintf(t.out, "%s on %s, open loop of %d requests/s, p99 of %v each\n\n  pair    gateway      stick  ratio\n", mode, t.engine, rate, t.duration)
	var ratios []float64
	for pair := range t.pairs {
		ours, theirs, err := t.pair(ctx, mode, rate, pair)
		if err != nil {
			return err
		}
		a, b := ours.Series[0].Latency.P99, theirs.Series[0].Latency.P99
		ratios = append(ratios, float64(a)/float64(b))
		_, _ = fmt.Fprintf(t.out, "  %4d  %6.1f ms  %6.1f ms  %5.2f\n", pair+1, float64(a)/1e3, float64(b)/1e3, ratios[pair])
	}
	_, _ = fmt.Fprintf(t.out, "  median of the ratios      %5.2f\n\n", median(ratios))
	return nil
}

// pair runs the gateway and the stick, one after the other; which of them is
// the first changes from pair to pair.
func (t *trial) pair(ctx context.Context, mode bench.Mode, rate, number int) (ours, theirs *bench.Report, err error) {
	runs := []func() error{
		func() (err error) { ours, err = bench.Run(ctx, t.gateway(mode, rate)); return err },
		func() (err error) { theirs, err = t.runStick(ctx, mode, rate); return err },
	}
	if number%2 == 1 {
		slices.Reverse(runs)
	}
	for _, run := range runs {
		if err := run(); err != nil {
			return nil, nil, err
		}
	}
	return ours, theirs, nil
}

// load is what both have to bear.
func (t *trial) load(mode bench.Mode, rate int) bench.Options {
	return bench.Options{
		Mode: mode, Concurrency: t.concurrency, Rate: rate, Warmup: t.warmup, Duration: t.duration, Merchants: 1, Env: t.env,
	}
}

func (t *trial) gateway(mode bench.Mode, rate int) bench.Options {
	o := t.load(mode, rate)
	o.Program, o.Environ, o.Data = t.program, os.Environ(), t.folder
	if t.server != nil {
		o.Database = t.server.URL()
	}
	return o
}

// memory is the gateway's peak memory.
func memory(r *bench.Report) string {
	if r.Gateway.PeakMemoryBytes == nil {
		return "n/a"
	}
	return fmt.Sprintf("%.1f MB", float64(*r.Gateway.PeakMemoryBytes)/1e6)
}

// median is the middle value, or the mean of the two in the middle.
func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
