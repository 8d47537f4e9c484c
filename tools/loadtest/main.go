// Command loadtest fills a large store through the gateway's own use cases, and
// measures a gateway on it.
//
//	go run ./loadtest -data DIR -payins 1000000 -payouts 100000
//	go run ./loadtest -data DIR -payins 1000000 -bench ../bin/porteira
//	go run ./loadtest -statement -postings 1000000
//
// The store has the history of a busy shop: a pay-in every 3 s, most of them paid, some
// canceled, the others expired; payouts completed or refused; half of the orders with
// delivered webhooks. A second run adds to the same store. With -bench, the given program
// then runs `porteira dev` on the store, and `porteira bench` measures it. With -statement, the
// program fills the statement of one merchant, in a temporary folder unless there is -data, and
// measures GET /statement as CSV. The program refuses a database that it did not create.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/porteira/porteira/internal/env"
)

// options are the flags.
type options struct {
	data      string // folder of the SQLite database, the master key and the marker
	database  string // PostgreSQL URL; "" is SQLite in data
	payins    int    // to add
	payouts   int    // to add
	merchants int
	bench     string // program to measure; "" measures nothing
	seconds   int    // of each measurement
	statement bool   // measure a statement as CSV, and nothing else
	postings  int    // of that statement
}

func main() {
	var o options
	flag.StringVar(&o.data, "data", "", "`folder` of the store; it is created")
	flag.StringVar(&o.database, "database", "", "PostgreSQL `URL` of an empty database or one that this program filled (default SQLite in the folder)")
	flag.IntVar(&o.payins, "payins", 100_000, "pay-ins to add")
	flag.IntVar(&o.payouts, "payouts", 10_000, "payouts to add")
	flag.IntVar(&o.merchants, "merchants", 10, "merchants of a new store; the nth has one nth of the first one's orders")
	flag.StringVar(&o.bench, "bench", "", "`program` to measure on the store afterwards")
	flag.IntVar(&o.seconds, "seconds", 10, "`seconds` of each measurement")
	flag.BoolVar(&o.statement, "statement", false, "measure a statement as CSV instead of orders: rows, seconds, bytes and the peak of the Go heap")
	flag.IntVar(&o.postings, "postings", 1_000_000, "`rows` of that statement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.statement {
		return runStatement(ctx, o)
	}
	if o.data == "" || o.payins < 0 || o.payouts < 0 || o.merchants < 1 || o.seconds < 1 || flag.NArg() > 0 {
		return errors.New("-data is required, and numbers must be positive: -h lists the flags")
	}
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return err
	}
	if err := fill(ctx, o, env.System(env.OutboundOptions{}).Random); err != nil {
		return err
	}
	if o.bench == "" {
		return nil
	}
	program, err := filepath.Abs(o.bench)
	if err != nil {
		return err
	}
	return measure(ctx, o, program)
}
