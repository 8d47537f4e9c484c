// Package bench measures a gateway over its HTTP API: load, latencies, and a check
// of its own result.
//
// A run starts a gateway process, so that its CPU and memory are measured separately
// from the load generator's, or measures one that is already running. The processor
// is a bank in the measuring program, which answers immediately from memory. In a
// closed loop each connection sends a request as soon as it has the last answer; in
// an open loop requests are due at a fixed rate, and each latency counts from the
// time at which its request was due, so that queueing is not hidden.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/db"
	"github.com/porteira/porteira/internal/env"
)

// Mode is a kind of load.
type Mode string

// The modes.
const (
	Payin    Mode = "payin"    // POST /payin
	Payout   Mode = "payout"   // POST /payout
	Receive  Mode = "receive"  // notices, until their orders are PAID
	Webhooks Mode = "webhooks" // notices, until their events are delivered
	Read     Mode = "read"     // GET by id, lists, balance
	Mixed    Mode = "mixed"    // all of them, in the proportions of a shop
)

// Modes lists every mode.
var Modes = []Mode{Payin, Payout, Receive, Webhooks, Read, Mixed}

// Options are the parameters of a run.
type Options struct {
	Mode Mode

	// Program is the path of the gateway's executable. It is unused if URL is set.
	Program string
	// Environ is the environment of that program; settings of a gateway in it are
	// ignored.
	Environ []string
	// Flags are additional flags of that gateway.
	Flags []string
	// Calls makes the gateway call the processor for each pay-in of the modes payin
	// and read, as most processors require; otherwise the gateway generates their
	// charges offline. The other modes always call.
	Calls bool
	// Data is the folder in which the run creates its own folder; "" is the system's
	// folder for temporary files.
	Data string
	// Database is a PostgreSQL URL: the run creates a database on that server, and
	// drops it. "" is SQLite.
	Database string
	// Keep keeps folder and database after the run.
	Keep bool
	// Profile is a file for the gateway's CPU profile of the measured time; ""
	// for none.
	Profile string

	// URL is the address of a running gateway, Key and Secret are a merchant's
	// credentials, PID is the gateway's process; 0 measures no process.
	URL, Key, Secret string
	PID              int

	// Endpoint gives each merchant a webhook endpoint that takes all events, Prices a
	// number of prices, and Limits all limits, beyond what the run uses. Of the modes,
	// payin and payout have endpoints.
	Endpoint bool
	Prices   int
	Limits   bool

	// Merchants is the number of merchants that share the load.
	Merchants int
	// Concurrency is the number of connections.
	Concurrency int
	// Rate is the number of requests per second; 0 is a closed loop.
	Rate int
	// Warmup is the time before the measured time, Duration is the measured time.
	Warmup, Duration time.Duration
	// Requests ends the run after this number, warm-up included; Duration may then be
	// 0. 0 means no limit.
	Requests int
	// Orders is the number of orders created before the load, in modes that need
	// them; 0 chooses a number.
	Orders int
	// Seed determines references, amounts and choices; 0 draws a random one.
	Seed uint64

	// Env is the clock, randomness and the connections to the gateway.
	Env env.Env
	// Progress gets a line per second; it may be nil.
	Progress io.Writer
}

// ErrCheckFailed means that the run's check found missing orders or wrong answers;
// they are in the report.
var ErrCheckFailed = errors.New("bench: acknowledged orders are missing, or an answer was wrong")

// ErrInvalidOptions means that the options are invalid; the error's text says why.
var ErrInvalidOptions = errors.New("invalid options")

// Limits of the options.
const (
	concurrencyMax = 10_000
	merchantsMax   = 1_000
	rateMax        = 1_000_000
)

// complete sets defaults and validates the options.
func (o *Options) complete() error {
	refuse := func(text string, args ...any) error {
		return fmt.Errorf("%w: "+text, append([]any{ErrInvalidOptions}, args...)...)
	}
	switch {
	case !slices.Contains(Modes, o.Mode):
		return refuse("unknown mode %q", o.Mode)
	case o.Concurrency < 1 || o.Concurrency > concurrencyMax:
		return refuse("concurrency must be 1 to %d", concurrencyMax)
	case o.Merchants < 1 || o.Merchants > merchantsMax:
		return refuse("merchants must be 1 to %d", merchantsMax)
	case o.Rate < 0 || o.Rate > rateMax:
		return refuse("rate must be 0 (closed loop) to %d per second", rateMax)
	case o.Warmup < 0 || o.Duration < 0 || o.Requests < 0 || o.Orders < 0:
		return refuse("durations and counts must not be negative")
	case o.Duration == 0 && o.Requests == 0:
		return refuse("set a duration or a number of requests")
	case o.URL != "" && (o.Database != "" || o.Profile != "" || o.Calls || len(o.Flags) > 0):
		return refuse("a running gateway (URL) has its own database, processor and flags")
	case o.Endpoint && o.Mode != Payin && o.Mode != Payout:
		return refuse("the modes payin and payout have endpoints")
	case o.Prices < 0 || o.Prices > pricesMax:
		return refuse("prices must be 0 to %d", pricesMax)
	case o.URL != "" && (o.Endpoint || o.Prices > 0 || o.Limits):
		return refuse("a running gateway (URL) has its own endpoints, prices and limits")
	case o.URL != "" && o.Merchants > 1:
		return refuse("a running gateway (URL) allows one merchant only")
	case o.Database != "" && !db.IsPostgres(o.Database):
		return refuse("%s", databaseHint)
	case slices.ContainsFunc(o.Flags, namesStorage):
		return refuse("the run creates its own folder and database: the gateway's flags must not include --data, --database or --config")
	}
	if o.Seed == 0 {
		o.Seed = uint64(o.Env.Random.Int64N(1<<53-1)) + 1
	}
	return nil
}

// databaseHint explains an invalid database name. Parts of this program would read
// such a name as a server, and parts as a file.
const databaseHint = "database must be a PostgreSQL URL, postgres://user@host/name; without one the run uses SQLite"

// namesStorage reports whether a flag selects storage, which may hold real data.
func namesStorage(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return name == "--data" || name == "--database" || name == "--config"
}

// Run runs a measurement. The error is [ErrInvalidOptions] if the options are invalid,
// and [ErrCheckFailed] if the run's check failed; the report is nil if nothing was
// measured.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &run{Options: o, clock: o.Env.Clock}
	if r.target, err = r.open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.target.close()) }()
	if err := r.newWorkload(); err != nil {
		return nil, err
	}
	defer r.workload.close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	r.progress("checking acknowledged orders")
	found, err := r.check(ctx)
	if err != nil {
		return nil, err
	}
	report = r.report(found)
	if !report.Check.Passed {
		return report, ErrCheckFailed
	}
	return report, nil
}
