package simulate

import (
	"slices"
	"time"
)

// Faults of a call to the bank, by what they do. Before the effect or after it
// is what matters to money.
var callFaults = []string{
	"refused",        // connection refused: provably not sent
	"no_name",        // DNS fails: provably not sent
	"timeout_before", // no effect, no answer
	"timeout_after",  // effect, no answer
	"reset_before",   // the connection breaks, no effect
	"reset_after",    // effect, then the connection breaks
	"503_before",     // a proxy's 503 without effect
	"429_before",     // too many requests
	"401_before",     // credential revoked in mid-flight
	"500_after",      // effect, then 500
	"504_after",      // effect, then a proxy's 504
	"half_json",      // effect, half of the answer
	"not_json",       // effect, a page of HTML
	"gzip",           // effect, an encoded answer
	"huge",           // effect, an endless answer
	"empty",          // effect, 200 without a body
	"other_id",       // effect, an answer about another order
	"late",           // effect, the answer comes 3 s later
	"twice",          // the request arrives twice
	"notice_first",   // the notice overtakes the answer
}

// transferFaults are those of a transfer besides callFaults, in the bank itself.
var transferFaults = []string{"refuse", "delayed", "notify_twice", "notify_reordered", "notify_never"}

// stale is a look-up's answer from a while ago.
const stale = "stale"

// noticeFaults are what becomes of a notice on its way.
var noticeFaults = []string{"lost", "answer_lost", "twice", "late", "forged", "replayed"}

// webhookFaults are what a receiver does.
var webhookFaults = []string{
	"refused", "timeout_before", "timeout_after", "reset_after", "500", "503_retry_after", "429_retry_after",
	"301", "410", "rubbish", "huge", "slow",
}

// clientFaults are what a merchant's network does to a request.
var clientFaults = []string{"lost", "answer_lost"}

// clientActs are what a merchant's program does with an order that it knows.
var clientActs = []string{"repeated", "changed", "at_once", "canceled", "read"}

// payerActs are what payers do, of which the first is what they should, and
// what a charge's bank does.
var payerActs = []string{"paid", "short", "over", "twice", "parts", "stranger", "fail", "expire", "dispute", "win", "lose"}

// bankActs are what the receiver's bank does with a payout.
var bankActs = []string{"complete", "fail", "return", "part"}

// plan is how much of what goes wrong in one run. Each seed draws its own, and
// leaves some faults out altogether: what always rains hides what a shower does.
type plan struct {
	nodes                                     int
	calls, queries, notices, webhooks         int // per mille of calls that go wrong
	clients, payers, returns                  int
	delayed                                   int
	crash, cut, freeze, interleave            int
	crashesMax                                int
	lag                                       time.Duration // until a loop that was woken runs, at the most
	bankDown, bankDies, receiverDown, badTime bool
	without                                   map[string]bool
}

func (s *simulation) draw() plan {
	rate := func(most int) int {
		if s.chance(150) {
			return 0
		}
		return s.number(most) + 1
	}
	p := plan{
		nodes: 1, calls: rate(600), queries: rate(500), notices: rate(300), webhooks: rate(400), clients: rate(300),
		payers: rate(500), returns: rate(150), delayed: rate(120),
		crash: rate(4), cut: rate(4), freeze: rate(4), interleave: rate(60), crashesMax: 1 + s.number(6),
		bankDown: s.chance(400), bankDies: s.chance(400), receiverDown: s.chance(400), badTime: s.chance(300),
		lag:     pick(s, []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second}),
		without: map[string]bool{},
	}
	if s.chance(300) {
		p.nodes = 2
	}
	for _, list := range [][]string{callFaults, transferFaults, noticeFaults, webhookFaults} {
		for _, kind := range list {
			if s.chance(250) {
				p.without[kind] = true
			}
		}
	}
	return p
}

// common are the states in which most orders are when something happens. In
// the others, most of what can go wrong does.
var common = map[string]bool{
	"PENDING": true, "PAID": true, "PROCESSING intent": true, "PROCESSING accepted": true,
	"PROCESSING unknown": true, "COMPLETED": true, none: true,
	"payin.paid": true, "payout.processing": true, "payout.completed": true,
}

// rarely is how many of a thousand go wrong in states that are not common.
const rarely = 600

// fault draws what goes wrong, or "" for nothing. In a state that is not common
// each fault has its turn.
func (s *simulation) fault(perMille int, group, state string, lists ...[]string) string {
	if s.calm {
		return ""
	}
	if !common[state] {
		if !s.chance(rarely) {
			return ""
		}
		return s.turn(group, state, lists...)
	}
	if !s.chance(perMille) {
		return ""
	}
	kind := pick(s, pick(s, lists))
	if s.plan.without[kind] {
		return ""
	}
	return kind
}

// turn is the next of lists for a group and a state; the first is any of them.
func (s *simulation) turn(group, state string, lists ...[]string) string {
	all := slices.Concat(lists...)
	n, begun := s.turns[group+state]
	if !begun {
		n = s.number(len(all))
	}
	s.turns[group+state] = n + 1
	return all[n%len(all)]
}

// chaos plans what happens to whole processes during the given time.
func (s *simulation) chaos(span time.Duration) {
	during := func() time.Duration { return s.between(0, span) }
	unlessCalm := func(do func()) func() {
		return func() {
			if !s.calm {
				do()
			}
		}
	}
	if s.plan.bankDown {
		s.after(during(), unlessCalm(func() {
			s.bank.down = true
			s.trace.linef("bank is not reached")
			s.after(s.between(time.Second, 2*time.Minute), func() { s.bank.down = false })
		}))
	}
	if s.plan.bankDies {
		s.after(during(), unlessCalm(s.bank.restart))
	}
	if s.plan.receiverDown {
		s.after(during(), unlessCalm(func() {
			m := pick(s, s.merchants)
			m.receiver.down = true
			s.trace.linef("receiver of %s is dead", m.name)
		}))
	}
	if s.plan.badTime {
		for _, n := range s.nodes {
			s.after(during(), unlessCalm(func() {
				n.offset = pick(s, []time.Duration{-time.Hour, -2 * time.Second, time.Second, 10 * time.Second, time.Hour, 26 * time.Hour, 14 * 24 * time.Hour})
				s.trace.linef("%s has its clock off by %v", n.name, n.offset)
			}))
		}
	}
	for _, n := range s.nodes {
		if s.plan.crash > 0 {
			s.after(during(), unlessCalm(n.crash))
		}
	}
}
