package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/cluster"
	"github.com/porteira/porteira/internal/env"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestLease(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	lease := cluster.NewLease(clock, 5*time.Second)
	if lease.Valid() || lease.Remaining() != 0 {
		t.Fatal("valid before the first heartbeat")
	}
	written := func(context.Context) error { return nil }
	slow := func(context.Context) error { clock.Advance(4 * time.Second); return nil }
	failed := func(context.Context) error { return errors.New("connection lost") }

	mustRenew := func(write func(context.Context) error) {
		t.Helper()
		if err := lease.Renew(t.Context(), write); err != nil {
			t.Fatal(err)
		}
	}
	mustRenew(written)
	clock.SetOffset(-24 * time.Hour) // the wall clock does not matter
	clock.Advance(5*time.Second - 1)
	if !lease.Valid() || lease.Remaining() != 1 {
		t.Error("expired too early")
	}
	clock.Advance(1)
	if lease.Valid() {
		t.Error("valid past its time to live")
	}
	mustRenew(slow) // counts from before the write
	if lease.Remaining() != time.Second {
		t.Errorf("remaining = %v after a slow write", lease.Remaining())
	}
	if err := lease.Renew(t.Context(), failed); err == nil {
		t.Error("a failed heartbeat returned no error")
	}
	if lease.Remaining() != time.Second {
		t.Error("a failed heartbeat changed the lease")
	}
	lease.Drop()
	if lease.Valid() {
		t.Error("valid after Drop")
	}
}

// Await returns after the heartbeat that renews the lease, and not after a late one.
func TestLeaseIsAwaited(t *testing.T) {
	t.Parallel()
	clock := env.NewVirtualClock(epoch)
	lease := cluster.NewLease(clock, 5*time.Second)
	await := func(ctx context.Context) <-chan bool {
		valid := make(chan bool, 1)
		go func() { valid <- lease.Await(ctx) }()
		return valid
	}
	heartbeat := func(took time.Duration) {
		if err := lease.Renew(t.Context(), func(context.Context) error { clock.Advance(took); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	canceled := await(ended)
	renewed := await(t.Context())
	heartbeat(6 * time.Second) // longer than the lease
	cancel()
	if <-canceled {
		t.Error("valid after a late heartbeat")
	}
	heartbeat(time.Second)
	if !<-renewed || !<-await(t.Context()) {
		t.Error("not valid after a heartbeat")
	}
}

// TestLeaseNeverOutlivesHeartbeat checks, for any sequence of heartbeats and pauses, that
// the lease is valid exactly for the time to live after the start of a heartbeat.
func TestLeaseNeverOutlivesHeartbeat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const ttl = 10
		clock := env.NewVirtualClock(epoch)
		lease := cluster.NewLease(clock, ttl)
		last := time.Duration(-ttl)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			pause := time.Duration(rapid.IntRange(0, 15).Draw(t, "pause"))
			if rapid.Bool().Draw(t, "heartbeat") {
				began := clock.Monotonic()
				fails := rapid.Bool().Draw(t, "fails")
				_ = lease.Renew(context.Background(), func(context.Context) error {
					clock.Advance(pause)
					if fails {
						return errors.New("lost")
					}
					return nil
				})
				if !fails {
					last = began
				}
			} else {
				clock.Advance(pause)
			}
			if want := clock.Monotonic() < last+ttl; lease.Valid() != want {
				t.Fatalf("valid = %v at %d, last heartbeat %d", lease.Valid(), clock.Monotonic(), last)
			}
		}
	})
}
