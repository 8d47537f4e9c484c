package accounthttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// counted answers each call, and counts them.
type counted struct {
	calls  int
	status int
	header http.Header
}

// RoundTrip implements [http.RoundTripper].
func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls++
	return &http.Response{StatusCode: c.status, Header: c.header, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

func limited(t *testing.T, perSecond float64) (*Client, *counted, *env.VirtualClock) {
	t.Helper()
	_, clock := env.Virtual(start, 1)
	transport := &counted{status: 200, header: http.Header{}}
	c, err := New(Options{BaseURL: "http://bank.invalid", Transport: transport, Clock: clock, Rate: perSecond})
	if err != nil {
		t.Fatal(err)
	}
	return c, transport, clock
}

// Effects have four fifths of the budget. One without budget is Later before any byte and
// before its guard, with a wait after which there is some.
func TestBudgetOfEffects(t *testing.T) {
	c, bank, clock := limited(t, 10)
	for range 8 {
		want(t, "within the burst", c.Do(t.Context(), effect()), 200, processor.Unknown)
	}
	r := effect()
	r.Guard = func() error { t.Error("the guard of an effect without budget is called"); return nil }
	result := c.Do(t.Context(), r)
	want(t, "without budget", result, 0, processor.Later)
	if result.Wait <= 0 || result.Wait > 126*time.Millisecond || !errors.Is(result.Cause, processor.ErrBudget) {
		t.Errorf("wait %v, cause %v", result.Wait, result.Cause)
	}
	for range 2 {
		want(t, "query from the reserved share", c.Do(t.Context(), query()), 200, processor.Unknown)
	}
	if bank.calls != 10 {
		t.Errorf("%d calls", bank.calls)
	}
	wait := c.Do(t.Context(), effect()).Wait
	clock.Advance(wait)
	want(t, "after the wait", c.Do(t.Context(), effect()), 200, processor.Unknown)
}

// A query waits for budget until its context ends.
func TestBudgetOfQueries(t *testing.T) {
	c, bank, clock := limited(t, 1)
	want(t, "first", c.Do(t.Context(), query()), 200, processor.Unknown)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan Result)
	ask := func(ctx context.Context) { results <- c.Do(ctx, query()) }
	go ask(ctx)
	clock.BlockUntil(1)
	cancel()
	given := <-results
	want(t, "given up", given, 0, processor.NotSent)
	if !errors.Is(given.Cause, context.Canceled) {
		t.Errorf("cause %v", given.Cause)
	}
	go ask(t.Context())
	clock.BlockUntil(1)
	if next, _ := clock.Next(); next != time.Second {
		t.Errorf("the next query waits %v: the one that gave up keeps its share", next)
	}
	clock.Advance(time.Second)
	want(t, "after its wait", <-results, 200, processor.Unknown)
	if bank.calls != 2 {
		t.Errorf("%d calls", bank.calls)
	}
}

// Retry-After stops effects and queries for its time, at most 15 minutes, with or without a
// rate.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		status     int
		retryAfter string
		pause      time.Duration
		wait       time.Duration // of the answer
	}{
		{429, "30", 30 * time.Second, 30 * time.Second},
		{503, "30", 30 * time.Second, 30 * time.Second},
		{429, start.Add(time.Minute + time.Second).UTC().Format(http.TimeFormat), time.Minute, time.Minute},
		{429, start.Add(-time.Minute).UTC().Format(http.TimeFormat), 0, 0},
		{429, "86400", 15 * time.Minute, 24 * time.Hour},
		{429, "99999999999999999999", 0, 0},
		{429, "-1", 0, 0},
		{429, "soon", 0, 0},
		{429, "", 0, 0},
		{500, "30", 0, 0},
		{200, "30", 0, 0},
	} {
		c, bank, clock := limited(t, 0)
		bank.status, bank.header = tt.status, http.Header{"Retry-After": {tt.retryAfter}}
		first := c.Do(t.Context(), effect())
		if diff := first.Wait - tt.wait; first.Answer == nil || diff < 0 || diff > time.Second {
			t.Errorf("%d %q: wait %v, want %v", tt.status, tt.retryAfter, first.Wait, tt.wait)
		}
		bank.status = 200
		second := c.Do(t.Context(), effect())
		if diff := second.Wait - tt.pause; diff < 0 || diff > time.Second || (second.Outcome == processor.Later) != (tt.pause > 0) {
			t.Errorf("%d %q: then %v, wait %v, want %v", tt.status, tt.retryAfter, second.Outcome, second.Wait, tt.pause)
		}
		if errors.Is(second.Cause, processor.ErrBudget) {
			t.Errorf("%d %q: the processor's pause is taken for the account's own budget", tt.status, tt.retryAfter)
		}
		if tt.pause == 0 {
			continue
		}
		done := make(chan Result)
		go func() { done <- c.Do(t.Context(), query()) }()
		clock.BlockUntil(1)
		if bank.calls != 1 {
			t.Errorf("%d %q: %d calls", tt.status, tt.retryAfter, bank.calls)
		}
		clock.Advance(tt.pause + time.Second)
		want(t, "query after the pause", <-done, 200, processor.Unknown)
		want(t, "effect after the pause", c.Do(t.Context(), effect()), 200, processor.Unknown)
	}
}

// 429 without a wait empties the budget.
func TestTooManyRequestsEmptiesTheBudget(t *testing.T) {
	c, bank, clock := limited(t, 10)
	bank.status = 429
	want(t, "first", c.Do(t.Context(), effect()), 429, processor.Unknown)
	bank.status = 200
	want(t, "second", c.Do(t.Context(), effect()), 0, processor.Later)
	clock.Advance(time.Second)
	want(t, "a second later", c.Do(t.Context(), effect()), 200, processor.Unknown)
}

// The wait of an effect is sufficient if nothing else takes the budget, and effects never
// exceed their share.
func TestBudgetProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := float64(rapid.IntRange(1, 100_000).Draw(t, "rate in hundredths")) / 100
		_, clock := env.Virtual(start, 1)
		b := newBudget(clock, perSecond, 0)
		taken := 0
		for _, ms := range rapid.SliceOfN(rapid.IntRange(0, 3000), 1, 60).Draw(t, "pauses") {
			clock.Advance(time.Duration(ms) * time.Millisecond)
			wait, _ := b.effect()
			if wait == 0 {
				taken++
				continue
			}
			clock.Advance(wait)
			if again, _ := b.effect(); again != 0 {
				t.Fatalf("after the wait of %v another of %v", wait, again)
			}
			taken++
		}
		share := perSecond * (1 - queryShare)
		if most := float64(burst(share)) + share*clock.Monotonic().Seconds() + 0.001; float64(taken) > most {
			t.Fatalf("%d effects in %v at %v per second", taken, clock.Monotonic(), perSecond)
		}
	})
}

func TestParseRate(t *testing.T) {
	for setting, want := range map[string]float64{"": 0, "1": 1, "0.57": 0.57, "10000": 10_000, "0.01": 0.01, "00002": 2} {
		if got, err := ParseRate(setting); err != nil || got != want {
			t.Errorf("%q: %v, %v", setting, got, err)
		}
	}
	for _, setting := range []string{"0", "0.00", "0.001", "-1", "10000.01", "1e3", "0x1", "NaN", "Inf", " 1", "1,5", "1.", "999999999"} {
		if got, err := ParseRate(setting); !errors.Is(err, errRate) || got != 0 {
			t.Errorf("%q: %v, %v", setting, got, err)
		}
	}
}
