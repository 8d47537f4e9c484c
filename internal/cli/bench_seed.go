package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/env"
)

// benchCommands are the kinds of measurement.
type benchCommands struct {
	Run    benchCommand       `cmd:"" default:"withargs" help:"Measure what a gateway can do on this machine, over its HTTP API."`
	Seed   benchSeedCommand   `cmd:"" help:"Fill a store with made-up orders, to measure how a gateway bears growth."`
	Growth benchGrowthCommand `cmd:"" help:"Measure how a gateway bears what a seeded store holds."`
}

type benchSeedCommand struct {
	Data      string `help:"Folder of the store: a new or an empty one, or one that was seeded before."    placeholder:"DIR" required:""`
	Database  string `help:"PostgreSQL database that is empty or was seeded; SQLite in --data unless given." placeholder:"URL"`
	Payins    int64  `help:"Pay-ins that the store is to hold in the end."                                 placeholder:"NUMBER"`
	Payouts   int64  `help:"Payouts that the store is to hold in the end."                                 placeholder:"NUMBER"`
	Merchants int    `help:"Merchants that share them; 10 in a new store."                                 placeholder:"NUMBER"`
}

// Help says what is made.
func (c *benchSeedCommand) Help() string {
	return `The orders go through the gateway's own verbs, a slice of them at a time:
references in no order, one pay-in each 3 s from a year ago on, 60 % paid, 2 % canceled, the rest
expired or pending; payouts to their end; ledger, events and deliveries as they
follow. The same command again, with higher numbers or after a stop, goes on.
A folder or a database that seeding did not make is not touched.`
}

// Run fills the store.
func (c *benchSeedCommand) Run(r *runner) error {
	ctx, stop := r.untilSignal()
	defer stop()
	seeded, err := bench.Seed(ctx, bench.SeedOptions{
		Data: c.Data, Database: c.Database, Payins: c.Payins, Payouts: c.Payouts, Merchants: c.Merchants,
		Env: env.System(env.OutboundOptions{}), Progress: r.Stderr,
	})
	switch {
	case errors.Is(err, bench.ErrUsage), errors.Is(err, bench.ErrNotSeeded):
		return configError{err}
	case seeded == nil && errors.Is(err, context.Canceled):
		return bench.ErrStopped
	case seeded == nil:
		return err
	}
	return errors.Join(err, r.out.show(seeded, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "The store holds %d pay-ins and %d payouts of %d merchants. This run added %d orders in %.1f s, %.0f a second.\n",
			seeded.Payins, seeded.Payouts, seeded.Merchants, seeded.Made, seeded.Seconds, seeded.PerSecond)
	}))
}
