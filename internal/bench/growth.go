package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/env"
)

// GrowthOptions say which seeded store is to be measured, and how.
type GrowthOptions struct {
	// Data and Database are those that [Seed] was given.
	Data, Database string
	// Program and Environ start the gateway, as in [Options].
	Program string
	Environ []string
	// Duration is how long orders are created, after a fifth of it as warm-up.
	Duration time.Duration
	// Samples is how often each read and each claim is measured.
	Samples int
	// Profile is a file for the gateway's CPU profile of the time in which
	// orders are created; "" takes none.
	Profile string
	// Base is what an empty store was measured at; nil for none.
	Base *GrowthReport
	// Env is the clock, chance and the way to the gateway.
	Env env.Env
	// Progress is told what is being measured; nil for nobody.
	Progress io.Writer
}

// GrowthReport is what a store of some size was measured at.
type GrowthReport struct {
	Engine  string `json:"engine"`
	Payins  int64  `json:"payins"` // that were seeded
	Payouts int64  `json:"payouts"`
	Bytes   int64  `json:"bytes"` // of the database
	Machine string `json:"machine"`
	CPUs    int    `json:"cpus"`

	// Figures are latencies, in microseconds, and rates.
	Figures []Figure `json:"figures"`
}

// Figure is one thing that was measured.
type Figure struct {
	Name  string `json:"name"`
	Count int    `json:"count"` // of samples
	// P50 and P99 are latencies in microseconds; absent for a rate.
	P50 int64 `json:"p50Micros,omitempty"`
	P99 int64 `json:"p99Micros,omitempty"`
	// PerSecond is a rate; absent for a latency.
	PerSecond float64 `json:"perSecond,omitempty"`
	// Ratio is to the base: of the medians, or of the rates. Absent without one.
	Ratio float64 `json:"ratio,omitempty"`
}

// Bounds of what is measured.
const (
	growthSampleTime = 8 * time.Second // for one figure, however slow it is
	growthStarts     = 3
	growthVerifies   = 5
	growthPayins     = 2000 // of the merchant that is as large in every store
	growthPayouts    = 200
)

// growth is one measurement.
type growth struct {
	GrowthOptions

	seeder *seeder // the store, while no gateway runs on it
	report GrowthReport
	large  reader // the merchant that has most
	small  reader // the one that is as large in every store
	maker  reader // who creates orders: the largest, where there is one
}

// Growth measures how a gateway bears a seeded store: how fast it starts, how
// long reads, claims and proofs take, and how many orders it creates. It adds
// orders to the store, of merchants of its own and of the largest.
func Growth(ctx context.Context, o GrowthOptions) (*GrowthReport, error) {
	if o.Duration <= 0 || o.Samples <= 0 {
		return nil, fmt.Errorf("%w: durations and counts are positive", ErrUsage)
	}
	g := &growth{GrowthOptions: o}
	g.report = GrowthReport{Engine: engineSQLite, Machine: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Figures: []Figure{}}
	if o.Database != "" {
		g.report.Engine = enginePostgres
	}
	release, err := lockSeeded(ctx, o.Database)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := g.within(ctx); err != nil {
		return nil, err
	}
	if err := g.throughGateway(ctx); err != nil {
		return nil, err
	}
	g.compare()
	return &g.report, nil
}

func (g *growth) tell(text string) {
	if g.Progress != nil {
		_, _ = fmt.Fprintln(g.Progress, text)
	}
}

// figure measures one thing: once to warm up, then as often as is asked for and
// time allows.
func (g *growth) figure(ctx context.Context, name string, samples int, measured func() (time.Duration, error)) error {
	g.tell(name)
	h, n := newHistogram(), 0
	clock := g.Env.Clock
	for began := clock.Monotonic(); n <= samples && (n < 2 || clock.Monotonic()-began < growthSampleTime); n++ {
		d, err := measured()
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("bench: %s: %w", name, err)
		}
		if n > 0 {
			h.record(d)
		}
	}
	v := h.summary()
	g.report.Figures = append(g.report.Figures, Figure{Name: name, Count: n - 1, P50: v.P50, P99: v.P99})
	return nil
}

// timed measures a call.
func (g *growth) timed(call func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		began := g.Env.Clock.Monotonic()
		err := call()
		return g.Env.Clock.Monotonic() - began, err
	}
}

// compare sets the ratios to the base.
func (g *growth) compare() {
	if g.Base == nil {
		return
	}
	for i := range g.report.Figures {
		f := &g.report.Figures[i]
		k := slices.IndexFunc(g.Base.Figures, func(b Figure) bool { return b.Name == f.Name })
		if k < 0 {
			continue
		}
		switch b := g.Base.Figures[k]; {
		case b.PerSecond > 0:
			f.Ratio = round(f.PerSecond/b.PerSecond, 3)
		case b.P50 > 0:
			f.Ratio = round(float64(f.P50)/float64(b.P50), 3)
		}
	}
}

// size is how many bytes a store takes.
func (g *growth) size(ctx context.Context) (int64, error) {
	if g.Database != "" {
		d := &database{clock: g.Env.Clock, admin: g.Database}
		return d.size(ctx)
	}
	var sum int64
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(g.Data + "/" + seedDatabase + suffix)
		if err == nil {
			sum += info.Size()
		} else if !errors.Is(err, os.ErrNotExist) {
			return 0, fmt.Errorf("bench: %w", err)
		}
	}
	return sum, nil
}
