package dispute_test

import (
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// again is what another dispute of a payment does, after the first one was won.
const again = `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:5→6
		charges attempts:1→0 next_at:-→in 1m0s state:made→followed
		+disputes OPEN 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`

// A processor may show the present dispute of a payment only, under one id for all of them.
// None is dropped: one that is open or lost after the last one was won is another one.
func TestDisputesThatShareAnID(t *testing.T) {
	for _, row := range []struct{ name, given, reported, changes string }{
		{"opened again after it was won", "paid, its won", "its open", again},
		{"opened again, reported again", "paid, its won, its open", "its open", ""},
		{"opened a third time", "paid, its won, its won, its open, its won", "its open", `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:7→8
		+disputes OPEN 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`},
		{"lost after the first was won", "paid, its won", "its lost", `
		payins disputed_amount:0→10000 status:PAID→CHARGEBACK version:5→7
		+disputes LOST 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+postings charged_back disputed -10000
		+postings charged_back clearing:bank 10000
		+events payin.disputed
		+events dispute.opened
		+events payin.chargeback
		+events dispute.closed`},
		{"the second is won", "paid, its won, its open", "its won", `
		payins disputed_amount:10000→0 status:DISPUTED→PAID version:6→7
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -10000
		+postings dispute_won available 10000
		+events payin.dispute_won
		+events dispute.closed`},
		{"the second is lost, reported again", "paid, its won, its lost", "its lost", ""},
		{"won, reported again", "paid, its won", "its won", ""},
		{"lost, reported as open", "paid, its lost", "its open", ""},
		{"lost, then no longer", "paid, its lost", "its won", reversed},
		{"opened again after it was reversed", "paid, its lost, its won", "its open", `
		payins disputed_amount:0→10000 status:PAID→DISPUTED version:6→7
		charges attempts:1→0 next_at:-→in 1m0s state:made→followed
		+disputes OPEN 10000
		+postings dispute_opened available -10000
		+postings dispute_opened disputed 10000
		+events payin.disputed
		+events dispute.opened`},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newOrder(t)
			o.happens(row.given)
			o.WantDecision(o.reports(row.reported), row.changes, "")
			o.WantProven()
		})
	}
}

// The list of disputes shows one id again: the second dispute is booked, as one of its own.
func TestListedDisputesThatShareAnID(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "A", 100_00)
		g.Notify("paid", "charge "+p.ExternalID)
		g.Apply()
		listed := func(state processor.DisputeState, want payment.PayinStatus) {
			t.Helper()
			g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "its", Amount: 100_00, State: state, Current: true})
			g.Jump(time.Hour)
			g.ReadFeeds()
			g.Apply()
			if got, err := g.Store.Payin(t.Context(), p.Merchant, p.ID); err != nil || got.Status != want {
				t.Fatalf("%s: it is %s, %v, want %s", state, got.Status, err, want)
			}
		}
		listed(processor.DisputeOpen, payment.PayinDisputed)
		listed(processor.DisputeWon, payment.PayinPaid)
		listed(processor.DisputeOpen, payment.PayinDisputed)
		g.WantBalances(coretest.Opening, 0)
		listed(processor.DisputeWon, payment.PayinPaid)
		listed(processor.DisputeLost, payment.PayinChargeback)
		for id, want := range map[string]payment.DisputeStatus{"its": payment.DisputeWon, "its#2": payment.DisputeWon, "its#3": payment.DisputeLost} {
			if d, err := g.Store.DisputeByExternalID(t.Context(), g.Merchant.ID, coretest.BankName, id); err != nil || d.Status != want {
				t.Errorf("dispute %s is %q, want %s, %v", id, d.Status, want, err)
			}
		}
		g.WantCases()
		g.WantProven()
	})
}

// A list may be older than what is known: the answer to the query counts, and there is no case.
func TestListedDisputeThatHasEnded(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "A", 100_00)
		for _, state := range []processor.DisputeState{processor.DisputeOpen, processor.DisputeWon} {
			g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "its", Amount: 100_00, State: state, Current: true})
			g.Notify(string(state), "charge "+p.ExternalID)
			g.Apply()
		}
		g.ReadFeeds() // which lists it as open, too
		for range 3 {
			g.Jump(24 * time.Hour)
			g.Apply()
		}
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantCases()
		g.WantProven()
	})
}
