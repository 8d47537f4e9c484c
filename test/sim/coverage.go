package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Cell is a fault and the state of the order, or the type of the event, that it met.
type Cell struct {
	Group string // of the fault
	Fault string
	State string
}

// coverage is the number of times that each fault occurred in each state.
type coverage map[Cell]int

func (c coverage) count(group, fault, state string) { c[Cell{group, fault, state}]++ }

// required is a block of cells that a run of the given number of seeds must fill: a fault
// that never occurs tests nothing.
type required struct {
	seeds  int64
	group  string
	faults []string
	states []string
}

// chargeFaults are the faults of calls that request charges.
var chargeFaults = append(slices.Clone(callFaults), registering)

// refundCallFaults are the faults of calls that request refunds.
var refundCallFaults = slices.Concat(callFaults, refundFaults)

// sendOutcomes are the outcomes that the answer to a send can have.
var sendOutcomes = []string{"accepted", "known", "later", "not_sent", "refused", "unknown", "paid"}

func without(list []string, left string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == left })
}

// requirements grow with the run: rare states need many seeds.
var requirements = []required{
	{200, "transfer, " + idempotent, slices.Concat(callFaults, transferFaults), []string{"PROCESSING intent"}},
	{200, "transfer, " + rejecting, slices.Concat(callFaults, transferFaults), []string{"PROCESSING intent"}},
	{200, "transfer, " + notIdempotent, without(slices.Concat(callFaults, transferFaults), "twice"), []string{"PROCESSING intent"}},
	{200, "transfer, " + consenting, slices.Concat(callFaults, transferFaults), []string{"PROCESSING intent"}},
	{200, "charge, " + idempotent, chargeFaults, []string{"PENDING"}},
	{200, "charge, " + rejecting, chargeFaults, []string{"PENDING"}},
	{200, "charge, " + notIdempotent, chargeFaults, []string{"PENDING"}},
	{200, "charge, " + consenting, chargeFaults, []string{"PENDING"}},
	{200, "cancel", callFaults, []string{"CANCELED", "EXPIRED"}},
	{200, "send, " + idempotent, sendOutcomes, []string{"intent"}},
	{200, "send, " + rejecting, sendOutcomes, []string{"intent"}},
	{200, "send, " + notIdempotent, sendOutcomes, []string{"intent"}},
	{200, "send, " + consenting, sendOutcomes, []string{"intent"}},
	{200, "send, " + idempotent, []string{"paid", "not_found"}, []string{"unknown"}},
	{200, "send, " + rejecting, []string{"paid", "not_found"}, []string{"unknown"}},
	{200, "send, " + notIdempotent, []string{"paid", "not_found"}, []string{"unknown"}},
	{200, "send, " + consenting, []string{"paid", "accepted", "not_found"}, []string{"unknown"}},
	{200, "send, " + idempotent, []string{"paid"}, []string{"accepted"}},
	{200, "send, " + rejecting, []string{"paid"}, []string{"accepted"}},
	{200, "send, " + notIdempotent, []string{"paid"}, []string{"accepted"}},
	{200, "send, " + consenting, []string{"paid", "failed"}, []string{"accepted"}},
	{1000, "send, " + idempotent, []string{"accepted"}, []string{"unknown"}},
	{1000, "send, " + rejecting, []string{"accepted"}, []string{"unknown"}},
	{1000, "send, " + notIdempotent, []string{"accepted"}, []string{"unknown"}},
	{1000, "send, " + idempotent, []string{"failed"}, []string{"accepted"}},
	{1000, "send, " + rejecting, []string{"failed"}, []string{"accepted"}},
	{1000, "send, " + notIdempotent, []string{"failed"}, []string{"accepted"}},
	{1000, "send, " + notIdempotent, []string{"paid"}, []string{"not_found"}},
	{1000, "refund, " + idempotent, refundCallFaults, []string{"PROCESSING intent"}},
	{1000, "refund, " + rejecting, refundCallFaults, []string{"PROCESSING intent"}},
	{1000, "refund, " + notIdempotent, without(refundCallFaults, "twice"), []string{"PROCESSING intent"}},
	{1000, "refund, " + consenting, without(refundCallFaults, "twice"), []string{"PROCESSING intent"}},
	{1000, "look-up, refund", append(slices.Clone(callFaults), stale), []string{"PROCESSING accepted"}},
	{10_000, "look-up, refund", append(slices.Clone(callFaults), stale), []string{"PROCESSING unknown"}},
	{1000, "notice, refund", noticeFaults, []string{"PROCESSING accepted", "COMPLETED", "FAILED"}},
	{200, "refund asked", refundAsks, []string{"PENDING", "PAID", "PARTIALLY_REFUNDED", "REFUNDED"}},
	{200, "bank, refund", []string{"complete", "fail"}, []string{"PROCESSING accepted", "COMPLETED"}},
	{200, "bank, refund", []string{"panel"}, []string{"PENDING", "PAID"}},
	{1000, "bank, refund", []string{"panel"}, []string{"PARTIALLY_REFUNDED"}},
	{200, "refund refused", []string{"invalid_state"}, []string{"PENDING", "EXPIRED", "CANCELED", "REFUNDED"}},
	{200, "refund refused", []string{"validation_failed", "refund_not_possible"}, []string{"PAID"}},
	{200, "refund refused", []string{"validation_failed"}, []string{"PARTIALLY_REFUNDED"}},
	{200, "limit", []string{"minimum", "maximum", "perDay", "perNight", "perKeyPerDay", "countPerKeyPerDay", "newKeyMaximum"}, []string{"any"}},
	{200, "approval", decisions, []string{"PENDING approval"}},
	{200, "endpoint", append(slices.Clone(stories), "probed", "catches up", "redelivered"), []string{"any"}},
	{1000, "endpoint", []string{"disabled"}, []string{"any"}},
	{200, "question", questionFaults, []string{"PROCESSING accepted"}},
	{1000, "question", questionFaults, []string{"PROCESSING unknown"}},
	{rareFrom, "question", questionFaults, []string{"COMPLETED"}},
	{200, "consent", []string{"approved", "no answer"}, []string{"PROCESSING accepted", "PROCESSING unknown"}},
	{200, "consent", []string{"refused"}, []string{"PROCESSING accepted", "COMPLETED", "FAILED"}},
	{200, "account", []string{string(hangsBefore), string(hangsAfter)}, profiles},
	{200, "beside an account that hangs", []string{"payin", "payout"}, profiles},
	{200, "damage", []string{"payouts", "charges", "notices", "events", "feeds", "refund_parts", "resolved"}, []string{"any"}},
	{200, "receivable", []string{"added", "settled", "taken", "restored"}, []string{"any"}},
	{200, "list", callFaults, []string{none}},
	{200, "look-up, pay-in", callFaults, []string{"PENDING", "PAID"}},
	{1000, "look-up, pay-in", callFaults, []string{"EXPIRED", "CANCELED", "DISPUTED"}},
	{20_000, "look-up, pay-in", callFaults, []string{"CHARGEBACK"}},
	{200, "look-up, payout", append(slices.Clone(callFaults), stale), []string{"PROCESSING accepted", "PROCESSING unknown", "COMPLETED"}},
	{4000, "look-up, payout", callFaults, []string{"RETURNED"}},
	{200, "notice, pay-in", noticeFaults, []string{"PENDING", "PAID", "EXPIRED", "CANCELED", "DISPUTED"}},
	{1000, "notice, pay-in", noticeFaults, []string{"CHARGEBACK"}},
	{200, "notice, payout", noticeFaults, []string{"PROCESSING accepted", "PROCESSING unknown", "COMPLETED", "RETURNED"}},
	{1000, "notice, payout", noticeFaults, []string{"PROCESSING intent", "FAILED"}},
	{200, "client", clientFaults, []string{none}},
	{200, "client, pay-in", slices.Concat(clientFaults, clientActs), []string{"PENDING", "PAID", "EXPIRED", "CANCELED", "FAILED", "DISPUTED"}},
	{1000, "client, pay-in", clientActs, []string{"CHARGEBACK"}},
	{200, "client, payout", slices.Concat(clientFaults, clientActs), []string{"COMPLETED", "RETURNED"}},
	{1000, "client, payout", clientActs, []string{"PENDING", "PROCESSING accepted", "PROCESSING unknown", "FAILED"}},
	{200, "payer", []string{"paid", "short", "over", "twice", "parts", "stranger"}, []string{"PENDING", "PAID", "EXPIRED", "CANCELED", "DISPUTED"}},
	{200, "payer", []string{"dispute"}, []string{"PAID"}},
	{200, "payer", []string{"win", "lose"}, []string{"DISPUTED"}},
	{200, "payer", []string{"fail", "expire"}, []string{"PENDING"}},
	{200, "bank", []string{"complete", "return", "part"}, []string{"PROCESSING accepted", "COMPLETED"}},
	{200, "bank", []string{"fail"}, []string{"PROCESSING accepted"}},
	{200, "webhook", webhookFaults, []string{
		"payin.paid", "payin.expired", "payin.overpaid", "payout.processing", "payout.completed", "payout.failed", "payout.returned",
	}},
	{1000, "webhook", webhookFaults, []string{"payin.canceled", "payin.disputed", "payin.failed", "payin.underpaid"}},
	{20_000, "webhook", webhookFaults, []string{"payin.dispute_won", "payin.chargeback", "payout.canceled"}},
	{200, "process", []string{
		"crash commit.after", "crash answer.before", "crash delivery.before", "crash delivery.after", "crash transfer.before", "crash transfer.after",
		"pause commit.after", "pause answer.before", "pause delivery.before", "pause delivery.after", "pause transfer.before", "pause transfer.after",
		"cut commit.before", "cut commit.after", "pause lookup.after", "crash lookup.after",
	}, []string{"any"}},
}

// impossible are the cells that cannot be filled, and the reasons. If one is filled, this
// list or the gateway is wrong.
var impossible = []struct{ group, fault, state, why string }{
	{"transfer", "", "PENDING", "the intent to send is recorded before anything is sent"},
	{"transfer", "", "PENDING approval", "nothing is sent without approval"},
	{"transfer", "", "PROCESSING queued", "the intent to send is recorded before anything is sent"},
	{"transfer", "", "PROCESSING accepted", "a transfer that the bank has accepted is not sent again"},
	{"transfer", "", "CANCELED", "a canceled payout is not sent"},
	{"transfer", "", "RETURNED", "a paid payout is not sent again"},
	{"transfer, " + notIdempotent, "twice", "", "the bank would pay twice: no gateway could prevent it"},
	{"refund, " + notIdempotent, "twice", "", "the bank would pay twice: no gateway could prevent it"},
	{"refund, " + consenting, "twice", "", "the bank would pay twice: no gateway could prevent it"},
	{"send", "not_found", "intent", "a send is looked up when its outcome is unknown"},
	{"send", "unknown", "accepted", "the bank has the transfer, so its outcome is not unknown again"},
	{"send", "known", "accepted", "a transfer that the bank has accepted is not sent again"},
	{"send", "not_sent", "accepted", "a transfer that the bank has accepted was sent"},
	{"send", "later", "accepted", "a transfer that the bank has accepted was sent"},
	{"send", "not_found", "accepted", "a look-up that lags proves nothing about an accepted transfer"},
	{"send", "unknown", "not_found", "the next send has an outcome of its own"},
	{"send", "known", "not_found", "the next send has an outcome of its own"},
	{"send", "not_sent", "not_found", "the next send has an outcome of its own"},
	{"send", "later", "not_found", "the next send has an outcome of its own"},
	{"send", "unknown", "unknown", "an outcome that stays is not counted"},
	{"send", "known", "unknown", "an outcome that stays is not counted: the id that is in use makes it unknown"},
	{"send", "accepted", "accepted", "an outcome that stays is not counted"},
	{"send", "not_found", "not_found", "an outcome that stays is not counted"},
	{"refund outcome", "not_found", "intent", "a refund is looked up when its outcome is unknown"},
	{"refund outcome", "taken_back", "intent", "a refund comes back after it was paid"},
	{"refund outcome", "taken_back", "unknown", "a refund comes back after it was paid"},
	{"refund outcome", "taken_back", "accepted", "a refund comes back after it was paid"},
	{"refund outcome", "unknown", "unknown", "an outcome that stays is not counted"},
	{"refund outcome", "known", "unknown", "an answer counts only for the process that sent it"},
	{"refund outcome", "accepted", "accepted", "an outcome that stays is not counted"},
	{"refund outcome", "known", "accepted", "a refund that the bank has accepted is not sent again"},
	{"refund outcome", "later", "accepted", "a refund that the bank has accepted is not sent again"},
	{"refund outcome", "not_sent", "accepted", "a refund that the bank has accepted was sent"},
	{"refund outcome", "refused", "accepted", "a refund that the bank has accepted is not sent again"},
	{"refund outcome", "unknown", "accepted", "the bank has the refund, so its outcome is not unknown again"},
	{"refund outcome", "not_found", "accepted", "a look-up that lags proves nothing about an accepted refund"},
	{"refund outcome", "accepted", "done", "a refund that has ended is not in progress again"},
	{"refund outcome", "known", "done", "a refund that has ended is not sent again"},
	{"refund outcome", "later", "done", "a refund that has ended is not sent again"},
	{"refund outcome", "not_sent", "done", "a refund that has ended is not sent again"},
	{"refund outcome", "refused", "done", "a refund that has ended is not sent again"},
	{"refund outcome", "unknown", "done", "a refund that has ended is not sent again"},
	{"refund outcome", "failed", "done", "one that was paid and then fails is taken back"},
	{"refund outcome", "not_found", "done", "a refund that has ended is not looked up"},
	{"consent", "approved", "FAILED", "the money was released"},
	{"consent", "approved", "CANCELED", "the money was released"},
	{"look-up, payout", "", "CANCELED", "a payout that was never sent is not looked up"},
	{"charge", "", "PAID", "a charge cannot be paid before it exists"},
	{"look-up, payout", "", "PENDING", "a payout that was never sent is not looked up"},
	{"refund", "", "PENDING", "the intent to send is recorded before anything is sent"},
	{"refund", "", "PROCESSING queued", "the intent to send is recorded before anything is sent"},
	{"refund", "", "PROCESSING accepted", "a refund that the bank has accepted is not sent again"},
	{"look-up, refund", "", "PENDING", "a refund that was never sent is not looked up"},
	{"*", "", "payin.processing", "the sandbox does not analyse cards"},
}

// isImpossible returns why a cell cannot be filled; "" if it can.
func (c Cell) isImpossible() string {
	for _, no := range impossible {
		group := no.group == "*" || no.group == c.Group || strings.HasPrefix(c.Group, no.group+", ")
		if group && (no.state == "" || no.state == c.State) && (no.fault == "" || no.fault == c.Fault) {
			return no.why
		}
	}
	return ""
}

// problems lists the defects of the coverage of a run of the given number of seeds.
func (c coverage) problems(seeds int64) (list []string) {
	for _, d := range requirements {
		if seeds < d.seeds {
			continue
		}
		for _, fault := range d.faults {
			for _, state := range d.states {
				if c[Cell{d.group, fault, state}] == 0 {
					list = append(list, fmt.Sprintf("%s: %s never met %s", d.group, fault, state))
				}
			}
		}
	}
	return append(list, c.emptyCells(seeds)...)
}

// impossible lists the impossible cells that a run has filled.
func (c coverage) impossible() (list []string) {
	for _, cell := range slices.SortedFunc(maps.Keys(c), compareCells) {
		if why := cell.isImpossible(); why != "" {
			list = append(list, fmt.Sprintf("%s: %s met %s, which is listed as impossible: %s", cell.Group, cell.Fault, cell.State, why))
		}
	}
	return list
}

// compareCells orders cells by group, fault and state.
func compareCells(a, b Cell) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Fault, b.Fault), cmp.Compare(a.State, b.State))
}

// table shows the counts, a block for each group, and the impossible cells.
func (c coverage) table() string {
	var b strings.Builder
	groups := map[string]bool{}
	for cell := range c {
		groups[cell.Group] = true
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		c.block(&b, group)
	}
	b.WriteString("impossible:\n")
	for _, no := range impossible {
		fmt.Fprintf(&b, "  %-24s %-10s %-26s %s\n", no.group, no.fault, no.state, no.why)
	}
	b.WriteString("unlikely:\n")
	for _, no := range unlikely {
		fmt.Fprintf(&b, "  %-24s %-10s %-26s %s %s\n", no.group, no.outcome, no.step, no.profile, no.why)
	}
	return b.String()
}

func (c coverage) block(b *strings.Builder, group string) {
	faults, states := map[string]bool{}, map[string]bool{}
	for cell := range c {
		if cell.Group == group {
			faults[cell.Fault], states[cell.State] = true, true
		}
	}
	columns := slices.Sorted(maps.Keys(states))
	fmt.Fprintf(b, "%s\n%-24s", group, "")
	for _, state := range columns {
		fmt.Fprintf(b, " %s", state)
	}
	b.WriteString("\n")
	for _, fault := range slices.Sorted(maps.Keys(faults)) {
		fmt.Fprintf(b, "  %-22s", fault)
		for _, state := range columns {
			fmt.Fprintf(b, " %*d", len(state), c[Cell{group, fault, state}])
		}
		b.WriteString("\n")
	}
}
