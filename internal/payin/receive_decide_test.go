package payin_test

import (
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payin"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// receives builds the operation that books a step of a story.
func receives(what string) func(s *story) write.Operation {
	return func(s *story) write.Operation {
		return s.receive(coretest.BankName, s.report(strings.Fields(what)...))
	}
}

// Changes of further rows by a payment: of 100.00 that ends the order, of 40.00, of 1.00
// that is too much, and of 55.00 that matches no order.
const (
	paid100 = `
		+receipts 10000 10000
		+postings received clearing:bank -10000
		+postings received available 10000
		+events payin.paid`
	paid40 = `
		+receipts 4000 4000
		+postings received clearing:bank -4000
		+postings received available 4000
		+events payin.underpaid`
	kept1 = `
		+receipts 100 0
		+cases overpaid 100 receipt:{receipt}
		+postings received_unapplied clearing:bank -100
		+postings received_unapplied unapplied 100
		+events payin.overpaid`
	unidentified = `
		+receipts 5500 0
		+cases unmatched_receipt 5500 externalId:{externalId} processor:bank
		+postings received_unidentified clearing:bank -5500
		+postings received_unidentified unidentified 5500`
)

func TestReceiveDecisions(t *testing.T) { testDecisions(t, receiveDecisions) }

var receiveDecisions = []decision{
	{name: "the amount", op: receives("pay A 100"), changes: "payins end_to_end_id:→EA next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→PAID version:2→3" + paid100},
	{name: "a part", op: receives("pay A 40"), changes: "payins end_to_end_id:→EA paid_amount:0→4000 version:2→3" + paid40},
	{name: "the rest", given: "pay A 40", op: receives("pay B 60"), changes: `
		payins next_at:in 1h0m0s→- paid_amount:4000→10000 paid_at:-→now status:PENDING→PAID version:3→4
		+receipts 6000 6000
		+postings received clearing:bank -6000
		+postings received available 6000
		+events payin.paid`},
	{name: "more than the amount", op: receives("pay A 120"), changes: `
		payins end_to_end_id:→EA next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→PAID unapplied_amount:0→2000 version:2→4
		+receipts 12000 10000
		+cases overpaid 2000 receipt:{receipt}
		+postings received clearing:bank -10000
		+postings received available 10000
		+postings received_unapplied clearing:bank -2000
		+postings received_unapplied unapplied 2000
		+events payin.paid
		+events payin.overpaid`},
	{name: "a known payment", given: "pay A 40", op: receives("pay A 40")},
	{name: "a known payment of another amount", given: "pay A 40", op: receives("pay A 100")},
	{name: "in analysis", given: "analyze", op: receives("pay A 100"), changes: "payins end_to_end_id:→EA paid_amount:0→10000 paid_at:-→now status:PROCESSING→PAID version:3→4" + paid100},
	{name: "expired", given: "expire", op: receives("pay A 100"), changes: "payins end_to_end_id:→EA late:0→1 paid_amount:0→10000 paid_at:-→now status:EXPIRED→PAID version:3→4" + paid100},
	{name: "canceled, a part", given: "cancel", op: receives("pay A 40"), changes: "payins end_to_end_id:→EA paid_amount:0→4000 version:3→4" + paid40},
	{name: "failed", given: "fail", op: receives("pay A 100"), changes: `
		payins unapplied_amount:0→10000 version:3→4
		+receipts 10000 0
		+cases overpaid 10000 receipt:{receipt}
		+postings received_unapplied clearing:bank -10000
		+postings received_unapplied unapplied 10000
		+events payin.overpaid`},
	{name: "paid", given: "pay A 100", op: receives("pay B 1"), changes: "payins unapplied_amount:0→100 version:3→4" + kept1},
	{name: "partially refunded", given: "pay A 100, refund 40", op: receives("pay B 1"), changes: "payins unapplied_amount:0→100 version:4→5" + kept1},
	{name: "refunded", given: "pay A 100, refund 100", op: receives("pay B 1"), changes: "payins unapplied_amount:0→100 version:4→5" + kept1},
	{name: "disputed", given: "pay A 100, dispute open", op: receives("pay B 1"), changes: "payins unapplied_amount:0→100 version:4→5" + kept1},
	{name: "charged back", given: "pay A 100, dispute lost", op: receives("pay B 1"), changes: "payins unapplied_amount:0→100 version:5→6" + kept1},
	{name: "repays debt", given: "pay A 100, spend 70, dispute open", op: func(s *story) write.Operation {
		s.payin = s.Payin(s.Merchant, "another order", "")
		return receives("pay B 100")(s)
	}, changes: `
		payins end_to_end_id:→EB next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→PAID version:2→3
		+receipts 10000 10000
		+postings received clearing:bank -10000
		+postings received available 10000
		+postings owed_repaid available -7000
		+postings owed_repaid owed 7000
		+events payin.paid`},
	{name: "by a card", given: "refuse", op: func(s *story) write.Operation {
		report := s.report("pay", "A", "100")
		report.Payments[0].Card = &payment.CardDetail{Brand: "visa", Last4: "4242", Installments: 3}
		return s.receive(coretest.BankName, report)
	}, changes: `payins card:map[brand:visa installments:3 last4:4242] end_to_end_id:→EA failure:{"code":"do_not_honor","message":"y"}→ next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→PAID version:3→4` + paid100},
}

func TestReceiveStateDecisions(t *testing.T) {
	refusedAttempt := func(attempt int) func(s *story) write.Operation {
		return func(s *story) write.Operation {
			return s.receive(coretest.BankName, processor.ChargeReport{
				Lookup: processor.Found, State: processor.ChargeOpen, Attempt: attempt, Failure: &payment.Failure{Code: "do_not_honor", Message: "y"},
			})
		}
	}
	testDecisions(t, []decision{
		{name: "nothing new", op: receives("nothing")},
		{name: "analysis", op: receives("analyze"), changes: `
			payins next_at:in 1h0m0s→- status:PENDING→PROCESSING version:2→3
			charges attempts:1→0 next_at:-→in 1m0s state:made→followed
			+events payin.processing`},
		{name: "analysis, reported again", given: "analyze", op: receives("analyze")},
		{name: "analysis of a paid order", given: "pay A 100", op: receives("analyze")},
		{name: "expiry", op: receives("expire"), changes: `
			payins next_at:in 1h0m0s→- status:PENDING→EXPIRED version:2→3
			+events payin.expired`},
		{name: "expiry of an order in analysis", given: "analyze", op: receives("expire")},
		{name: "expiry of a paid order", given: "pay A 100", op: receives("expire")},
		{name: "failure", op: receives("fail"), changes: `
			payins failure:→{"code":"x","message":"y"} next_at:in 1h0m0s→- status:PENDING→FAILED version:2→3
			+events payin.failed`},
		{name: "failure of an order in analysis", given: "analyze", op: receives("fail"), changes: `
			payins failure:→{"code":"x","message":"y"} status:PROCESSING→FAILED version:3→4
			+events payin.failed`},
		{name: "failure of a paid order", given: "pay A 100", op: receives("fail")},
		{name: "failure of an expired order", given: "expire", op: receives("fail")},
		{name: "a refused attempt", op: receives("refuse"), changes: `
			payins failure:→{"code":"do_not_honor","message":"y"} version:2→3`},
		{name: "a refused attempt, reported again", given: "refuse", op: receives("refuse")},
		{name: "a refused attempt of a paid order", given: "pay A 100", op: receives("refuse")},
		{name: "the first refused attempt, by its number", op: refusedAttempt(1), changes: `
			payins cardAttempts:1 failure:→{"code":"do_not_honor","message":"y"} version:2→3`},
		{name: "the second refused attempt, for the same reason", given: "refuse", op: refusedAttempt(2), changes: `
			payins cardAttempts:2 version:3→4`},
	})
}

// Package dispute tests what a report of disputes changes; here it comes with a payment.
func TestReceiveDisputeDecisions(t *testing.T) {
	testDecisions(t, []decision{
		{name: "a payment and a dispute in one report", op: func(s *story) write.Operation {
			report := s.report("pay", "A", "100")
			report.Disputes = s.report("dispute", "open").Disputes
			return s.receive(coretest.BankName, report)
		}, changes: `
			payins disputed_amount:0→10000 end_to_end_id:→EA next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→DISPUTED version:2→4
			+receipts 10000 10000
			+disputes OPEN 10000
			+postings received clearing:bank -10000
			+postings received available 10000
			+postings dispute_opened available -10000
			+postings dispute_opened disputed 10000
			+events payin.paid
			+events payin.disputed
			+events dispute.opened`},
	})
}

// Money that names no order of ours at that processor is kept on the platform's
// accounts, with a case.
func TestReceiveUnidentifiedDecisions(t *testing.T) {
	toPlatform := func(op write.Operation) write.Operation { return op.(*payin.Receive).ToPlatform() }
	testDecisions(t, []decision{
		{name: "an unknown order", op: func(s *story) write.Operation {
			s.payin.ExternalID = s.Store.ExternalID(&s.Merchant, payment.OperationPayin, "never requested")
			return toPlatform(receives("pay A 55")(s))
		}, changes: unidentified},
		{name: "an unreadable id", op: func(s *story) write.Operation {
			s.payin.ExternalID = "???"
			return receives("pay A 55")(s)
		}, changes: unidentified},
		{name: "an order of another processor", op: func(s *story) write.Operation {
			report := s.report("pay", "A", "55")
			report.State = processor.ChargeFailed
			report.Disputes = []processor.Dispute{{ID: "D", Amount: 100_00, State: processor.DisputeOpen}}
			return toPlatform(s.receive("other", report))
		}, changes: `
			+receipts 5500 0
			+cases unmatched_receipt 5500 externalId:{externalId} processor:other
			+postings received_unidentified clearing:other -5500
			+postings received_unidentified unidentified 5500`},
		{name: "a state of an unknown order", op: func(s *story) write.Operation {
			s.payin.ExternalID = s.Store.ExternalID(&s.Merchant, payment.OperationPayin, "never requested")
			return receives("fail")(s)
		}},
	})
}

// A report finishes its notice, also if it changes nothing else; an event goes to the
// order's URL.
func TestReceiveFinishesNotice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		for _, row := range []struct{ reported, changes string }{
			{"pay A 100", `
				payins end_to_end_id:→EA next_at:in 1h0m0s→- paid_amount:0→10000 paid_at:-→now status:PENDING→PAID version:2→3
				+receipts 10000 10000
				notices applied_at:-→now claimed_by:this→- state:received→applied
				+postings received clearing:bank -10000
				+postings received available 10000
				+events payin.paid
				+deliveries pending this`},
			{"nothing", "notices applied_at:-→now claimed_by:this→- state:received→applied"},
		} {
			p := g.Payin(g.Merchant, row.reported, "https://shop.example/hook")
			n := store.Notice{Processor: coretest.BankName, ID: row.reported, Attempts: 1}
			g.Must(g.Notices.Record(t.Context(), n.Processor, n.ID, "", []byte("body")))
			op, err := g.Payins.NewReceive(t.Context(), coretest.BankName, p.ExternalID, reported(g.Clock.Now(), strings.Fields(row.reported)...), &n)
			g.Must(err)
			g.WantDecision(op, row.changes, "")
		}
	})
}
