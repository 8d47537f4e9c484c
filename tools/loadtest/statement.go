package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/httpapi"
	"github.com/porteira/porteira/internal/merchant"
)

const (
	// pairPostings is how many postings a pay-in and a payout leave in the statement, on average:
	// one per pay-in that is paid, and three per payout (held, and paid or refused).
	pairPostings = paidShare/100.0 + 3
	// heapInterval is the time between two readings of the heap.
	heapInterval = 2 * time.Millisecond
)

// statementResult is one statement as CSV, as a client of the API read it.
type statementResult struct {
	rows       int64 // without the header
	size       int64 // bytes
	took       time.Duration
	heapBefore uint64 // bytes of the Go heap, after a collection
	heapPeak   uint64
}

// runStatement measures a statement, and prints the result.
func runStatement(ctx context.Context, o options) error {
	if o.postings < 1 || flag.NArg() > 0 {
		return errors.New("-postings must be positive: -h lists the flags")
	}
	if o.data == "" {
		folder, err := os.MkdirTemp("", "loadtest")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		o.data = folder
	}
	o.merchants = 1
	r, err := measureStatement(ctx, o, env.System(env.OutboundOptions{}).Random)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows in %.1f s (%.0f rows/s); %.1f MB; heap %.1f MB before, %.1f MB at its peak\n",
		r.rows, r.took.Seconds(), float64(r.rows)/r.took.Seconds(), float64(r.size)/1e6, float64(r.heapBefore)/1e6, float64(r.heapPeak)/1e6)
	return nil
}

// measureStatement fills the statement of the first merchant with at least o.postings rows, and
// reads it as CSV from the API, over loopback.
func measureStatement(ctx context.Context, o options, random env.Random) (r statementResult, err error) {
	f, err := newFiller(ctx, o, random, int(float64(o.postings)/pairPostings))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.store.Close()) }()
	if err := f.fillStatement(ctx, int64(o.postings)); err != nil {
		return r, err
	}
	c, secret, err := f.core.Merchants.CreateCredential(ctx, merchant.NewCredential{Merchant: f.merchants[0].ID})
	if err != nil {
		return r, err
	}
	if err := f.core.Leave(ctx, true); err != nil {
		return r, err
	}
	address, stop, err := f.serve(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/statement", nil)
	if err != nil {
		return r, err
	}
	request.Header = http.Header{"Accept": {"text/csv"}, "X-Api-Key": {c.KeyID}, "X-Api-Secret": {secret}}
	return readStatement(request)
}

// fillStatement adds orders until the statement of the first merchant has so many rows.
func (f *filler) fillStatement(ctx context.Context, postings int64) error {
	for {
		end, err := f.store.StatementEnd(ctx, f.merchants[0].ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "\r%d of %d postings ", end, postings)
		if end >= postings {
			fmt.Fprintln(os.Stderr)
			return nil
		}
		n := min(batch, 1+int(float64(postings-end)/pairPostings))
		if err := f.addOrders(ctx, n, n); err != nil {
			return err
		}
	}
}

// serve serves the API of the store, as a gateway does.
func (f *filler) serve(ctx context.Context) (address string, stop func() error, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	api := httpapi.New(httpapi.Options{
		Admission: f.core.Writer, Payins: f.core.Payins, Payouts: f.core.Payouts, Reader: f.store, Keys: f.store.Keys(), Env: env.System(env.OutboundOptions{}), Log: log,
	})
	server := httpapi.Server(api, log)
	go func() { _ = server.Serve(listener) }() // ends with Close
	return listener.Addr().String(), server.Close, nil
}

// readStatement counts the rows of a statement, and keeps none of them.
func readStatement(request *http.Request) (r statementResult, err error) {
	runtime.GC()
	r.heapBefore = heap()
	peak := watchHeap()
	defer func() { r.heapPeak = peak() }()
	clock := env.NewSystemClock()
	began := clock.Monotonic()
	answer, err := env.System(env.OutboundOptions{}).Processor.RoundTrip(request) // which may dial loopback
	if err != nil {
		return r, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return r, fmt.Errorf("the API answered %s", answer.Status)
	}
	part := make([]byte, 64<<10)
	for r.rows = -1; err == nil; { // the header is no row
		var n int
		n, err = answer.Body.Read(part)
		r.size += int64(n)
		r.rows += int64(bytes.Count(part[:n], []byte{'\n'}))
	}
	r.took = clock.Monotonic() - began
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return r, err
}

// heap is the size of all objects of the Go heap, in bytes, with those not yet swept.
func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap reads the heap again and again; peak ends that, and returns the largest size.
func watchHeap() (peak func() uint64) {
	end, largest := make(chan struct{}), make(chan uint64)
	go func() {
		clock, most := env.NewSystemClock(), heap()
		for {
			next := clock.NewTimer(heapInterval)
			select {
			case <-next.C():
				most = max(most, heap())
			case <-end:
				next.Stop()
				largest <- max(most, heap())
				return
			}
		}
	}()
	return func() uint64 {
		close(end)
		return <-largest
	}
}
