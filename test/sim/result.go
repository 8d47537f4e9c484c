package sim

import (
	"fmt"
	"strings"
	"time"
)

// Result is the result of a run.
type Result struct {
	Seed         uint64
	Orders       int // acknowledged
	Payouts      int // transfers of the bank
	Faults       int // of all kinds
	PayoutFaults int // of those, in calls about a payout
	EffectFaults int // of those, in calls with an effect
	Crashes      int
	Commits      int
	Steps        int
	Proved       int // rows that the gateway's own checks found sound
	Simulated    time.Duration
	Trace        string // digest
	// Coverage is the number of times that each fault occurred in each state.
	Coverage map[Cell]int
	// Broken lists the broken rules, with the history of the orders concerned; "" if
	// none was.
	Broken string
}

func (s *simulation) finish() {
	s.result.Seed = s.options.Seed
	s.result.Steps = s.steps
	s.result.Simulated = s.clock.Monotonic()
	s.result.Coverage = s.coverage
	s.result.Payouts = len(s.records.Transfers)
	s.trace.linef("end: %d orders, %d transfers, %d payments, %d deliveries",
		s.result.Orders, len(s.records.Transfers), len(s.records.Payments), len(s.records.Deliveries))
	s.result.Trace = s.trace.sum()
	s.result.Broken = s.describeViolations()
}

// Limits of a description.
const (
	violationsShown = 10
	historiesShown  = 3
)

func (s *simulation) describeViolations() string {
	var text strings.Builder
	shown := map[string]bool{}
	for i, v := range s.violations {
		if i == violationsShown {
			fmt.Fprintf(&text, "and %d more\n", len(s.violations)-i)
			break
		}
		fmt.Fprintf(&text, "%s: merchant %s, order %s: %s\n", v.Invariant, v.Merchant, v.Order, v.Text)
		if v.Order != "" && !shown[v.Order] && len(shown) < historiesShown {
			shown[v.Order] = true
			text.WriteString(s.checker.History(v.Order))
		}
	}
	return text.String()
}
