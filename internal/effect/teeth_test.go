package effect

import (
	"slices"
	"testing"
)

// without is the table without some rows.
func without(names ...string) []Row {
	return slices.DeleteFunc(slices.Clone(Table), func(r Row) bool { return slices.Contains(names, r.Name) })
}

// swap is the table with a changed row.
func swap(name string, change func(*Row)) []Row {
	list := slices.Clone(Table)
	change(&list[slices.IndexFunc(list, func(r Row) bool { return r.Name == name })])
	return list
}

func always(r *Row) { r.Cond = func(*Policy, *Effect, *Input) bool { return true } }

// late breaks the bank's promise: a request is executed, and a look-up lags, two ticks longer.
func late(s *setup) { s.b.quiet = ticksOf(s.p.Quiet) + 2 }

func restored(kind string, list bool, change func(*setup)) func(*setup) {
	return func(s *setup) {
		s.withdraw, s.restore, s.list = false, kind, list
		change(s)
	}
}

// refusalIsLookedUp is the table in which a refusal of the only send is looked up before it releases.
func refusalIsLookedUp() []Row {
	rows := swap("S1", func(r *Row) {
		r.Cond = func(_ *Policy, e *Effect, _ *Input) bool { return e.Again && !e.Consent }
	})
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == "U5" })
	return slices.Insert(rows, i, Row{
		Name: "U3a", From: []State{Unknown}, On: []Event{NotFound},
		Cond: func(_ *Policy, e *Effect, _ *Input) bool { return e.Again && !e.Possible() }, To: Done, Action: Release,
	})
}

const (
	safe, forLife, unsafe, consent, answer = "payout, returns the first", "payout, for a life", "payout, unsafe", "payout, asks for consent", "answer to a dispute"
)

// broken are tables, banks and processes that each break one rule, and what the search finds; nothing
// if another rule guards too. As long as the bank keeps its promises, the look-ups alone are true.
var broken = []struct {
	name, policy string
	change       func(*setup)
	want         int8
}{
	{"quiet ignored", safe, func(s *setup) { s.table = without("U5") }, fine},
	{"quiet ignored, not wanted", answer, func(s *setup) { s.table = without("U5") }, releasedPaid},
	{"quiet ignored", unsafe, func(s *setup) { s.table = without("U5", "U9") }, fine}, // A1
	{"quiet ignored, also before the send", unsafe, func(s *setup) { s.table = without("U5", "U7", "U9", "A1") }, executedTwice},
	{"quiet ignored", consent, func(s *setup) { s.table = without("U5", "U7", "A1") }, fine}, // consent
	{"repeated at once", unsafe, func(s *setup) {
		s.table = slices.DeleteFunc(swap("S6", func(r *Row) { r.To = Queued }), func(r Row) bool { return r.Name == "A1" })
	}, executedTwice},
	{"no look-up before the send", unsafe, restored("unmarked", false, func(s *setup) { s.calm, s.table = true, without("Q4") }), executedTwice},
	{"forgotten id", forLife, func(s *setup) { s.table = without("Q3", "U11") }, executedTwice},
	{"forgotten id, only the look-up checks", forLife, func(s *setup) { s.table = without("Q3") }, fine},
	{"forgotten id, only the look-up checks, late bank", forLife, func(s *setup) { s.b.quiet, s.table = 5, without("Q3") }, executedTwice},
	{"late bank", forLife, func(s *setup) { s.b.quiet = 5 }, fine},
	{"intent of a dead process is queued", unsafe, func(s *setup) {
		s.table = append([]Row{{Name: "X", From: []State{Sending}, On: []Event{Died}, To: Queued, Do: func(_ *Policy, e *Effect, _ *Input) { noEffect(e) }}}, Table...)
	}, executedTwice},
	{"late answer counts for another send", safe, func(s *setup) { s.anyNumber, s.maxSends = true, 3 }, releasedPaid},

	{"late bank", safe, late, fine},
	{"late bank: a refusal is final", safe, func(s *setup) { late(s); s.table = swap("S1", always) }, releasedPaid},
	{"late bank: cancel of what may exist", safe, func(s *setup) { late(s); s.withdraw, s.table = true, swap("D1", always) }, releasedPaid},
	{"late bank, cancel", safe, func(s *setup) { late(s); s.withdraw = true }, fine},
	{"late bank", consent, late, fine},
	{"late bank: two consents", consent, func(s *setup) { late(s); s.table = swap("C1", always) }, executedTwice},
	{"late bank, never declared absent", unsafe, func(s *setup) { late(s); s.table = without("D4") }, fine},
	{"late bank", unsafe, late, fine},
	{"late bank: repeated by rule", unsafe, func(s *setup) { late(s); s.table = without("U9", "U7") }, executedTwice},

	{"rows not marked, list read", safe, restored("marked", true, func(s *setup) { s.noDoubt, s.withdraw = true, true }), fine},
	{"rows not marked, list read", unsafe, restored("marked", true, func(s *setup) { s.noDoubt, s.withdraw = true, true }), fine},
	{"rows not marked, list read", forLife, restored("marked", true, func(s *setup) { s.noDoubt, s.withdraw = true, true }), fine},
	{"rows not marked, list read", consent, restored("marked", true, func(s *setup) { s.noDoubt, s.withdraw = true, true }), fine},
	{"rows marked, no list", safe, restored("marked", false, func(s *setup) { s.withdraw = true }), fine},
	{"rows not marked, no list", safe, restored("marked", false, func(s *setup) { s.noDoubt = true }), releasedPaid},
	{"rows not marked, no list", unsafe, restored("marked", false, func(s *setup) { s.noDoubt = true }), fine},
	{"rows marked, no list", forLife, restored("marked", false, func(*setup) {}), executedTwice},
	{"fail-over", unsafe, restored("failover", true, func(*setup) {}), fine},
	{"fail-over: the guard ignores the history", safe, restored("failover", true, func(s *setup) { s.guardless = true }), releasedPaid},
	{"fail-over: the guard ignores the history", unsafe, restored("failover", true, func(s *setup) { s.guardless = true }), executedTwice},
	{"fail-over: answers of a past count", safe, restored("failover", true, func(s *setup) { s.anyHistory = true }), releasedPaid},
	{"fail-over: answers of a past count", unsafe, restored("failover", true, func(s *setup) { s.anyHistory = true }), releasedPaid},
	{"unmarked copy, nothing in flight", unsafe, restored("unmarked", false, func(s *setup) { s.calm = true }), fine},
	{"unmarked copy, a request in flight", unsafe, restored("unmarked", false, func(*setup) {}), executedTwice},
	{"unmarked copy, a refusal ends it", safe, restored("unmarked", false, func(s *setup) { s.calm = true }), releasedPaid},
	{"unmarked copy, a refusal is looked up", safe, restored("unmarked", false, func(s *setup) { s.calm, s.table = true, refusalIsLookedUp() }), fine},
}

// TestTeeth breaks one rule at a time.
func TestTeeth(t *testing.T) {
	t.Parallel()
	for _, v := range broken {
		if v.want == fine && !*long { // all worlds are searched
			continue
		}
		t.Run(v.policy+"; "+v.name, func(t *testing.T) {
			t.Parallel()
			s := setupOf(t, v.policy)
			v.change(&s)
			f := s.search(longLimit, true)
			if got := f.violation(); got != violations[v.want] {
				t.Fatalf("%d worlds: %q, want %q%s", len(f.worlds), got, violations[v.want], f.trace())
			}
			t.Logf("%d worlds%s", len(f.worlds), f.trace())
		})
	}
}
