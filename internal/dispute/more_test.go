package dispute_test

import "testing"

// A dispute that lacks money takes the money that another dispute returns, in the same commit: its
// report may have come first.
func TestMoneyOfAnotherDispute(t *testing.T) {
	for _, row := range []struct{ name, given, reported, changes string }{
		{"won", "paid, D open 40, E open", "D won", `
			payins version:5→7
			disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
			disputes taken:6000→10000
			cases closed_at:-→now resolution:→proof
			+postings dispute_won disputed -4000
			+postings dispute_won available 4000
			+postings dispute_opened available -4000
			+postings dispute_opened disputed 4000
			+events payin.dispute_won
			+events dispute.closed
			+events payin.disputed`},
		{"won, and the other one had nothing", "paid, D open, E open 40", "D won", `
			payins disputed_amount:10000→4000 version:4→6
			disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
			disputes taken:0→4000
			cases closed_at:-→now resolution:→proof
			+postings dispute_won disputed -10000
			+postings dispute_won available 10000
			+postings dispute_opened available -4000
			+postings dispute_opened disputed 4000
			+events payin.dispute_won
			+events dispute.closed
			+events payin.disputed`},
		{"reversed, and the other one is lost", "paid, D lost 40, E lost", "D reversed", `
			payins version:7→10
			disputes status:LOST→REVERSED version:2→3
			disputes taken:6000→10000
			cases closed_at:-→now resolution:→proof
			+postings chargeback_reversed clearing:bank -4000
			+postings chargeback_reversed available 4000
			+postings dispute_opened available -4000
			+postings dispute_opened disputed 4000
			+postings charged_back disputed -4000
			+postings charged_back clearing:bank 4000
			+events payin.dispute_won
			+events dispute.closed
			+events payin.disputed
			+events payin.chargeback`},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newOrder(t)
			o.happens(row.given)
			o.WantDecision(o.reports(row.reported), row.changes, "")
			o.WantProven()
		})
	}
}

// The same, if a dispute is lost only in part.
func TestMoneyOfAnotherDisputeThatIsLostInPart(t *testing.T) {
	o := newOrder(t)
	o.happens("paid, D open 80, E open 40")
	o.WantDecision(o.lost("D", 30_00), `
		payins disputed_amount:10000→7000 version:5→8
		disputes closed_at:-→now lost:0→3000 remind_at:in 2880h0m0s→- returned:0→5000 status:OPEN→LOST version:1→2
		disputes taken:2000→4000
		cases closed_at:-→now resolution:→proof
		+postings dispute_won disputed -5000
		+postings dispute_won available 5000
		+postings charged_back disputed -3000
		+postings charged_back clearing:bank 3000
		+postings dispute_opened available -2000
		+postings dispute_opened disputed 2000
		+events payin.dispute_won
		+events payin.chargeback
		+events dispute.closed
		+events payin.disputed`, "")
	o.WantProven()
}
