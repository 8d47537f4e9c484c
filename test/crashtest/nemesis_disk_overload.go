package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// The load of an overload.
const (
	// overloadSync is the longest fsync. It must exceed the CPU time of the FUSE disk and
	// of the load generator.
	overloadSync = 600 * time.Millisecond
	// capacityLoad is the number of connections that measure the capacity: enough for
	// full batches, one in flight and one pending, and too few for many refusals.
	capacityLoad = 500
	// A server's batch takes longer than the second that admission allows, so that no
	// order may wait for the batch after the next; and half a minute has too few
	// batches.
	capacityLoadServer = 450
	serverTime         = 2 * overloadTime
	// overloadConnections must exceed the waiting orders, or the load would throttle
	// itself.
	overloadConnections = 2048
	overloadTime        = 30 * time.Second
	overloadWarmUp      = 5 * time.Second
)

// The limits.
const (
	goodputLeast   = 0.9             // of the capacity
	capacityLeast  = 0.85            // of the capacity before, once the overload is over
	memoryMost     = 1.25            // times the memory under the smallest overload
	normalMost     = 5 * time.Second // until the latency is normal again
	normalSlowdown = 2               // times the latency before
	// refusedMost is the share, one in so many, of orders that may be refused at
	// capacity: if a commit waits for the fsyncs of others, the next is too far off.
	refusedMost = 50
)

// overloads are the multiples of the capacity that are requested.
var overloads = []int{2, 5, 10}

// loadReport is the part of porteira bench --json that is used.
type loadReport struct {
	Throughput float64 `json:"throughput"` // per second
	Series     []struct {
		Count     int64             `json:"count"`
		PerSecond float64           `json:"perSecond"`
		Latency   percentiles       `json:"latencyMicros"`
		Errors    map[string]int64  `json:"errors"`        // by status
		Refusal   *percentiles      `json:"refusalMicros"` // of answers of 503
		Samples   map[string]string `json:"samples"`       // of the errors' answers
	} `json:"series"`
	Unsent  int64 `json:"unsent"`
	Gateway struct {
		PeakMemoryBytes *int64 `json:"peakMemoryBytes"`
	} `json:"gateway"`
	Check struct {
		Acknowledged int64 `json:"acknowledged"`
	} `json:"check"`
}

type percentiles struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
}

// overload requests far more orders than a gateway on a slow disk can commit. The gateway
// must still accept as many as it can and refuse the rest quickly. Reads, health checks and
// notices are answered, memory is bounded, and latency soon recovers.
func (d *diskRun) overload(ctx context.Context) error {
	d.loadGenerator = true
	d.disk.Slow(overloadSync)
	before, err := d.latency(ctx)
	if err != nil {
		return err
	}
	// The other work of the gateway goes on all the while, so that it is part of each
	// measurement.
	defer d.probe(ctx)()
	capacity, err := d.capacity(ctx, "before overload")
	if err != nil {
		return err
	}
	var accepted []float64 // per second, by overload
	var least, peak int64  // bytes of memory
	for _, times := range overloads {
		perSecond, memory, err := d.overloaded(ctx, capacity, times)
		if err != nil {
			return err
		}
		if accepted = append(accepted, perSecond); len(accepted) == 1 {
			least = memory
		}
		peak = memory
	}
	if err := d.awaitNormal(ctx, before); err != nil {
		return err
	}
	// The capacity with more orders in the database: what their number costs is no
	// fault of the overload.
	after, err := d.capacity(ctx, "after overload")
	if err != nil {
		return err
	}
	if after < capacityLeast*capacity {
		d.reportf("capacity lost", "before the overload the capacity was %.0f orders/s, and after it %.0f", capacity, after)
	}
	d.checkGoodput((capacity+after)/2, accepted)
	d.totals.most("most MB of memory under overload", "", peak>>20)
	if float64(peak) > memoryMost*float64(least) {
		d.reportf("memory", "%s took %d MB, and %s %d MB", timesCapacity(overloads[len(overloads)-1]), peak>>20, timesCapacity(overloads[0]), least>>20)
	}
	d.disk.Slow(0)
	return d.recovers(ctx)
}

// capacity measures how many orders per second the gateway accepts.
func (d *diskRun) capacity(ctx context.Context, when string) (float64, error) {
	load := capacityLoad
	if d.engine == postgres {
		load = capacityLoadServer
	}
	r, err := d.load(ctx, "--concurrency", strconv.Itoa(load))
	if err != nil {
		return 0, err
	}
	s := &r.Series[0]
	if refused := s.Errors[strconv.Itoa(http.StatusServiceUnavailable)]; refused > s.Count/refusedMost {
		d.reportf("refused at capacity", "%d orders were refused, and %d accepted", refused, s.Count)
	}
	d.totals.most("most orders/s at capacity", when, int64(r.Throughput))
	d.printf("capacity %s: %.0f orders/s, %d MB", when, r.Throughput, *r.Gateway.PeakMemoryBytes>>20)
	if r.Throughput == 0 {
		return 0, errors.New("on a slow disk no order is accepted")
	}
	return r.Throughput, nil
}

// checkGoodput compares the orders that were accepted with the capacity.
func (d *diskRun) checkGoodput(capacity float64, accepted []float64) {
	for i, times := range overloads {
		share := accepted[i] / capacity
		d.printf("%s: %.0f %% of the capacity accepted", timesCapacity(times), share*100)
		d.totals.least("least % of the capacity accepted", timesCapacity(times), int64(share*100))
		if share < goodputLeast {
			d.reportf("goodput lost", "under %s %.0f orders/s were accepted, and the capacity is %.0f", timesCapacity(times), accepted[i], capacity)
		}
	}
}

func timesCapacity(times int) string { return strconv.Itoa(times) + " times the capacity" }

// overloaded requests a multiple of the capacity. It returns the orders accepted per
// second, and the memory in bytes that the gateway has taken so far.
func (d *diskRun) overloaded(ctx context.Context, capacity float64, times int) (perSecond float64, peak int64, err error) {
	r, err := d.load(ctx, "--rate", strconv.Itoa(int(capacity)*times), "--concurrency", strconv.Itoa(overloadConnections))
	if err != nil {
		return 0, 0, err
	}
	peak = *r.Gateway.PeakMemoryBytes
	s, name := &r.Series[0], timesCapacity(times)
	for status, n := range s.Errors {
		if status != strconv.Itoa(http.StatusServiceUnavailable) {
			d.reportf("wrong answer", "under %s %d orders were answered %s: %s", name, n, status, s.Samples[status])
		}
	}
	if s.Refusal == nil {
		d.reportf("never fired", "under %s nothing was refused", name)
		return s.PerSecond, peak, nil
	}
	d.printf("%s: %d MB, %.0f orders/s accepted, p50 %d ms, p99 %d ms; refused in p50 %d ms, p99 %d ms; %d without a connection", name, peak>>20,
		s.PerSecond, s.Latency.P50/1000, s.Latency.P99/1000, s.Refusal.P50/1000, s.Refusal.P99/1000, r.Unsent)
	slowest := time.Duration(s.Refusal.P99) * time.Microsecond
	d.totals.slowest("refusal (p99)", name, slowest)
	if s.Refusal.P99 > s.Latency.P50 {
		d.reportf("slow refusals", "under %s refusals took longer than acceptance: %v", name, slowest)
	}
	return s.PerSecond, peak, nil
}

// load runs the product's load generator, which also checks that acknowledged orders
// exist.
func (d *diskRun) load(ctx context.Context, flags ...string) (*loadReport, error) {
	duration := overloadTime
	if d.engine == postgres {
		duration = serverTime
	}
	cmd := exec.CommandContext(ctx, d.programs.plain, append([]string{
		"bench", "payin", "--json", "--url", d.gatewayURLs[0], "--pid", strconv.Itoa(d.gateway.pid()),
		"--duration", duration.String(), "--warmup", overloadWarmUp.String(),
	}, flags...)...)
	cmd.Env = environ()
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("porteira bench: %w\n%s%s", err, out, exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	var r loadReport
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("porteira bench --json: %w", err)
	}
	if len(r.Series) == 0 || r.Gateway.PeakMemoryBytes == nil {
		return nil, errors.New("porteira bench measured nothing")
	}
	d.totals.add("orders acknowledged to the load generator", "", r.Check.Acknowledged)
	return &r, nil
}

// latency is the mean latency of an order without load.
func (d *diskRun) latency(ctx context.Context) (time.Duration, error) {
	began := clock.Monotonic()
	const orders = 10
	for i := range orders {
		if got := d.placeOne(ctx, fmt.Sprintf("before-%d", i)); got.status != http.StatusCreated {
			return 0, fmt.Errorf("an order on a slow disk is answered %d: %s", got.status, got.body)
		}
	}
	return (clock.Monotonic() - began) / orders, nil
}

// placeOne places an order outside the clients.
func (d *diskRun) placeOne(ctx context.Context, reference string) reply {
	body, err := json.Marshal(newRequest(payin, reference, 100))
	if err != nil {
		return reply{}
	}
	return d.api.send(ctx, http.MethodPost, d.gatewayURLs[0]+"/payin", string(body))
}

// awaitNormal waits until the latency of an order is as before the overload.
func (d *diskRun) awaitNormal(ctx context.Context, before time.Duration) error {
	ended := clock.Monotonic()
	for i := 0; ctx.Err() == nil; i++ {
		asked := clock.Monotonic()
		got := d.placeOne(ctx, fmt.Sprintf("after-%d", i))
		now := clock.Monotonic()
		if got.status == http.StatusCreated && now-asked <= normalSlowdown*before {
			d.totals.slowest("return to normal after overload", "", now-ended)
			if now-ended > normalMost {
				d.reportf("slow recovery", "%v after the overload the latency of an order was as before", now-ended)
			}
			return nil
		}
	}
	return context.Cause(ctx)
}

// probe reads and pays orders until stop is called.
func (d *diskRun) probe(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var probes sync.WaitGroup
	probes.Go(func() {
		for ctx.Err() == nil {
			d.keepReading(ctx, time.Second)
		}
	})
	probes.Go(func() {
		for ctx.Err() == nil {
			d.keepNotifying(ctx)
			wait(ctx, readyLook)
		}
	})
	return func() {
		cancel()
		probes.Wait()
	}
}

// keepNotifying pays the clients' orders until ctx ends: the bank's notices must
// be accepted and applied.
func (d *diskRun) keepNotifying(ctx context.Context) {
	for _, o := range d.clients.acknowledgedBetween(0, clock.Monotonic()) {
		if o.kind != payin {
			continue
		}
		asked, base := clock.Monotonic(), d.gatewayURLs[0]
		if got := d.api.send(ctx, http.MethodPost, base+"/sandbox/payin/"+o.id+"/pay", ""); got.status != http.StatusNoContent {
			if ctx.Err() != nil {
				return
			}
			continue // it is paid already, or the sandbox's own route was refused
		}
		for orderOf(d.api.send(ctx, http.MethodGet, base+"/payin/"+o.id, "").body).Status != "PAID" {
			if !wait(ctx, 20*time.Millisecond) {
				return
			}
		}
		d.totals.add("orders paid under overload", "", 1)
		d.totals.slowest("payment under overload", "", clock.Monotonic()-asked)
	}
}

func (d *diskRun) printf(format string, arguments ...any) {
	_, _ = fmt.Fprintf(d.out, "  "+format+"\n", arguments...)
}
