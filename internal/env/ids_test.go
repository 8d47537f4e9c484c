package env_test

import (
	"bytes"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/env"
)

func TestNewIDForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		milli := rapid.Int64Range(0, 1<<48-1).Draw(t, "milli")
		seed := rapid.Uint64().Draw(t, "seed")
		ids := env.NewIDs(env.SeededRandom(seed))
		id := uuid.UUID(ids.NewID(time.UnixMilli(milli)))
		if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
			t.Fatalf("%v is version %v, variant %v", id, id.Version(), id.Variant())
		}
		var got int64
		for _, b := range id[:6] {
			got = got<<8 | int64(b)
		}
		if got != milli {
			t.Fatalf("%v has time %d, want %d", id, got, milli)
		}
	})
}

// TestNewIDOrder generates ids at times within the documented window: all must differ,
// and those of one millisecond must ascend.
func TestNewIDOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ids := env.NewIDs(env.SeededRandom(rapid.Uint64().Draw(t, "seed")))
		base := rapid.Int64Range(1_700_000_000_000, 1_900_000_000_000).Draw(t, "base")
		offsets := rapid.SliceOfN(rapid.Int64Range(0, 63), 1, 200).Draw(t, "offsets")
		last := make(map[int64][16]byte)
		for _, offset := range offsets {
			id := ids.NewID(time.UnixMilli(base + offset))
			if before, ok := last[offset]; ok && bytes.Compare(before[:], id[:]) >= 0 {
				t.Fatalf("%x came after %x in one millisecond", id, before)
			}
			last[offset] = id
		}
		ordered := make([]int64, 0, len(last))
		for offset := range last {
			ordered = append(ordered, offset)
		}
		slices.Sort(ordered)
		for i := 1; i < len(ordered); i++ {
			a, b := last[ordered[i-1]], last[ordered[i]]
			if bytes.Compare(a[:], b[:]) >= 0 {
				t.Fatalf("ids of later milliseconds sort first: %x, %x", a, b)
			}
		}
	})
}

func TestNewIDConcurrent(t *testing.T) {
	t.Parallel()
	ids := env.NewIDs(env.SystemRandom())
	made := make([][][16]byte, 8)
	var group sync.WaitGroup
	for worker := range made {
		group.Go(func() {
			for range 5000 {
				made[worker] = append(made[worker], ids.NewID(epoch))
			}
		})
	}
	group.Wait()
	seen := make(map[[16]byte]bool)
	for _, list := range made {
		for i, id := range list {
			if seen[id] {
				t.Fatalf("%x was generated twice", id)
			}
			seen[id] = true
			if i > 0 && bytes.Compare(list[i-1][:], id[:]) >= 0 {
				t.Fatalf("%x came after %x", id, list[i-1])
			}
		}
	}
}

// TestNewIDUnlinked checks that the counter starts at a random value in each millisecond,
// so that two ids do not reveal the number of ids between them.
func TestNewIDUnlinked(t *testing.T) {
	t.Parallel()
	ids := env.NewIDs(env.SeededRandom(1))
	counter := func(t time.Time) int {
		id := ids.NewID(t)
		return int(id[6]&0x0f)<<8 | int(id[7])
	}
	near := 0
	for i := range 200 {
		a := counter(epoch.Add(time.Duration(2*i) * time.Millisecond))
		b := counter(epoch.Add(time.Duration(2*i+1) * time.Millisecond))
		if b-a >= -4 && b-a <= 4 {
			near++
		}
	}
	if near > 20 {
		t.Errorf("%d of 200 neighbours have close counters", near)
	}
}

func TestSeededEnvRepeats(t *testing.T) {
	t.Parallel()
	run := func() (out [][16]byte, jitters []time.Duration) {
		w, clock := env.Virtual(epoch, 42)
		for range 50 {
			clock.Advance(w.Random.Jitter(time.Second, 10))
			out = append(out, w.IDs.NewID(w.Clock.Now()))
			jitters = append(jitters, w.Clock.Monotonic())
		}
		return out, jitters
	}
	a, aJitters := run()
	b, bJitters := run()
	if !slices.Equal(a, b) || !slices.Equal(aJitters, bJitters) {
		t.Error("the same seed gave different values")
	}
}

func TestRandomRanges(t *testing.T) {
	t.Parallel()
	for name, random := range map[string]env.Random{
		"system": env.SystemRandom(), "seeded": env.SeededRandom(7),
	} {
		low, high := time.Hour, time.Duration(0)
		for range 2000 {
			d := random.Jitter(100*time.Second, 10)
			low, high = min(low, d), max(high, d)
			if n := random.Int64N(3); n < 0 || n > 2 {
				t.Fatalf("%s: Int64N(3) = %d", name, n)
			}
		}
		if low < 90*time.Second || high > 110*time.Second {
			t.Errorf("%s: jitter reached %v to %v", name, low, high)
		}
		if low > 92*time.Second || high < 108*time.Second {
			t.Errorf("%s: jitter kept to %v to %v", name, low, high)
		}
		if random.Jitter(0, 10) != 0 || random.Jitter(time.Second, 0) != time.Second {
			t.Errorf("%s: jitter of nothing changed the duration", name)
		}
		var a, b [32]byte
		random.Read(a[:])
		random.Read(b[:])
		if a == b {
			t.Errorf("%s: the same bytes twice", name)
		}
	}
}

func BenchmarkNewID(b *testing.B) {
	w := env.System(env.OutboundOptions{})
	now := w.Clock.Now()
	for b.Loop() {
		w.IDs.NewID(now)
	}
}
