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

	Concurrency int           `default:"64"                                                                                 help:"Connections that ask at once (default ${default})."                                                                                           placeholder:"NUMBER" short:"c"`
	Rate        int           `help:"Open loop: so many requests begin per second, and each latency counts from then."      placeholder:"NUMBER"                                                                                                           short:"r"`
	Duration    time.Duration `default:"10s"                                                                                help:"How long to measure (default ${default})."                                                                                                    placeholder:"DURATION" short:"d"`
	Warmup      time.Duration `default:"2s"                                                                                 help:"How long the load runs before (default ${default})."                                                                                          placeholder:"DURATION" short:"w"`
	Requests    int           `help:"End after so many requests, instead of after a time."                                  placeholder:"NUMBER"                                                                                                           short:"n"`
	Merchants   int           `default:"1"                                                                                  help:"Merchants that share the load (default ${default})."                                                                                          placeholder:"NUMBER"`
	Orders      int           `help:"Orders that are made before the load, for receive, webhooks, read and mixed."          placeholder:"NUMBER"`
	Seed        uint64        `help:"Seed of references, amounts and choices; drawn unless given."                          placeholder:"NUMBER"`
	Database    string        `help:"PostgreSQL server, on which the run makes a database of its own; SQLite unless given." placeholder:"URL"`
	Data        string        `help:"Folder on the disk to be measured; the system's for temporary files unless given."     placeholder:"DIR"`
	Keep        bool          `help:"Leave the run's folder, with its master key, and its database behind."`
	Gateway     []string      `help:"Flag for the gateway, such as --gateway=--log-level=warn; may be repeated."            name:"gateway"                                                                                                                 placeholder:"FLAG" sep:"none"`
	Profile     string        `help:"Write the gateway's CPU profile of the measured time to this file."                    placeholder:"FILE"`
	Calls       bool          `help:"Call the processor for each pay-in, as most want; payin and read mint them in the gateway otherwise."`
	URL         string        `help:"Measure the gateway that runs at this address."                                        name:"url"                                                                                                                     placeholder:"URL"`
	Key         string        `env:"BENCH_API_KEY"                                                                          help:"Its x-api-key; the secret is taken from BENCH_API_SECRET. The sandbox's unless given."                                   name:"api-key" placeholder:"KEY"`
	PID         int           `help:"Its process on this machine, for CPU and memory."                                      name:"pid"                                                                                                                     placeholder:"NUMBER"`
	Verbose     bool          `help:"Tell how it goes, once a second, even where that is no terminal."                      short:"v"`
}

// secretVariable names the one way to hand the secret over: others see flags.
const secretVariable = "BENCH_API_SECRET"

// Help says what the modes do.
func (c *benchCommand) Help() string {
	return `payin and payout create orders; receive lets orders be paid, until they are PAID;
webhooks the same, until the news is delivered; read gets orders and lists;
mixed is a day of shops. The load makes real orders: give it a gateway of its
own, as it does unless --url names one, and never one that moves real money.`
}

// Run measures, prints, and fails where the run's own check does.
func (c *benchCommand) Run(r *runner) error {
	ctx, stop := r.untilSignal()
	defer stop()
	o := bench.Options{
		Mode: bench.Mode(c.Mode), Environ: r.Environ, Flags: c.Gateway, Data: c.Data, Database: c.Database, Keep: c.Keep, Calls: c.Calls, Profile: c.Profile,
		URL: c.URL, Key: c.Key, PID: c.PID, Merchants: c.Merchants, Concurrency: c.Concurrency, Rate: c.Rate,
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
			return fmt.Errorf("find this program, to start a gateway: %w", err)
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
	case errors.Is(err, bench.ErrUnsound):
		return errFaulty
	case errors.Is(err, bench.ErrUsage):
		return configError{err}
	case errors.Is(err, context.Canceled):
		return errors.New("it was stopped before it had measured anything")
	}
	return err
}

// variable is the value of an environment variable; the last one counts.
func variable(environ []string, name string) (value string) {
	for _, pair := range environ {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// isTerminal says whether somebody may be watching.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
