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

	"github.com/porteira/porteira/internal/bench"
	"github.com/porteira/porteira/tools/rig"
)

// What the overload is made of.
const (
	// overloadSync is what an fsync takes at most. It must outweigh what this
	// disk of ours costs in CPU, which the load takes as well.
	overloadSync = 600 * time.Millisecond
	// fullLoad is how many connections find out what the gateway can do: enough
	// for batches that are full, one in hand and one to follow, and too few for
	// many to be refused.
	fullLoad = 500
	// A server's batch takes longer than the second that admission allows, so
	// that none may wait for the next but one; and half a minute holds too few.
	fullLoadServer = 450
	serverTime     = 2 * overloadTime
	// overloadConns are the connections of the overload: more than there are
	// orders waiting, or the load would hold itself back.
	overloadConns = 2048
	overloadTime  = 30 * time.Second
	overloadWarm  = 5 * time.Second
)

// What must hold.
const (
	goodputLeast   = 0.9             // of what the gateway can do
	capacityLeast  = 0.85            // of it when the overload is over
	memoryMost     = 1.25            // times more for the worst overload than for the least
	normalMost     = 5 * time.Second // until it is normal again
	normalSlowdown = 2               // times the latency before
	// refusedMost is one of how many orders may be refused at capacity: where a
	// commit waits for others' fsyncs, the one to follow is too far off.
	refusedMost = 50
)

// overloads are how many times more is asked for than the gateway can do.
var overloads = []int{2, 5, 10}

// overload asks for far more than a gateway on a slow disk can commit. What it
// can do it must still do; the rest is refused quickly; reads, health and
// notices are answered, memory is bounded, and it is soon over.
func (t *trial) overload() error {
	t.crowd.begin(t.ctx, "overload", crowdSize)
	t.disk.Slow(overloadSync)
	before, err := t.single()
	if err != nil {
		return err
	}
	// What else the gateway does, it does all the while: what it can do is what
	// it can do besides.
	defer t.probe()()
	can, err := t.capacity("orders a second at capacity")
	if err != nil {
		return err
	}
	var accepted []float64 // a second, by overload
	var first, peak int64
	for i, times := range overloads {
		perSecond, memory, err := t.overloaded(can, times)
		if err != nil {
			return err
		}
		accepted, peak = append(accepted, perSecond), memory
		if i == 0 {
			first = peak
		}
	}
	if err := t.normal(before); err != nil {
		return err
	}
	// What it can do it can do with more orders in its books as well: what
	// their number costs is no fault of the overload.
	after, err := t.capacity("orders a second at capacity after overload")
	if err != nil {
		return err
	}
	if after < capacityLeast*can {
		t.blamef("before the overload the gateway could do %.0f orders/s, and after it %.0f", can, after)
	}
	t.kept((can+after)/2, accepted)
	t.figures.most("MB of memory under overload", peak>>20)
	if float64(peak) > memoryMost*float64(first) {
		t.blamef("asked for %d times too much it took %d MB, for %d times %d MB", overloads[len(overloads)-1], peak>>20, overloads[0], first>>20)
	}
	t.disk.Slow(0)
	return t.recovers()
}

// capacity is how many orders a second the gateway can do.
func (t *trial) capacity(figure string) (float64, error) {
	load := fullLoad
	if t.engine == postgres {
		load = fullLoadServer
	}
	r, err := t.press("--concurrency", strconv.Itoa(load))
	if err != nil {
		return 0, err
	}
	s := &r.Series[0]
	if refused := s.Errors[strconv.Itoa(http.StatusServiceUnavailable)]; refused > s.Count/refusedMost {
		t.blamef("%d orders were refused at capacity, and %d accepted", refused, s.Count)
	}
	t.figures.most(figure, int64(r.Throughput))
	t.tellf("can do %.0f orders/s, with %d MB", r.Throughput, *r.Gateway.PeakMemoryBytes>>20)
	if r.Throughput == 0 {
		return 0, errors.New("on a slow disk no order is accepted")
	}
	return r.Throughput, nil
}

// kept compares what was accepted with what the gateway can do.
func (t *trial) kept(can float64, accepted []float64) {
	for i, times := range overloads {
		share := accepted[i] / can
		t.tellf("asked for %s, it did %.0f %% of what it can", tooMuch(times), share*100)
		t.figures.least("percent of capacity kept with "+tooMuch(times), int64(share*100))
		if share < goodputLeast {
			t.blamef("asked for %s, %.0f orders/s were accepted, and the gateway can do %.0f", tooMuch(times), accepted[i], can)
		}
	}
}

func tooMuch(times int) string { return strconv.Itoa(times) + " times too much" }

// overloaded asks for times what the gateway can do, and returns what it accepted
// and how much memory, in bytes, it has taken so far.
func (t *trial) overloaded(can float64, times int) (perSecond float64, peak int64, err error) {
	r, err := t.press("--rate", strconv.Itoa(int(can)*times), "--concurrency", strconv.Itoa(overloadConns))
	if err != nil {
		return 0, 0, err
	}
	peak = *r.Gateway.PeakMemoryBytes
	s, name := &r.Series[0], tooMuch(times)
	for status, n := range s.Errors {
		if status != strconv.Itoa(http.StatusServiceUnavailable) {
			t.blamef("asked for %s, %d orders were answered %s: %s", name, n, status, s.Samples[status])
		}
	}
	if s.Refusal == nil {
		t.blamef("asked for %s, nothing was refused: nothing is proved", name)
		return s.PerSecond, peak, nil
	}
	t.tellf("%s: %d MB, %.0f orders/s accepted, p50 %d ms, p99 %d ms; refused in p50 %d ms, p99 %d ms; %d found no connection", name, peak>>20, s.PerSecond,
		s.Latency.P50/1000, s.Latency.P99/1000, s.Refusal.P50/1000, s.Refusal.P99/1000, r.Unsent)
	t.figures.slowest("refusal but for one in a hundred, with "+name, time.Duration(s.Refusal.P99)*time.Microsecond)
	if s.Refusal.P99 > s.Latency.P50 {
		t.blamef("asked for %s, refusals took longer than acceptance: %v", name, time.Duration(s.Refusal.P99)*time.Microsecond)
	}
	return s.PerSecond, peak, nil
}

// press measures with the product's own benchmark, which also checks that what
// was acknowledged is there.
func (t *trial) press(flags ...string) (*bench.Report, error) {
	duration := overloadTime
	if t.engine == postgres {
		duration = serverTime
	}
	args := append([]string{
		"bench", "payin", "--json", "--url", t.caller.base, "--pid", strconv.Itoa(t.gateway.cmd.Process.Pid),
		"--duration", duration.String(), "--warmup", overloadWarm.String(),
	}, flags...)
	cmd := exec.CommandContext(t.ctx, t.program, args...)
	cmd.Env = rig.Environ()
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("porteira bench: %w\n%s%s", err, out, exit.Stderr)
	} else if err != nil {
		return nil, err
	}
	var r bench.Report
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, fmt.Errorf("porteira bench --json: %w", err)
	}
	if len(r.Series) == 0 || r.Gateway.PeakMemoryBytes == nil {
		return nil, errors.New("porteira bench measured nothing")
	}
	t.figures.add("orders acknowledged under pressure", r.Check.Acknowledged)
	return &r, nil
}

// single is how long an order takes that comes alone.
func (t *trial) single() (time.Duration, error) {
	began := clock.Monotonic()
	const orders = 10
	for i := range orders {
		if got := t.caller.send(t.ctx, http.MethodPost, "/payin", probe("single", i)); got.status != http.StatusCreated {
			return 0, fmt.Errorf("an order on a slow disk is answered %d: %s", got.status, got.body)
		}
	}
	return (clock.Monotonic() - began) / orders, nil
}

func probe(name string, i int) string {
	return fmt.Sprintf(`{"paymentMethod":"PIX","amount":%d,"referenceId":"%s-%d","customer":{"name":"Maria Silva","document":"52998224725"}}`, 100+i, name, i)
}

// normal waits until orders are accepted as quickly as before the overload.
func (t *trial) normal(before time.Duration) error {
	ended := clock.Monotonic()
	for i := 0; t.ctx.Err() == nil; i++ {
		asked := clock.Monotonic()
		got := t.caller.send(t.ctx, http.MethodPost, "/payin", probe("normal", i))
		now := clock.Monotonic()
		if got.status == http.StatusCreated && now-asked <= normalSlowdown*before {
			t.figures.slowest("return to normal after overload", now-ended)
			if now-ended > normalMost {
				t.blamef("%v after the overload an order was accepted as quickly as before", now-ended)
			}
			return nil
		}
	}
	return context.Cause(t.ctx)
}

// probe reads, and lets orders be paid, until it is stopped.
func (t *trial) probe() (stop func()) {
	ctx, cancel := context.WithCancel(t.ctx)
	var probes sync.WaitGroup
	probes.Go(func() {
		for ctx.Err() == nil {
			t.readsGoOn(time.Second)
		}
	})
	probes.Go(func() {
		for ctx.Err() == nil {
			t.noticesGoOn(ctx)
		}
	})
	return func() {
		cancel()
		probes.Wait()
	}
}

// noticesGoOn lets orders be paid until ctx ends: the bank's notices must be
// taken and applied.
func (t *trial) noticesGoOn(ctx context.Context) {
	for _, a := range t.crowd.acks(0, clock.Monotonic()) {
		if a.Kind != payin {
			continue
		}
		id, asked := orderOf(a.Acked).ID, clock.Monotonic()
		if got := t.caller.send(t.ctx, http.MethodPost, "/sandbox/payin/"+id+"/pay", ""); got.status != http.StatusNoContent {
			continue // it had expired, or the sandbox's own route was refused
		}
		for {
			got := t.caller.send(t.ctx, http.MethodGet, "/payin/"+id, "")
			if orderOf(got.body).Status == "PAID" {
				t.figures.add("orders paid under overload", 1)
				t.figures.slowest("payment under overload, from the payer to PAID", clock.Monotonic()-asked)
				break
			}
			if !wait(ctx, 20*time.Millisecond) {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

func (t *trial) tellf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, "  "+format+"\n", args...)
}
