package sim

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/porteira/porteira/internal/limits"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/test/sim/checker"
)

// pixKeys are those of beneficiaries.
var pixKeys = []string{"maria@example.com", "joao@example.com", "ana@example.com"}

// decisions are what happens to a payout that waits for approval.
var decisions = []string{"approve", "approve", "two", "twice", "own", "reject", "reject own", "approve then reject", "leave"}

// drawLimits draws the limits of the merchants: the first has none, those of the second
// refuse nothing but are counted, and those of the third refuse some payouts and let others
// wait for approval.
func (s *simulation) drawLimits() (list [merchantCount]checker.Limits) {
	for i := range list {
		list[i] = checker.NoLimits
	}
	l := &list[merchantCount-1]
	l.Minimum = 0
	draw := func(into *int64, perMille int, least, most int64) {
		if value := least + s.random.Int64N(most-least+1); s.chance(perMille) {
			*into = value
		}
	}
	draw(&l.Minimum, 300, 1, 50_00)
	draw(&l.Maximum, 500, 150_00, 290_00)
	draw(&l.PerDay, 500, 1_000_00, 5_000_00)
	draw(&l.PerNight, 500, 300_00, 2_000_00)
	draw(&l.PerKeyPerDay, 400, 300_00, 2_000_00)
	draw(&l.CountPerKeyPerDay, 400, 2, 12)
	draw(&l.NewKeyMaximum, 400, 300_00, 2_000_00)
	draw(&l.ApprovalAbove, 700, 0, 200_00)
	if l.ApprovalAbove >= 0 {
		l.Approvals = 1 + s.random.Int64N(2)
	}
	return list
}

// limitsOf are the limits of a merchant in the gateway's form. Those of the second count all
// that can be counted, which the gateway's own verification compares with its payouts.
func (s *simulation) limitsOf(i int) limits.Limits {
	if i == 1 {
		wide := new(money.Max)
		return limits.Limits{Payout: limits.Payout{PerDay: wide, PerNight: wide, PerKeyPerDay: wide, NewKeyMaximum: wide}}
	}
	l := s.plan.limits[i]
	amount := func(v int64) *money.Cents {
		if v < 0 {
			return nil
		}
		return new(money.Cents(v))
	}
	p := limits.Payout{
		Range: limits.Range{Maximum: amount(l.Maximum)}, PerDay: amount(l.PerDay), PerNight: amount(l.PerNight),
		PerKeyPerDay: amount(l.PerKeyPerDay), NewKeyMaximum: amount(l.NewKeyMaximum), ApprovalAbove: amount(l.ApprovalAbove),
	}
	if l.Minimum > 0 {
		p.Minimum = amount(l.Minimum)
	}
	if l.CountPerKeyPerDay >= 0 {
		p.CountPerKeyPerDay = &l.CountPerKeyPerDay
	}
	if l.Approvals > 0 {
		p.Approvals = &l.Approvals
	}
	return limits.Limits{Payout: p}
}

// limitsByID are the limits of a merchant by the simulation's own records.
func (s *simulation) limitsByID(id string) checker.Limits {
	i := slices.IndexFunc(s.merchants, func(v *merchant) bool { return v.id == id })
	if i < 0 {
		i = len(s.merchants) // it is being created
	}
	return s.plan.limits[i]
}

// usage is what limits count for a payout now.
func (s *simulation) usage(o *order) checker.Usage {
	toKey := map[string]bool{}
	for _, other := range s.placed {
		if other.Kind == checker.Payout && other.Merchant == o.Merchant && other.PIXKey == o.PIXKey {
			toKey[other.Reference] = true
		}
	}
	return s.checker.Usage(o.Merchant, toKey, s.clock.Now())
}

// checkLimitRefusal checks that a payout was refused for a limit that it would have passed
// before or after its request.
func (m *merchant) checkLimitRefusal(o *order, a *answer, before checker.Usage, began time.Time) {
	s := m.sim
	after := s.usage(o)
	s.coverage.count("limit", a.Limit, "any")
	fits := before.Exceeds(a.Limit, o.Amount, began) || after.Exceeds(a.Limit, o.Amount, s.clock.Now())
	if !fits && !s.plan.clocksOff && after.Commits-before.Commits <= 1 {
		s.violate(checker.LimitsHold, m.id, "", fmt.Sprintf("payout %s of %d is answered %s; %+v", o.Reference, o.Amount, a.body, after))
	}
}

// scheduleDecision schedules what happens to a payout that waits for approval.
func (s *simulation) scheduleDecision(o *order, a *answer) {
	if a.Approval != "required" {
		return
	}
	m := s.merchantOf(o)
	s.after(s.between(0, 90*time.Second), func() { m.decide(o) })
}

// decide decides about a payout that waits for approval, as other people or as its own
// credential.
func (m *merchant) decide(o *order) {
	s := m.sim
	state := s.stateOf(o.ExternalID)
	how := s.nextInTurn("decide", state, decisions)
	s.coverage.count("approval", how, state)
	boss, chief := m.approvers[0], m.approvers[1]
	switch how {
	case "approve":
		m.sendDecision(o, boss, "approve", true)
	case "two":
		m.sendDecision(o, boss, "approve", true)
		m.sendDecision(o, chief, "approve", true)
	case "twice":
		m.sendDecision(o, boss, "approve", true)
		m.sendDecision(o, boss, "approve", true)
	case "own":
		m.sendDecision(o, m.credential, "approve", false)
	case "reject":
		m.sendDecision(o, chief, "reject", true)
	case "reject own":
		m.sendDecision(o, m.credential, "reject", false)
	case "approve then reject":
		m.sendDecision(o, boss, "approve", true)
		m.sendDecision(o, chief, "reject", true)
	}
}

// sendDecision sends a decision, which is refused to the credential that requested the payout.
func (m *merchant) sendDecision(o *order, by credential, how string, allowed bool) {
	s := m.sim
	if o.ID == "" {
		return // a copy of the database lacks it
	}
	a := m.callAs(by, http.MethodPost, o.resource()+"/"+how, nil, s.drawFault(s.plan.clients, "client, approval", s.stateOf(o.ExternalID), clientFaults))
	s.trace.linef("%s: %s %s by %s: %d %s", m.name, how, o.Reference, by.key, a.status, a.Code)
	switch {
	case a.status == http.StatusOK && allowed:
		o.Rejected = o.Rejected || how == "reject"
		if how == "approve" && a.Approval != "required" {
			s.expectBeside(o)
		}
	case a.status == http.StatusUnprocessableEntity && a.Code == "limit_exceeded" && how == "approve": // of the day of the approval
		s.coverage.count("limit of approval", a.Limit, "any")
	case a.status == http.StatusConflict, a.unavailable(), a.status == http.StatusForbidden && !allowed:
	default:
		s.violate(checker.LimitsHold, m.id, o.ID, fmt.Sprintf("%s by %s is answered %d: %s", how, by.key, a.status, a.body))
	}
}
