package sim

import (
	"slices"
	"time"

	"github.com/porteira/porteira/test/sim/checker"
)

// plan is the faults of one run and their rates. Each seed draws its own plan, which omits
// some faults, because a frequent fault hides the effects of others.
type plan struct {
	nodes int

	// Faults per thousand calls, notices, ….
	calls, queries, notices, webhooks int
	clients, payers, returns, delayed int
	crash, cut, pause, interleave     int
	refunds, panel, takenBack         int // refunds of pay-ins, at the bank's panel too, and acts of the bank on them

	limits    [merchantCount]checker.Limits
	endpoints []endpointPlan

	copyKind   string // "" for none
	crashesMax int
	wakeDelay  time.Duration // until a woken worker runs, at most

	bankUnreachable, bankRestarts, receiverDown, clocksOff bool

	without map[string]bool // faults

	hang  hanging // how an account hangs for a while; "" for not at all
	hangs int     // index of the account
	calm  bool    // no other faults of processes, calls and notices

	damage string // the table of which a row is damaged; "" for none

	persons  bool // who decide cases about unknown outcomes
	mistakes int  // of them, per thousand decisions about what was paid
}

func (s *simulation) drawPlan() plan {
	rate := func(most int) int {
		if s.chance(150) {
			return 0
		}
		return s.number(most) + 1
	}
	p := plan{
		nodes: 1, calls: rate(600), queries: rate(500), notices: rate(300), webhooks: rate(400), clients: rate(300),
		payers: rate(500), returns: rate(150), delayed: rate(120),
		crash: rate(4), cut: rate(4), pause: rate(4), interleave: rate(60), crashesMax: 1 + s.number(6),
		bankUnreachable: s.chance(400), bankRestarts: s.chance(400), receiverDown: s.chance(400), clocksOff: s.chance(300),
		refunds: rate(500), panel: rate(200), takenBack: rate(700),
		wakeDelay: pick(s, []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}),
		without:   map[string]bool{},
	}
	if s.chance(300) {
		p.nodes = 2
	}
	if s.chance(250) {
		p.copyKind = pick(s, copyKinds)
		p.delayed = 0 // beyond the quiet period that the bank promises
	}
	if s.chance(500) {
		p.hang, p.hangs, p.calm = pick(s, []hanging{hangsBefore, hangsAfter}), s.number(len(s.contracts)), s.chance(300)
	}
	if p.copyKind == "" && s.chance(400) {
		p.damage = pick(s, damageables).name
	}
	if p.calm {
		p.calls, p.queries, p.notices, p.delayed, p.crash, p.cut, p.pause, p.copyKind = 0, 0, 0, 0, 0, 0, 0, ""
		p.bankUnreachable, p.bankRestarts, p.clocksOff = false, false, false
	}
	if p.persons = s.chance(700); p.persons && s.chance(500) {
		p.mistakes = 700
	}
	p.limits, p.endpoints = s.drawLimits(), s.drawEndpoints(p.copyKind != "")
	faults := slices.Concat(callFaults, transferFaults, noticeFaults, questionFaults, webhookFaults)
	slices.Sort(faults)
	for _, fault := range slices.Compact(faults) {
		p.without[fault] = s.chance(250)
	}
	return p
}

// common are the states of most orders. In other states faults are more frequent.
var common = map[string]bool{
	"PENDING": true, "PAID": true, "PROCESSING intent": true, "PROCESSING accepted": true,
	"PROCESSING unknown": true, "COMPLETED": true, none: true,
	"payin.paid": true, "payout.processing": true, "payout.completed": true,
}

// uncommonRate is the number of faults per thousand calls in uncommon states.
const uncommonRate = 600

// drawFault draws a fault, or "" for none. In uncommon states it uses a round robin.
func (s *simulation) drawFault(perMille int, group, state string, lists ...[]string) string {
	if s.faultsOff {
		return ""
	}
	if !common[state] && (perMille > 0 || !s.plan.calm) {
		if !s.chance(uncommonRate) {
			return ""
		}
		return s.nextInTurn(group, state, lists...)
	}
	if !s.chance(perMille) {
		return ""
	}
	fault := pick(s, pick(s, lists))
	if s.plan.without[fault] {
		return ""
	}
	return fault
}

// nextInTurn is the next element of a round robin for a group and a state, which starts at a
// random one.
func (s *simulation) nextInTurn(group, state string, lists ...[]string) string {
	all := slices.Concat(lists...)
	n, begun := s.turns[group+state]
	if !begun {
		n = s.number(len(all))
	}
	s.turns[group+state] = n + 1
	return all[n%len(all)]
}

// scheduleFaults schedules the faults of processes and of whole parties within span.
func (s *simulation) scheduleFaults(span time.Duration) {
	schedule := func(fault func()) {
		s.after(s.between(0, span), func() {
			if !s.faultsOff {
				fault()
			}
		})
	}
	s.scheduleEndpoints(span)
	s.scheduleCopy(span)
	s.scheduleHang(span)
	s.scheduleDamage(span)
	s.schedulePersons()
	if s.plan.bankUnreachable {
		schedule(func() {
			s.bank.unreachable = true
			s.trace.linef("bank is unreachable")
			s.after(s.between(time.Second, 2*time.Minute), func() { s.bank.unreachable = false })
		})
	}
	if s.plan.bankRestarts {
		schedule(s.bank.restart)
	}
	if s.plan.receiverDown {
		schedule(func() {
			m := pick(s, s.merchants)
			m.receiver.down = true
			s.trace.linef("receiver of %s is down", m.name)
		})
	}
	if s.plan.clocksOff {
		for _, n := range s.nodes {
			schedule(n.setClock)
		}
	}
	for _, n := range s.nodes {
		if s.plan.crash > 0 {
			schedule(n.crash)
		}
	}
}
