package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/internal/env"
)

type benchGrowthCommand struct {
	Data     string        `help:"Folder of a store that porteira bench seed has filled."                    placeholder:"DIR"      required:""`
	Database string        `help:"Its PostgreSQL database; SQLite in --data unless given."                   placeholder:"URL"`
	Base     string        `help:"File with what --json printed for an empty store; ratios are to it."       placeholder:"FILE"`
	Duration time.Duration `default:"10s"                                                                    help:"How long to create orders (default ${default})."            placeholder:"DURATION" short:"d"`
	Samples  int           `default:"200"                                                                    help:"How often each read and claim is measured (default ${default})." placeholder:"NUMBER" short:"n"`
	Profile  string        `help:"Write the gateway's CPU profile of the creating of orders to this file."     placeholder:"FILE"`
	Verbose  bool          `help:"Tell what is being measured, even where nobody sits at a terminal." short:"v"`
}

// Help says what is measured.
func (c *benchGrowthCommand) Help() string {
	return `It starts a gateway on the store and measures the time until it is ready, each
read and each filter of the lists, balance, events, and how many pay-ins are
created; without the gateway, what the loops look for and take in hand, and the
proof of the books of a merchant that is as large in every store. Reads are one
after another, by the merchant that has most orders and by that small one.`
}

// Run measures and prints.
func (c *benchGrowthCommand) Run(r *runner) error {
	ctx, stop := r.untilSignal()
	defer stop()
	o := bench.GrowthOptions{
		Data: c.Data, Database: c.Database, Environ: r.Environ, Duration: c.Duration, Samples: c.Samples, Profile: c.Profile, Env: env.System(env.OutboundOptions{}),
	}
	if c.Verbose || isTerminal(r.Stderr) {
		o.Progress = r.Stderr
	}
	var err error
	if o.Program, err = os.Executable(); err != nil {
		return fmt.Errorf("find this program, to start a gateway: %w", err)
	}
	if c.Base != "" {
		text, err := os.ReadFile(c.Base)
		if err == nil {
			err = json.Unmarshal(text, &o.Base)
		}
		if err != nil {
			return configError{fmt.Errorf("the base cannot be read: %w", err)}
		}
		if o.Base == nil || len(o.Base.Figures) == 0 {
			return configError{errors.New("the base holds no figures: it is what porteira --json bench growth prints")}
		}
	}
	report, err := bench.Growth(ctx, o)
	switch {
	case errors.Is(err, bench.ErrUsage), errors.Is(err, bench.ErrNotSeeded):
		return configError{err}
	case errors.Is(err, context.Canceled):
		return errors.New("it was stopped before it had measured all")
	case err != nil:
		return err
	}
	return r.out.show(report, func(w io.Writer) { report.Print(w) })
}
