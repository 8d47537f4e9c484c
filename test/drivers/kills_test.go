package drivers

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/db/dbtest"
	"github.com/porteira/porteira/internal/store/storetest"
)

var (
	kills      = flag.Int("kills", 0, "deaths of the process, per driver and engine, along all points of a day; by default one after each kind of effect")
	oneDriver  = flag.String("driver", "", "apipix, apipix-bacen: the standard alone, asaas, or asaas-unasked: without withdrawal validation; all unless set")
	oneEngine  = flag.String("engine", "", "sqlite or postgres; with -kills both unless set, else sqlite")
	onePoint   = flag.Int("point", 0, "play this run alone: the point of its first death")
	oneDeaths  = flag.Int("deaths", deathsMax, "its deaths")
	seed       = flag.Uint64("seed", 0, "of the further deaths; random unless set")
	shownTrace = flag.Bool("trace", false, "print the points of a run alone")
)

// deathsMax is the most deaths of a run, and gapMax the most points between two of them.
const (
	deathsMax = 5
	gapMax    = 30
)

var banks = map[string]func(g *gateway) bank{
	"apipix": newPIXBank, "apipix-bacen": newBacenBank, "asaas": newAsaasBank, "asaas-unasked": newUnaskedBank,
}

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// playDay plays a day in which the process dies first at a point, at 0 never, and then until it
// died deaths times.
func playDay(t *testing.T, engine, driver string, point, deaths int) *nemesis {
	t.Helper()
	n := &nemesis{random: rand.New(rand.NewPCG(*seed, uint64(point))), next: point, left: deaths}
	playWith(t, engine, driver, n, fmt.Sprintf("-driver %s -engine %s -point %d -deaths %d -seed %d", driver, engine, point, deaths, *seed))
	return n
}

// playWith plays a day, which the flags repeat.
func playWith(t *testing.T, engine, driver string, n *nemesis, flags string) {
	t.Helper()
	g := newGateway(t, engine, banks[driver], n)
	all := play(g)
	g.finish()
	all.check(g)
	if t.Failed() {
		t.Logf("died %s\ngo test ./test/drivers -run TestKills %s\n%s", strings.Join(n.killed, ", then "), flags, &g.log)
	}
}

// The process dies after an effect at the bank or, with -kills, at points that are spread evenly
// over a day, and at random points after each: the bank's records and the gateway's agree in the
// end.
func TestKills(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	engines := storetest.Engines
	if *kills == 0 {
		engines = engines[:1]
	}
	for _, driver := range chosen(*oneDriver, slices.Sorted(maps.Keys(banks))) {
		for _, engine := range chosen(*oneEngine, engines) {
			t.Run(driver+"/"+engine, func(t *testing.T) { killThrough(t, engine, driver) })
		}
	}
}

func chosen(one string, all []string) []string {
	if one != "" {
		return []string{one}
	}
	return all
}

func killThrough(t *testing.T, engine, driver string) {
	t.Helper()
	if *onePoint > 0 {
		n := playDay(t, engine, driver, *onePoint, *oneDeaths)
		for i, p := range n.points {
			if *shownTrace {
				fmt.Println(i+1, p)
			}
		}
		return
	}
	day := playDay(t, engine, driver, 0, 0).points
	k := &killing{engine: engine, driver: driver, died: map[string]int{}, points: len(day)}
	if *kills == 0 {
		k.effects(t, day)
	}
	for k.deaths < *kills && !t.Failed() {
		k.runs(t, max(1, (*kills-k.deaths)*2/(deathsMax+1))) // of 1 to deathsMax deaths
	}
	for _, p := range slices.Sorted(maps.Keys(k.died)) {
		t.Logf("%5d deaths %s", k.died[p], p)
	}
	t.Logf("%d deaths in %d runs of %d points; %d cases were resolved", k.deaths, k.done, k.points, k.resolved)
}

// killing counts the deaths of many runs.
type killing struct {
	engine, driver string
	points         int // of a day without deaths
	done           int // runs

	mu               sync.Mutex
	died             map[string]int // by the name of the point
	deaths, resolved int
}

// runs plays n days. Their first deaths are at points from the first of a day to the last.
func (k *killing) runs(t *testing.T, n int) {
	t.Helper()
	t.Run("day", func(t *testing.T) {
		for i := range n {
			point, deaths := 1+i*k.points/n, 1+i%deathsMax
			if n > k.points {
				point = 1 + i%k.points
			}
			k.done++
			t.Run(fmt.Sprint(point), func(t *testing.T) {
				t.Parallel()
				k.count(playDay(t, k.engine, k.driver, point, deaths))
			})
		}
	})
}

// effects plays a day for each kind of effect: the process dies before it has the answer.
func (k *killing) effects(t *testing.T, day []string) {
	t.Helper()
	t.Run("effect", func(t *testing.T) {
		seen := map[string]bool{}
		for _, p := range day {
			if !strings.HasPrefix(p, "after ") || strings.HasPrefix(p, "after GET") || seen[p] {
				continue
			}
			seen[p] = true
			k.done++
			t.Run(p, func(t *testing.T) {
				t.Parallel()
				n := &nemesis{name: p, left: 1}
				playWith(t, k.engine, k.driver, n, "-driver "+k.driver)
				k.count(n)
			})
		}
	})
}

func (k *killing) count(n *nemesis) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deaths, k.resolved = k.deaths+len(n.killed), k.resolved+n.resolved
	for _, p := range n.killed {
		k.died[p]++
	}
}
