package dispute_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// openMore is an order with an open dispute of a part, and openBoth one with two.
const openMore, openBoth = "paid, D open 40", "paid, D open 40, E open 60"

// severalDisputes are decisions about an order with several disputes.
var severalDisputes = []struct{ name, given, reported, changes string }{
	{"another one opens", openMore, "E open 60", `
		payins disputed_amount:4000→10000 version:4→5
		+disputes OPEN 6000
		+postings dispute_opened available -6000
		+postings dispute_opened disputed 6000
		+events payin.disputed
		+events dispute.opened`},
	{"another one opens, of more than is left", openMore, "E open", `
		payins disputed_amount:4000→10000 version:4→5
		+disputes OPEN 6000
		+cases dispute_unexpected 4000 reason:more_than_received reported:10000
		+postings dispute_opened available -6000
		+postings dispute_opened disputed 6000
		+events payin.disputed
		+events dispute.opened`},
	{"of the second receipt", "paid, paid more 20, D open", "E open 20", `
		payins disputed_amount:10000→12000 version:5→6
		+disputes OPEN 2000
		+postings dispute_opened available -2000
		+postings dispute_opened disputed 2000
		+events payin.disputed
		+events dispute.opened`},
	{"of the second receipt, lost", "paid, paid more 20, D open, E open 20", "E lost", `
		payins version:6→7
		disputes closed_at:-→now lost:0→2000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+postings charged_back disputed -2000
		+postings charged_back clearing:bank 2000
		+events payin.chargeback
		+events dispute.closed`},
	{"one is won", openBoth, "D won", `
		payins disputed_amount:10000→6000 version:5→6
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -4000
		+postings dispute_won available 4000
		+events payin.dispute_won
		+events dispute.closed`},
	{"both are won", openBoth + ", D won", "E won", `
		payins disputed_amount:6000→0 status:DISPUTED→PAID version:6→7
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -6000
		+postings dispute_won available 6000
		+events payin.dispute_won
		+events dispute.closed`},
	{"one is lost", openBoth, "D lost", `
		payins version:5→6
		disputes closed_at:-→now lost:0→4000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+postings charged_back disputed -4000
		+postings charged_back clearing:bank 4000
		+events payin.chargeback
		+events dispute.closed`},
	{"one is lost, the other won", openBoth + ", D lost", "E won", `
		payins disputed_amount:10000→4000 status:DISPUTED→CHARGEBACK version:6→7
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -6000
		+postings dispute_won available 6000
		+events payin.dispute_won
		+events dispute.closed`},
	{"one is won, the other lost", openBoth + ", D won", "E lost", `
		payins status:DISPUTED→CHARGEBACK version:6→7
		disputes closed_at:-→now lost:0→6000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+postings charged_back disputed -6000
		+postings charged_back clearing:bank 6000
		+events payin.chargeback
		+events dispute.closed`},
	{"one is reversed while the other is open", openBoth + ", D lost", "D reversed", `
		payins disputed_amount:10000→6000 version:6→7
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -4000
		+postings chargeback_reversed available 4000
		+events payin.dispute_won
		+events dispute.closed`},
	{"one is reversed, the other won", openBoth + ", D reversed", "E won", `
		payins disputed_amount:6000→0 status:DISPUTED→PAID version:7→8
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -6000
		+postings dispute_won available 6000
		+events payin.dispute_won
		+events dispute.closed`},
	{"both are lost, one is reversed", openBoth + ", D lost, E lost", "D reversed", `
		payins disputed_amount:10000→6000 version:7→8
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -4000
		+postings chargeback_reversed available 4000
		+events payin.dispute_won
		+events dispute.closed`},
	{"both are lost and reversed", openBoth + ", D lost, E lost, D reversed", "E reversed", `
		payins disputed_amount:6000→0 status:CHARGEBACK→PAID version:8→9
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -6000
		+postings chargeback_reversed available 6000
		+events payin.dispute_won
		+events dispute.closed`},
	{"reported again", openBoth, "D open 40, E open 60", ""},
}

// afterChargebacks are decisions about an order with other disputes after a chargeback.
var afterChargebacks = []struct{ name, given, reported, changes string }{
	{"another one opens after a chargeback", "paid, D lost 40", "E open 60", `
		payins disputed_amount:4000→10000 version:5→6
		+disputes OPEN 6000
		+postings dispute_opened available -6000
		+postings dispute_opened disputed 6000
		+events payin.disputed
		+events dispute.opened`},
	{"won after a chargeback", "paid, D lost 40, E open 60", "E won", `
		payins disputed_amount:10000→4000 version:6→7
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -6000
		+postings dispute_won available 6000
		+events payin.dispute_won
		+events dispute.closed`},
	{"lost after a chargeback", "paid, D lost 40, E open 60", "E lost", `
		payins version:6→7
		disputes closed_at:-→now lost:0→6000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+postings charged_back disputed -6000
		+postings charged_back clearing:bank 6000
		+events payin.chargeback
		+events dispute.closed`},
	{"a chargeback is reversed while another one is open", "paid, D lost 40, E open 60", "D reversed", `
		payins disputed_amount:10000→6000 version:6→7
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -4000
		+postings chargeback_reversed available 4000
		+events payin.dispute_won
		+events dispute.closed`},
	{"won after a chargeback that was reversed", "paid, D lost 40, E open 60, D reversed", "E won", `
		payins disputed_amount:6000→0 status:CHARGEBACK→PAID version:7→8
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -6000
		+postings dispute_won available 6000
		+events payin.dispute_won
		+events dispute.closed`},
	{"the same, and a part was refunded", "paid, refunded 40, D lost 30, E open 30, D reversed", "E won", `
		payins disputed_amount:3000→0 status:CHARGEBACK→PARTIALLY_REFUNDED version:8→9
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -3000
		+postings dispute_won available 3000
		+events payin.dispute_won
		+events dispute.closed`},
	{"what was won can be disputed again", openBoth + ", D won", "F open 40", `
		payins disputed_amount:6000→10000 version:6→7
		+disputes OPEN 4000
		+postings dispute_opened available -4000
		+postings dispute_opened disputed 4000
		+events payin.disputed
		+events dispute.opened`},
}

// Finding L2: an order may have several disputes at once, of its payments or of parts of
// them. Each is booked, and the status follows from all of them.
func TestDecisionsOfSeveralDisputes(t *testing.T) {
	for _, row := range slices.Concat(severalDisputes, afterChargebacks) {
		t.Run(row.name, func(t *testing.T) {
			o := newOrder(t)
			o.happens(row.given)
			o.WantDecision(o.reports(row.reported), row.changes, "")
			o.WantProven()
		})
	}
}

// Disputes of one order that are listed one after another, with a restart between: what the
// bank took is booked to the cent.
func TestSeveralDisputesOfAFeed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "A", 100_00)
		g.Bank.Receive(p.ExternalID, "B", 20_00)
		g.Notify("paid", "charge "+p.ExternalID)
		g.Apply()
		listed := func(id string, amount money.Cents, state processor.DisputeState, want payment.PayinStatus, version int64) {
			t.Helper()
			g.Bank.Dispute(p.ExternalID, id, amount, state)
			g.Jump(10 * time.Minute)
			g.ReadFeeds()
			g.Apply()
			if got, err := g.Store.Payin(t.Context(), p.Merchant, p.ID); err != nil || got.Status != want || got.Version != version {
				t.Fatalf("%s %s: it is %s, version %d, %v, want %s, version %d", id, state, got.Status, got.Version, err, want, version)
			}
		}
		paid, err := g.Store.Payin(t.Context(), p.Merchant, p.ID)
		g.Must(err)
		v := paid.Version
		listed("D", 100_00, processor.DisputeOpen, payment.PayinDisputed, v+1)
		listed("E", 20_00, processor.DisputeOpen, payment.PayinDisputed, v+2)
		g.Restart(nil)
		listed("E", 20_00, processor.DisputeLost, payment.PayinDisputed, v+3)
		g.WantCases(store.CaseOverpaid)
		listed("D", 100_00, processor.DisputeWon, payment.PayinChargeback, v+4)
		listed("F", 50_00, processor.DisputeOpen, payment.PayinChargeback, v+5)
		listed("E", 20_00, processor.DisputeReversed, payment.PayinChargeback, v+6)
		listed("F", 50_00, processor.DisputeLost, payment.PayinChargeback, v+7)
		g.WantBalances(coretest.Opening+50_00, 0)
		listed("F", 50_00, processor.DisputeReversed, payment.PayinPaid, v+8)
		g.WantBalances(coretest.Opening+100_00, 0)
		opened, closed := payment.EventDisputeOpened, payment.EventDisputeClosed
		g.WantEvents(payment.EventPayinPaid, payment.EventPayinOverpaid, payment.EventPayinDisputed, opened, payment.EventPayinDisputed, opened,
			payment.EventPayinChargeback, closed, payment.EventPayinDisputeWon, closed, payment.EventPayinDisputed, opened,
			payment.EventPayinDisputeWon, closed, payment.EventPayinChargeback, closed, payment.EventPayinDisputeWon, closed)
		g.WantCases(store.CaseOverpaid)
		g.WantProven()
	})
}

// A dispute that is known of another order is not followed.
func TestDisputeOfAnotherOrder(t *testing.T) {
	o := newOrder(t)
	o.happens("paid, D open")
	o.payin = o.Payin(o.Merchant, "other", "")
	o.Must(o.Commit(o.receives(processor.ChargeReport{Payments: []processor.Payment{{ID: "C", Amount: o.payin.Amount, PaidAt: o.Clock.Now()}}})))
	o.WantDecision(o.reports("D lost"), `
		+cases dispute_unexpected 10000 status:PAID`, "")
	o.WantProven()
}

// model is what is true of an order of 100.00, of which more was received, and its disputes.
type model struct {
	order    []string // of the disputes, as they were opened
	state    map[string]processor.DisputeState
	amount   map[string]money.Cents // what was taken
	disputed map[string]money.Cents
	ended    payment.PayinStatus // after the last time that no dispute was open
}

func (m *model) sum(states ...processor.DisputeState) (total money.Cents) {
	for id, state := range m.state {
		if slices.Contains(states, state) {
			total += m.amount[id]
		}
	}
	return total
}

// status is DISPUTED, or CHARGEBACK if it was that before, while a dispute is open, and else
// what the disputes have left.
func (m *model) status() payment.PayinStatus {
	switch {
	case m.sum(processor.DisputeOpen) > 0 && m.ended == payment.PayinChargeback:
	case m.sum(processor.DisputeOpen) > 0:
		return payment.PayinDisputed
	case m.sum(processor.DisputeLost) > 0:
		m.ended = payment.PayinChargeback
	default:
		m.ended = payment.PayinPaid
	}
	return m.ended
}

// After any history of disputes each account has what the disputes say, and the order the
// status that is true.
func TestAnyHistoryOfDisputes(t *testing.T) {
	const received = 150_00 // for an order of 100.00
	left := 25              // are played, of those that rapid draws: each is committed
	rapid.Check(t, func(r *rapid.T) {
		if left--; left < 0 {
			return
		}
		o := newOrder(t)
		o.happens("paid, paid more 50")
		o.Spend(coretest.Opening + money.Cents(rapid.IntRange(0, 100).Draw(r, "spent"))*100)
		before := o.Balances()
		m := &model{state: map[string]processor.DisputeState{}, amount: map[string]money.Cents{}, disputed: map[string]money.Cents{}, ended: payment.PayinPaid}
		for range rapid.IntRange(1, 12).Draw(r, "reports") {
			id := rapid.SampledFrom([]string{"D", "E", "F", "G"}).Draw(r, "dispute")
			state := rapid.SampledFrom([]processor.DisputeState{processor.DisputeOpen, processor.DisputeWon, processor.DisputeLost, processor.DisputeReversed}).Draw(r, "state")
			amount := rapid.IntRange(1, 60).Draw(r, "amount")
			o.happens(fmt.Sprintf("%s %s %d", id, state, amount))
			m.reported(id, state, money.Cents(amount)*100, received)
			b := o.Balances()
			has := func(b ledger.Balances) money.Cents { return b[ledger.Available] + b[ledger.Owed] }
			if b[ledger.Disputed] != m.sum(processor.DisputeOpen) ||
				has(b) != has(before)-m.sum(processor.DisputeOpen, processor.DisputeLost) ||
				b[ledger.Clearing(coretest.BankName)] != before[ledger.Clearing(coretest.BankName)]+m.sum(processor.DisputeLost) {
				r.Fatalf("balances %v after %v, disputes %v of %v", b, before, m.state, m.amount)
			}
			if got, want := o.ReadPayin(o.payin).Status, m.status(); got != want {
				r.Fatalf("it is %s, want %s: disputes %v", got, want, m.state)
			}
		}
		o.WantProven()
	})
}

// take lets a dispute take what it lacks, as far as money is left.
func (m *model) take(id string, received money.Cents) {
	if was := m.state[id]; was == processor.DisputeOpen || was == processor.DisputeLost {
		m.amount[id] += min(m.disputed[id]-m.amount[id], received-m.sum(processor.DisputeOpen, processor.DisputeLost))
		m.status()
	}
}

// reported follows a report: a dispute takes what is left, at each report what it lacks, and only
// moves forward. What it returns is taken by those that lack money.
func (m *model) reported(id string, state processor.DisputeState, amount, received money.Cents) {
	if _, known := m.state[id]; !known {
		m.order = append(m.order, id)
		m.state[id], m.disputed[id] = processor.DisputeOpen, amount
	}
	m.take(id, received)
	switch was := m.state[id]; {
	case was == processor.DisputeOpen && state == processor.DisputeReversed:
		m.state[id] = processor.DisputeLost
		m.status()
		m.state[id] = state
	case was == processor.DisputeOpen, was == processor.DisputeLost && state == processor.DisputeReversed:
		m.state[id] = state
	}
	if state = m.state[id]; state == processor.DisputeWon || state == processor.DisputeReversed {
		m.status()
		for _, other := range m.order {
			m.take(other, received)
		}
	}
}
