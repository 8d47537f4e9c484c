package effect

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

var long = flag.Bool("long", false, "search all worlds, and break each rule: some minutes")

// Worlds of one search, and how many of them settle.
const (
	shortLimit, longLimit   = 20_000, 6_000_000
	usedLimit               = 15_000
	shortSettle, longSettle = 300, 20_000
)

func (s *setup) run() *found {
	if *long {
		return s.search(longLimit, true)
	}
	return s.search(shortLimit, false)
}

func sec(n int) time.Duration { return time.Duration(n) * time.Second }

// policies are those of the drivers, in ticks.
var policies = []setup{
	{name: "payout, returns the first", p: Policy{Safe: true, Quiet: sec(2), Timeout: sec(1)}, b: bank{safe: true, quiet: 2, refuse: true}},
	{name: "payout, for a life", p: Policy{Safe: true, Life: sec(5), LookBack: sec(6), Quiet: sec(1), Timeout: sec(1)}, b: bank{safe: true, life: 5, back: 6, quiet: 1, refuse: true}},
	{name: "payout, looked up first", p: Policy{Safe: true, AskFirst: true, Quiet: sec(2), Timeout: sec(1)}, b: bank{safe: true, quiet: 2, refuse: true}},
	{name: "payout, unsafe", p: Policy{Quiet: sec(2), Confirm: sec(1), Timeout: sec(1), AskFirst: true}, b: bank{quiet: 2, refuse: true}},
	{name: "payout, asks for consent", p: Policy{Quiet: sec(2), Confirm: sec(1), Timeout: sec(1), AskFirst: true, Asks: true}, b: bank{quiet: 2, refuse: true, asks: true}},
	{name: "answer to a dispute", p: Policy{Safe: true, Quiet: sec(2), Timeout: sec(1)}, b: bank{safe: true, quiet: 2, refuse: true}, wanted: true},
	{name: "charge, safe", p: Policy{Safe: true, Harmless: true, Quiet: sec(2), Timeout: sec(1)}, b: bank{safe: true, quiet: 2, refuse: true}, wanted: true},
	{name: "charge, unsafe", p: Policy{Harmless: true, AskFirst: true, Quiet: sec(2), Confirm: sec(1), Timeout: sec(1)}, b: bank{quiet: 2, refuse: true}, wanted: true, secondIsFine: true},
	{name: "cancel of a charge", p: Policy{Safe: true, Harmless: true, Blind: true, Quiet: sec(2), Timeout: sec(1)}, b: bank{safe: true, quiet: 2}},
}

func setupOf(t *testing.T, name string) setup {
	t.Helper()
	i := slices.IndexFunc(policies, func(s setup) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("no policy %s", name)
	}
	return policies[i]
}

// TestModel searches each policy, without a restore: at most one execution, no release of what may be
// paid, and from each world an end that is true.
func TestModel(t *testing.T) {
	t.Parallel()
	for _, s := range policies {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.withdraw = true
			f := s.run()
			if f.bad {
				t.Fatalf("%s:%s", f.violation(), f.trace())
			}
			t.Logf("%d worlds", len(f.worlds))
			f.settle(t, shortSettle, longSettle, func(end *world) bool {
				booked := end.r.exists && !ptr(end.r.effect()).Released()
				return booked == (end.executions() > 0) || s.p.Blind
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }

// settle lets some of the worlds settle: each ends without a violation, and right.
func (f *found) settle(t *testing.T, short, most int, right func(end *world) bool) {
	t.Helper()
	n := short
	if *long {
		n = most
	}
	for i := 0; i < len(f.worlds); i += len(f.worlds)/n + 1 {
		end, trace := f.s.settle(f.worlds[i])
		if States[end.r.state] != Done || end.violation != fine || !right(&end) {
			t.Fatalf("does not settle: from %+v\n to %+v%s", f.worlds[i], end, trace)
		}
	}
}

// restores are the kinds of restores of each policy.
func restores() (list []setup) {
	for _, s := range policies {
		s.withdraw, s.wanted = false, false
		for _, v := range []struct {
			name, restore string
			list, calm    bool
		}{
			{"marked restore, list read", "marked", true, false},
			{"marked restore, a person ends the wait", "marked", false, false},
			{"fail-over under running processes, list read", "failover", true, false},
			{"unmarked copy, nothing in flight", "unmarked", true, true},
		} {
			r := s
			r.name, r.restore, r.list, r.calm = s.name+"; "+v.name, v.restore, v.list, v.calm
			list = append(list, r)
		}
	}
	return list
}

// known returns the violation that no rule about one effect prevents.
//   - The processor may have forgotten the id of a lost send, and only its list still shows it.
//   - The repeat of a lost send is refused.
func known(s *setup) string {
	switch {
	case s.p.Life > 0 && s.restore == "marked" && !s.list:
		return violations[executedTwice]
	case s.restore == "unmarked" && s.p.Safe && !s.p.Blind:
		return violations[releasedPaid]
	}
	return ""
}

// TestRestore is TestModel with a database that is restored from a backup.
func TestRestore(t *testing.T) {
	t.Parallel()
	for _, s := range restores() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			f := s.run()
			switch {
			case f.bad && f.violation() == known(&s):
				t.Logf("%d worlds; known: %s", len(f.worlds), f.violation())
				return
			case f.bad:
				t.Fatalf("%s:%s", f.violation(), f.trace())
			case *long && known(&s) != "":
				t.Errorf("no %s any more", known(&s))
			}
			t.Logf("%d worlds", len(f.worlds))
			f.settle(t, shortSettle/4, longSettle/10, func(*world) bool { return true })
		})
	}
}

// TestEachRowIsUsed: each row fits somewhere in a search.
func TestEachRowIsUsed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	late := bank{safe: true, quiet: 4, refuse: true}
	list := append(slices.Clone(policies), restores()...)
	list = append(list,
		setup{p: policies[0].p, b: policies[0].b, withdraw: true},
		setup{p: policies[4].p, b: bank{quiet: 4, refuse: true, asks: true}},
		setup{p: policies[0].p, b: policies[0].b, wanted: true, restore: "marked", list: true},
		setup{p: policies[6].p, b: policies[6].b, wanted: true, canMove: true},
		setup{p: Policy{Harmless: true, AskFirst: true, Quiet: sec(2), Timeout: sec(1)}, b: bank{quiet: 2, refuse: true}, wanted: true, secondIsFine: true},
		setup{p: policies[0].p, b: late},
	)
	for _, s := range list {
		s.used = used
		s.search(usedLimit, false)
	}
	for _, r := range Table {
		// Contradictions are violations here, and people decide only what they can.
		if !used[r.Name] && !strings.Contains("P6 P7 D5", r.Name) {
			t.Errorf("row %s is never used", r.Name)
		}
	}
}
