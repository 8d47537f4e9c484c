package dispute_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// order is a pay-in of 100.00 of a merchant that has [coretest.Opening].
type order struct {
	*coretest.Gateway

	payin payment.Payin
	parts int // payments of a part
}

func newOrder(t *testing.T) *order {
	t.Helper()
	g := coretest.NewWith(t, coretest.Opening)
	return &order{Gateway: g, payin: g.Payin(g.Merchant, "order", "")}
}

// happens is a history: "paid", "paid more 20" beyond the amount, "part 40" of it, "expired" or "failed", "refunded 40", or the id and the state of a reported
// dispute, and its amount if it is not the order's, as in "D open 40".
func (o *order) happens(list string) {
	o.T.Helper()
	for what := range strings.SplitSeq(list, ", ") {
		words := strings.Fields(what)
		switch {
		case len(words) == 0:
		case len(words) > 1 && words[1] == "more":
			o.Must(o.Commit(o.receives(processor.ChargeReport{Payments: []processor.Payment{{ID: "B", Amount: reais(words[2]), PaidAt: o.Clock.Now()}}})))
		case words[0] == "paid":
			o.Must(o.Commit(o.receives(processor.ChargeReport{Payments: []processor.Payment{{ID: "A", Amount: o.payin.Amount, PaidAt: o.Clock.Now()}}})))
		case words[0] == "part":
			o.parts++
			part := processor.Payment{ID: fmt.Sprint("part ", o.parts), Amount: reais(words[1]), PaidAt: o.Clock.Now()}
			o.Must(o.Commit(o.receives(processor.ChargeReport{Payments: []processor.Payment{part}})))
		case words[0] == "expired", words[0] == "failed":
			o.Must(o.Commit(o.receives(processor.ChargeReport{Lookup: processor.Found, State: map[string]processor.ChargeState{
				"expired": processor.ChargeExpired, "failed": processor.ChargeFailed,
			}[words[0]]})))
		case words[0] == "refunded":
			o.Refund(o.payin, "refund", int64(reais(words[1])))
			o.Send()
		default:
			o.Must(o.Commit(o.reports(what)))
		}
	}
}

// reports is the operation that follows reported disputes of the order. "its" is the id that all
// disputes of the payment share.
func (o *order) reports(list string) write.Operation {
	o.T.Helper()
	r := processor.ChargeReport{Lookup: processor.Found}
	for what := range strings.SplitSeq(list, ", ") {
		words := strings.Fields(what)
		d := processor.Dispute{ID: words[0], State: processor.DisputeState(words[1]), Amount: o.payin.Amount, Current: words[0] == "its"}
		if len(words) > 2 {
			d.Amount = reais(words[2])
		}
		r.Disputes = append(r.Disputes, d)
	}
	return o.receives(r)
}

func (o *order) receives(r processor.ChargeReport) write.Operation {
	o.T.Helper()
	op, err := o.Payins.NewReceive(o.T.Context(), coretest.BankName, o.payin.ExternalID, r, nil)
	o.Must(err)
	return op
}

func reais(text string) money.Cents {
	var n money.Cents
	if _, err := fmt.Sscan(text, &n); err != nil {
		panic(err)
	}
	return n * 100
}

const (
	opened = `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:3→4
		+disputes OPEN 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`
	won = `
		payins disputed_amount:10000→0 status:DISPUTED→PAID version:4→5
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -10000
		+postings dispute_won available 10000
		+events payin.dispute_won
		+events dispute.closed`
	lost = `
		payins status:DISPUTED→CHARGEBACK version:4→5
		disputes closed_at:-→now lost:0→10000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+postings charged_back disputed -10000
		+postings charged_back clearing:bank 10000
		+events payin.chargeback
		+events dispute.closed`
	reversed = `
		payins disputed_amount:10000→0 status:CHARGEBACK→PAID version:5→6
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -10000
		+postings chargeback_reversed available 10000
		+events payin.dispute_won
		+events dispute.closed`
)

var decisions = []struct{ name, given, reported, changes, again string }{
	{"opened", "paid", "D open", opened, ""},
	{"opened, reported again", "paid, D open", "D open", "", ""},
	{"won", "paid, D open", "D won", won, ""},
	{"won, reported again", "paid, D won", "D won", "", ""},
	{"lost", "paid, D open", "D lost", lost, ""},
	{"lost, reported again", "paid, D lost", "D lost", "", ""},
	{"reversed", "paid, D lost", "D reversed", reversed, ""},
	{"reversed, reported again", "paid, D reversed", "D reversed", "", ""},
	{"won is final: lost is a contradiction", "paid, D won", "D lost", `
		+cases dispute_unexpected 10000 status:PAID`, ""},
	{"won is final: open", "paid, D won", "D open", "", ""},
	{"won is final: reversed", "paid, D won", "D reversed", "", ""},
	{"lost is not won", "paid, D lost", "D won", "", ""},
	{"lost is not open", "paid, D lost", "D open", "", ""},
	{"reversed is final: lost is a contradiction", "paid, D reversed", "D lost", `
		+cases dispute_unexpected 10000 status:PAID`, ""},
	{"reversed is final: open", "paid, D reversed", "D open", "", ""},
	{"reversed is final: won", "paid, D reversed", "D won", "", ""},

	{"reports were skipped: won", "paid", "D won", `
		payins version:3→5
		+disputes WON 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+postings dispute_won disputed -10000
		+postings dispute_won available 10000
		+events payin.disputed
		+events dispute.opened
		+events payin.dispute_won
		+events dispute.closed`, ""},
	{"reports were skipped: reversed", "paid, D open", "D reversed", `
		payins disputed_amount:10000→0 status:DISPUTED→PAID version:4→6
		disputes closed_at:-→now lost:0→10000 remind_at:in 2880h0m0s→- status:OPEN→REVERSED version:1→3
		+postings charged_back disputed -10000
		+postings charged_back clearing:bank 10000
		+postings chargeback_reversed clearing:bank -10000
		+postings chargeback_reversed available 10000
		+events payin.chargeback
		+events dispute.closed
		+events payin.dispute_won
		+events dispute.closed`, ""},
	{"all reports were skipped", "paid", "D reversed", `
		payins version:3→6
		+disputes REVERSED 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+postings charged_back disputed -10000
		+postings charged_back clearing:bank 10000
		+postings chargeback_reversed clearing:bank -10000
		+postings chargeback_reversed available 10000
		+events payin.disputed
		+events dispute.opened
		+events payin.chargeback
		+events dispute.closed
		+events payin.dispute_won
		+events dispute.closed`, ""},

	{"of a part", "paid", "D open 40", `
		payins disputed_amount:0→4000 status:PAID→DISPUTED version:3→4
		+disputes OPEN 4000
		+postings dispute_opened available -4000
		+postings dispute_opened disputed 4000
		+events payin.disputed
		+events dispute.opened`, ""},
	{"of more than was paid", "paid", "D open 500", `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:3→4
		+disputes OPEN 10000
		+cases dispute_unexpected 40000 reason:more_than_received reported:50000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`, ""},
	{"of more than a refund has left", "paid, refunded 40", "D open", `
		payins disputed_amount:0→6000 status:PARTIALLY_REFUNDED→DISPUTED version:4→5
		+disputes OPEN 6000
		+cases dispute_unexpected 4000 reason:more_than_received reported:10000
		+postings dispute_opened available -6000
		+postings dispute_opened disputed 6000
		+events payin.disputed
		+events dispute.opened`, ""},
	{"won, after a part was refunded", "paid, refunded 40, D open", "D won", `
		payins disputed_amount:6000→0 status:DISPUTED→PARTIALLY_REFUNDED version:5→6
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		cases closed_at:-→now resolution:→proof
		+postings dispute_won disputed -6000
		+postings dispute_won available 6000
		+events payin.dispute_won
		+events dispute.closed`, ""},
	{"reversed, after a part was refunded", "paid, refunded 40, D lost", "D reversed", `
		payins disputed_amount:6000→0 status:CHARGEBACK→PARTIALLY_REFUNDED version:6→7
		disputes status:LOST→REVERSED version:2→3
		cases closed_at:-→now resolution:→proof
		+postings chargeback_reversed clearing:bank -6000
		+postings chargeback_reversed available 6000
		+events payin.dispute_won
		+events dispute.closed`, ""},
	{"opened after another one was won", "paid, D won", "E open", `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:5→6
		+disputes OPEN 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`, ""},

	{"of an unpaid order", "", "D open", `
		+disputes OPEN 0
		+cases dispute_unexpected 10000 status:PENDING
		+events dispute.opened`, ""},
	{"of a refunded order", "paid, refunded 100", "D open", `
		+disputes OPEN 0
		+cases dispute_unexpected 10000 status:REFUNDED
		+events dispute.opened`, ""},
	{"of a disputed order", "paid, D open", "E open 40", `
		+disputes OPEN 0
		+cases dispute_unexpected 4000 status:DISPUTED
		+events dispute.opened`, ""},
	{"of an unpaid order, won", "", "D won", `
		+disputes WON 0
		+events dispute.opened
		+events dispute.closed`, ""},
	{"of a disputed order, won", "paid, D open, E open 40", "E won", `
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		cases closed_at:-→now resolution:→proof
		+events dispute.closed`, ""},
	{"of a disputed order, lost", "paid, D open, E open 40", "E lost", `
		disputes closed_at:-→now lost:0→4000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+events dispute.closed`, ""},
	{"unpaid when it was opened", "D open, paid", "D open", `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:3→4
		disputes taken:0→10000
		cases closed_at:-→now resolution:→proof
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed`, ""},
}

func TestDecisions(t *testing.T) {
	for _, row := range decisions {
		t.Run(row.name, func(t *testing.T) {
			o := newOrder(t)
			o.happens(row.given)
			o.WantDecision(o.reports(row.reported), row.changes, row.again)
			o.WantProven()
		})
	}
}

// A dispute sets aside the paid amount of the order at most, once, for any
// reported amount.
func TestDisputeTakesNoMoreThanWasPaid(t *testing.T) {
	o := newOrder(t)
	o.happens("paid, D open 500, D open 500")
	if b := o.Balances(); b[ledger.Disputed] != 100_00 || b[ledger.Available] != coretest.Opening {
		t.Errorf("disputed %d, available %d, want 10000 and 100000", b[ledger.Disputed], b[ledger.Available])
	}
	o.WantProven()
}

// Disputes of one report see the decisions before them.
func TestDisputesOfOneReport(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		report := processor.ChargeReport{Payments: []processor.Payment{{ID: "A", Amount: p.Amount, PaidAt: g.Clock.Now()}}}
		for _, d := range []processor.Dispute{{ID: "D", State: processor.DisputeOpen}, {ID: "D", State: processor.DisputeWon},
			{ID: "E", State: processor.DisputeOpen}, {ID: "F", State: processor.DisputeOpen}} {
			d.Amount = p.Amount
			report.Disputes = append(report.Disputes, d)
		}
		g.Must(g.Payins.Receive(t.Context(), coretest.BankName, p.ExternalID, report, nil))
		g.WantPayin(p, payment.PayinDisputed, 100_00, 1)
		g.WantEvents(payment.EventPayinPaid, payment.EventPayinDisputed, payment.EventDisputeOpened, payment.EventPayinDisputeWon, payment.EventDisputeClosed,
			payment.EventPayinDisputed, payment.EventDisputeOpened, payment.EventDisputeOpened)
		g.WantCases(store.CaseDispute)
		for id, want := range map[string]payment.DisputeStatus{"D": payment.DisputeWon, "E": payment.DisputeOpen, "F": payment.DisputeOpen} {
			if d, err := g.Store.DisputeByExternalID(t.Context(), g.Merchant.ID, coretest.BankName, id); err != nil || d.Status != want {
				t.Errorf("dispute %s is %s, %v", id, d.Status, err)
			}
		}
		g.WantProven()
	})
}

// Money spent before it is disputed becomes a debt; winning the dispute repays the
// debt first.
func TestDisputeOfSpentMoney(t *testing.T) {
	o := newOrder(t)
	o.happens("paid")
	o.Spend(coretest.Opening + 70_00)
	o.WantDecision(o.reports("D open"), `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:3→4
		+disputes OPEN 10000
		+postings dispute_opened available -3000
		+postings dispute_opened owed -7000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`, "")
	o.WantDecision(o.reports("D won"), `
		payins disputed_amount:10000→0 status:DISPUTED→PAID version:4→5
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -10000
		+postings dispute_won owed 7000
		+postings dispute_won available 3000
		+events payin.dispute_won
		+events dispute.closed`, "")
	if b := o.Balances(); b[ledger.Available] != 30_00 || b[ledger.Held] != 0 {
		t.Errorf("available %d, held %d", b[ledger.Available], b[ledger.Held])
	}
	o.WantProven()
}
