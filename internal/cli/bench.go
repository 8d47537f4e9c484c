package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/app"
	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/env"
)

type benchCommand struct {
	Mode string `arg:"" enum:"payin,payout,receive,webhooks,read,mixed" help:"What to measure: ${enum}."`

	Concurrency int           `default:"64"                                                                                 help:"Concurrent connections (default ${default})."                                                                                           placeholder:"NUMBER" short:"c"`
	Rate        int           `help:"Open loop: requests per second; latency counts from the scheduled start."      placeholder:"NUMBER"                                                                                                           short:"r"`
	Duration    time.Duration `default:"10s"                                                                                help:"How long to measure (default ${default})."                                                                                                    placeholder:"DURATION" short:"d"`
	Warmup      time.Duration `default:"2s"                                                                                 help:"Load before the measurement (default ${default})."                                                                                          placeholder:"DURATION" short:"w"`
	Requests    int           `help:"Number of requests, instead of a duration."                                  placeholder:"NUMBER"                                                                                                           short:"n"`
	Merchants   int           `default:"1"                                                                                  help:"Merchants that share the load (default ${default})."                                                                                          placeholder:"NUMBER"`
	Orders      int           `help:"Orders created before the load, for receive, webhooks, read and mixed."          placeholder:"NUMBER"`
	Seed        uint64        `help:"Seed of references, amounts and choices (default random)."                          placeholder:"NUMBER"`
	Database    string        `help:"PostgreSQL server on which the run creates its own database (default SQLite)." placeholder:"URL"`
	Data        string        `help:"Folder on the disk to be measured (default the system's temporary folder)."     placeholder:"DIR"`
	Keep        bool          `help:"Keep the run's folder, with its master key, and its database."`
	Gateway     []string      `help:"Flag for the gateway, such as --gateway=--log-level=warn; may be repeated."            name:"gateway"                                                                                                                 placeholder:"FLAG" sep:"none"`
	Profile     string        `help:"Write a CPU profile of the gateway to this file."                    placeholder:"FILE"`
	Calls       bool          `help:"Call the processor for each pay-in, as most processors require (default: the gateway generates the codes)."`
	Endpoint    bool          `help:"Each merchant has a webhook endpoint that takes all events (payin and payout)."`
	Prices      int           `help:"Each merchant has this number of prices (default 0)." placeholder:"NUMBER"`
	Limits      bool          `help:"Each merchant has all limits, beyond what the run uses."`
	URL         string        `help:"Measure the running gateway at this URL."                                        name:"url"                                                                                                                     placeholder:"URL"`
	Key         string        `env:"BENCH_API_KEY"                                                                          help:"The x-api-key for --url; BENCH_API_SECRET is the secret (default the sandbox's)."                                   name:"api-key" placeholder:"KEY"`
	PID         int           `help:"The process id of the gateway at --url, if it is on this machine, for CPU and memory."                                      name:"pid"                                                                                                                     placeholder:"NUMBER"`
	Verbose     bool          `help:"Print progress every second, even without a terminal."                      short:"v"`
}

// secretVariable is the environment variable of the secret: other users see flags.
const secretVariable = "BENCH_API_SECRET"

// Help explains the modes.
func (c *benchCommand) Help() string {
	return `payin and payout create orders. receive pays orders and waits until they are
PAID; webhooks waits until their events are delivered. read reads orders and
lists. mixed is a mix of all, like the traffic of shops. The load creates real orders:
without --url the run starts a gateway of its own; never point it at one that
moves real money.`
}

// Run measures and prints; it fails if the run's own check fails.
func (c *benchCommand) Run(r *runner) error {
	ctx, stop := r.untilSignal()
	defer stop()
	r.growHeap()
	o := bench.Options{
		Mode: bench.Mode(c.Mode), Environ: r.Environ, Flags: c.Gateway, Data: c.Data, Database: c.Database, Keep: c.Keep, Calls: c.Calls, Profile: c.Profile,
		URL: c.URL, Key: c.Key, PID: c.PID, Endpoint: c.Endpoint, Prices: c.Prices, Limits: c.Limits, Merchants: c.Merchants, Concurrency: c.Concurrency, Rate: c.Rate,
		Warmup: c.Warmup, Duration: c.Duration, Requests: c.Requests, Orders: c.Orders, Seed: c.Seed,
		Env: env.System(env.OutboundOptions{}),
	}
	if c.Requests > 0 {
		o.Warmup, o.Duration = 0, 0
	}
	if c.Verbose || isTerminal(r.Stderr) {
		o.Progress = r.Stderr
	}
	var err error
	if c.URL == "" {
		if o.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("cannot find this program's own file to start a gateway: %w", err)
		}
	} else {
		o.Secret = variable(r.Environ, secretVariable)
		if c.Key == "" && o.Secret == "" {
			o.Key, o.Secret = app.SandboxKey, app.SandboxSecret
		}
	}
	report, err := bench.Run(ctx, o)
	if report != nil {
		err = errors.Join(r.out.show(report, func(w io.Writer) { report.Print(w) }), err)
	}
	switch {
	case errors.Is(err, bench.ErrCheckFailed):
		return errDefects
	case errors.Is(err, bench.ErrInvalidOptions):
		return configError{err}
	case errors.Is(err, context.Canceled):
		return errors.New("stopped before anything was measured")
	}
	return err
}

// variable is the value of an environment variable; the last one wins.
func variable(environ []string, name string) (value string) {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
