package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/webhook"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestScheduleWaits(t *testing.T) {
	t.Parallel()
	want := []time.Duration{
		0, 5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
	if webhook.MaxAttempts != len(want) {
		t.Errorf("%d attempts, want %d", webhook.MaxAttempts, len(want))
	}
	for done, wait := range want {
		if got, exhausted := (webhook.Schedule{}).Next(done, 0); got != wait || exhausted {
			t.Errorf("after %d attempts: %v, %v, want %v", done, got, exhausted, wait)
		}
	}
	for _, done := range []int{11, 12, 1000} {
		if _, exhausted := (webhook.Schedule{}).Next(done, time.Hour); !exhausted {
			t.Errorf("after %d attempts there is another", done)
		}
	}
}

func TestScheduleSpreadAndRetryAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schedule := webhook.Schedule{Jitter: env.SeededRandom(rapid.Uint64().Draw(t, "seed")).Jitter}
		done := rapid.IntRange(0, webhook.MaxAttempts-1).Draw(t, "done")
		requested := time.Duration(rapid.Int64().Draw(t, "requested"))
		plain, _ := webhook.Schedule{}.Next(done, 0)
		got, exhausted := schedule.Next(done, requested)
		low, high := plain-plain/10, plain+plain/10
		if requested > 0 {
			low, high = max(low, min(requested, 24*time.Hour)), max(high, min(requested, 24*time.Hour))
		}
		if exhausted || got < low || got > high {
			t.Fatalf("after %d attempts, %v requested: %v not in %v to %v", done, requested, got, low, high)
		}
	})
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for value, want := range map[string]time.Duration{
		"":                                    0,
		"0":                                   0,
		"10":                                  10 * time.Second,
		" 120 ":                               2 * time.Minute,
		"86400":                               day,
		"86401":                               day,
		"007":                                 7 * time.Second,
		"-1":                                  0,
		"+5":                                  0,
		"1.5":                                 0,
		"1e3":                                 0,
		"10s":                                 0,
		"soon":                                0,
		"٣":                                   0,
		"10, 20":                              0,
		"315360000":                           day, // ten years
		"9223372036854775807":                 day,
		"99999999999999999999999999":          day,
		epoch.Format(http.TimeFormat):         0,
		"Sun, 01 Mar 2026 12:00:10 GMT":       10 * time.Second,
		"Sunday, 01-Mar-26 12:01:00 GMT":      time.Minute, // RFC 850
		"Sun Mar  1 12:02:00 2026":            2 * time.Minute,
		"Sun, 01 Mar 2026 11:59:59 GMT":       0,
		"Thu, 01 Jan 1970 00:00:00 GMT":       0,
		"Sun, 01 Mar 2036 12:00:00 GMT":       day,
		"Fri, 31 Dec 9999 23:59:59 GMT":       day,
		"Sun, 31 Feb 2026 12:00:00 GMT":       0,
		"2026-03-01T12:00:10Z":                0,
		"\x00":                                0,
		"Sun, 01 Mar 2026 12:00:10 GMT extra": 0,
	} {
		if got := webhook.ParseRetryAfter(value, epoch); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
