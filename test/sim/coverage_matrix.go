package sim

import "fmt"

// matrix is all outcomes of a kind of call, by the step of the work that it continues. For
// each profile of accounts, each cell is impossible (see impossible in coverage.go), unlikely,
// or must be filled by a run that is long enough.
type matrix struct {
	group           string // without the profile
	outcomes, steps []string
}

var matrices = []matrix{
	{"send", []string{"accepted", "known", "later", "not_sent", "refused", "unknown", "paid", "failed", "not_found"}, []string{"intent", "unknown", "accepted", "not_found"}},
	{"charge outcome", []string{"done", "known", "later", "not_sent", "refused", "unknown", "registering", "not_found", "differs", "order_ended"}, []string{"wanted", "cancel"}},
	{
		"refund outcome", []string{"accepted", "known", "later", "not_sent", "refused", "unknown", "paid", "failed", "not_found", "taken_back"},
		[]string{"intent", "unknown", "accepted", "done"},
	},
}

// possibleFrom is the number of seeds from which on a run must fill each possible cell, and
// rareFrom that of cells that need a coincidence.
const (
	possibleFrom = 1000
	rareFrom     = 20_000
)

// rare are possible cells that need a coincidence. An empty profile is every one; an empty
// outcome or step too.
var rare = []struct{ group, profile, outcome, step string }{
	{"send", "", "failed", "intent"}, // a notice comes before the answer
	{"send", "", "failed", "unknown"},
	{"send", "", "accepted", "unknown"},
	{"send", "", "not_sent", "unknown"}, // the answer comes after another process took over
	{"send", notIdempotent, "failed", "accepted"},
	{"charge outcome", "", "later", ""},
	{"charge outcome", "", "refused", "wanted"},
	{"charge outcome", "", "not_found", ""},
	{"charge outcome", "", "order_ended", ""},
	{"charge outcome", consenting, "differs", "wanted"},
	{"refund outcome", "", "known", "intent"},
	{"refund outcome", "", "later", "intent"},
	{"refund outcome", "", "failed", ""},
	{"refund outcome", "", "paid", "intent"},
	{"refund outcome", "", "paid", "unknown"},
	{"refund outcome", "", "paid", "done"},
	{"refund outcome", "", "accepted", "unknown"},
}

// unlikely are cells that no run must fill, and the reasons: they need several coincidences.
var unlikely = []struct{ group, profile, outcome, step, why string }{
	{"send", "", "later", "unknown", "a late answer, after another process took over, of a bank that is busy"},
	{"send", "", "refused", "unknown", "a late answer, after another process took over, of a refused transfer"},
	{"send", consenting, "not_sent", "unknown", "a late answer, after another process took over, of a call that did not leave"},
	{"send", "", "refused", "accepted", "a refusal of a repeated send after the first one was accepted"},
	{"send", "", "", "not_found", "a transfer that waited in a queue beyond the quiet period is found later"},
	{"charge outcome", "", "registering", "cancel", "the order was canceled or expired while the call was in flight"},
	{"charge outcome", "", "differs", "cancel", "the order was canceled or expired while the call was in flight"},
	{"charge outcome", "", "known", "", "a request that a copy lacks, whose charge the bank has under other terms"},
	{"refund outcome", "", "refused", "intent", "a refusal of a repeated send counts after a second one"},
	{"refund outcome", "", "refused", "unknown", "a late answer, after another process took over, of a refused refund"},
	{"refund outcome", "", "later", "unknown", "a late answer, after another process took over, of a bank that is busy"},
	{"refund outcome", "", "not_sent", "unknown", "a late answer, after another process took over, of a call that did not leave"},
}

// of is the group of a profile.
func (m *matrix) of(profile string) string { return m.group + ", " + profile }

// from is the number of seeds from which on a run must fill a cell; ok is false if it need
// not.
func (m *matrix) from(profile, outcome, step string) (seeds int64, ok bool) {
	fits := func(group, p, o, s string) bool {
		return group == m.group && (p == "" || p == profile) && (o == "" || o == outcome) && (s == "" || s == step)
	}
	if (Cell{m.of(profile), outcome, step}).isImpossible() != "" {
		return 0, false
	}
	for _, c := range unlikely {
		if fits(c.group, c.profile, c.outcome, c.step) {
			return 0, false
		}
	}
	for _, c := range rare {
		if fits(c.group, c.profile, c.outcome, c.step) {
			return rareFrom, true
		}
	}
	return possibleFrom, true
}

// emptyCells lists the possible cells of outcomes that a run of the given number of seeds did
// not fill.
func (c coverage) emptyCells(seeds int64) (list []string) {
	for i := range matrices {
		m := &matrices[i]
		for _, profile := range profiles {
			for _, outcome := range m.outcomes {
				for _, step := range m.steps {
					from, ok := m.from(profile, outcome, step)
					if ok && seeds >= from && c[Cell{m.of(profile), outcome, step}] == 0 {
						list = append(list, fmt.Sprintf("%s: %s never met %s; it is possible, and neither rare nor unlikely", m.of(profile), outcome, step))
					}
				}
			}
		}
	}
	return list
}
