// Package bench measures a gateway over its real HTTP API: load, latencies,
// and a check of its own result.
//
// A run starts a gateway as a process of its own, so that its CPU and memory
// are measured apart from the load's, or takes the address of one that runs.
// The processor is played by the measuring program itself: a bank on paper
// that answers at once and writes nothing, so that what is measured is the
// gateway. In a closed loop each connection asks as soon as it has its answer;
// in an open loop requests begin at a fixed rate, and each latency counts from
// the moment at which its request was due, so that queueing is not hidden.
package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/store"
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
	Mixed    Mode = "mixed"    // a day of a shop: all of them
)

// Modes lists every mode.
var Modes = []Mode{Payin, Payout, Receive, Webhooks, Read, Mixed}

// Options say what to measure, and how.
type Options struct {
	Mode Mode

	// Program starts the gateway to be measured, without its arguments. It is
	// not needed where URL is set.
	Program string
	// Environ is the environment of that program; settings of a gateway in it
	// are left out.
	Environ []string
	// Flags are given to that gateway besides those that the run needs.
	Flags []string
	// Calls says that the processor is called for each pay-in that the modes
	// payin and read create, as most processors want; without it, such pay-ins
	// are minted by the gateway alone. The other modes always call.
	Calls bool
	// Data is the folder in which the run makes one of its own; "" is the
	// system's for temporary files.
	Data string
	// Database is a PostgreSQL URL: the run makes a database of its own on that
	// server, and drops it. "" is SQLite.
	Database string
	// Keep leaves folder and database behind.
	Keep bool
	// Profile is a file for the gateway's CPU profile of the measured time; ""
	// for none.
	Profile string

	// URL is the address of a gateway that runs already; Key and Secret let the
	// run in, PID is its process, to be measured; 0 for none.
	URL, Key, Secret string
	PID              int
	// Bare says that URL is no gateway: it takes the bodies of pay-ins at every
	// path, and has nothing that could be checked afterwards.
	Bare bool

	// Merchants share the load; in a closed or open loop alike.
	Merchants int
	// Concurrency is how many connections ask at once.
	Concurrency int
	// Rate is how many requests begin per second; 0 is a closed loop.
	Rate int
	// Warmup runs before what is measured, Duration is measured.
	Warmup, Duration time.Duration
	// Requests ends the run after so many, warm-up included; Duration is then
	// not needed. 0 for no such end.
	Requests int
	// Orders is how many are made before the load begins, where it needs some;
	// 0 chooses.
	Orders int
	// Seed makes references, amounts and choices; 0 draws one.
	Seed uint64

	// Env is the clock, chance and the way to the gateway.
	Env env.Env
	// Progress is told once a second how the run goes; nil for nobody.
	Progress io.Writer
}

// ErrUnsound says that the run's own check found something missing or wrong,
// which its report tells.
var ErrUnsound = errors.New("bench: what was acknowledged is not all there, or an answer was wrong")

// ErrUsage says that the options make no sense; the error tells why, for people.
var ErrUsage = errors.New("this cannot be measured")

// Limits of the options.
const (
	concurrencyMax = 10_000
	merchantsMax   = 1_000
	rateMax        = 1_000_000
)

// complete fills in what was left out, and refuses what makes no sense.
func (o *Options) complete() error {
	refuse := func(text string, args ...any) error {
		return fmt.Errorf("%w: "+text, append([]any{ErrUsage}, args...)...)
	}
	switch {
	case !slices.Contains(Modes, o.Mode):
		return refuse("there is no mode %q", o.Mode)
	case o.Concurrency < 1 || o.Concurrency > concurrencyMax:
		return refuse("the concurrency is 1 to %d", concurrencyMax)
	case o.Merchants < 1 || o.Merchants > merchantsMax:
		return refuse("the merchants are 1 to %d", merchantsMax)
	case o.Rate < 0 || o.Rate > rateMax:
		return refuse("the rate is 0, for a closed loop, to %d per second", rateMax)
	case o.Warmup < 0 || o.Duration < 0 || o.Requests < 0 || o.Orders < 0:
		return refuse("durations and counts are not negative")
	case o.Duration == 0 && o.Requests == 0:
		return refuse("there is no end: give a duration or a number of requests")
	case o.URL != "" && (o.Database != "" || o.Profile != "" || o.Calls || len(o.Flags) > 0):
		return refuse("a gateway that runs already has its database, its processor and its flags")
	case o.URL != "" && o.Merchants > 1:
		return refuse("a gateway that runs already is asked with one merchant's credentials")
	case o.Database != "" && !store.IsPostgres(o.Database):
		return refuse("%s", notPostgres)
	case slices.ContainsFunc(o.Flags, elsewhere):
		return refuse("the run's gateway has a folder and a database of its own: its flags may not name others (--data, --database, --config)")
	case o.Bare && o.Mode != Payin && o.Mode != Payout:
		return refuse("what is no gateway knows no mode %q", o.Mode)
	}
	if o.Seed == 0 {
		o.Seed = uint64(o.Env.Random.Int64N(1<<53-1)) + 1
	}
	return nil
}

// notPostgres tells what is wrong with a database that is named otherwise: part
// of this program would take it for a server, and part for a file.
const notPostgres = "a database is named by a PostgreSQL URL, postgres://user@host/name; without one it is SQLite"

// elsewhere says whether a flag would lead the run's gateway to what may be
// somebody's own.
func elsewhere(flag string) bool {
	name, _, _ := strings.Cut(flag, "=")
	return name == "--data" || name == "--database" || name == "--config"
}

// Run measures. The report is there whenever there is something to tell; the
// error is [ErrUnsound] where the run's own check failed, [ErrUsage] where the
// options make no sense.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &run{Options: o, clock: o.Env.Clock}
	if r.target, err = r.open(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.target.close()) }()
	if err := r.choose(); err != nil {
		return nil, err
	}
	defer r.plan.close()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	r.tell("checking what was acknowledged")
	found, err := r.check(ctx)
	if err != nil {
		return nil, err
	}
	report = r.report(found)
	if !report.Check.Sound {
		return report, ErrUnsound
	}
	return report, nil
}
