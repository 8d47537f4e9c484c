package dispute_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// partlyPaid are decisions about orders of which a part was paid, and about surplus of orders that
// have nothing else left.
var partlyPaid = []struct{ name, given, reported, changes string }{
	{"opened", "part 40", "D open 40", `
		payins disputed_amount:0→4000 version:3→4
		+disputes OPEN 4000
		+postings dispute_opened available -4000
		+postings dispute_opened disputed 4000
		+events payin.disputed
		+events dispute.opened`},
	{"lost", "part 40, D open 40", "D lost 40", `
		payins version:4→5
		disputes closed_at:-→now lost:0→4000 remind_at:in 2880h0m0s→- status:OPEN→LOST version:1→2
		+postings charged_back disputed -4000
		+postings charged_back clearing:bank 4000
		+events payin.chargeback
		+events dispute.closed`},
	{"won", "part 40, D open 40", "D won 40", `
		payins disputed_amount:4000→0 version:4→5
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -4000
		+postings dispute_won available 4000
		+events payin.dispute_won
		+events dispute.closed`},
	{"reversed", "part 40, D lost 40", "D reversed 40", `
		payins disputed_amount:4000→0 version:5→6
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -4000
		+postings chargeback_reversed available 4000
		+events payin.dispute_won
		+events dispute.closed`},
	{"of more than was paid", "part 40", "D open 100", `
		payins disputed_amount:0→4000 version:3→4
		+disputes OPEN 4000
		+cases dispute_unexpected 6000 reason:more_than_received reported:10000
		+postings dispute_opened available -4000
		+postings dispute_opened disputed 4000
		+events payin.disputed
		+events dispute.opened`},
	{"of an order that has expired", "part 40, expired", "D open 40", `
		payins disputed_amount:0→4000 version:4→5
		+disputes OPEN 4000
		+postings dispute_opened available -4000
		+postings dispute_opened disputed 4000
		+events payin.disputed
		+events dispute.opened`},
	{"of an order that failed", "part 40, failed", "D open 40", `
		payins disputed_amount:0→4000 version:4→5
		+disputes OPEN 4000
		+postings dispute_opened available -4000
		+postings dispute_opened disputed 4000
		+events payin.disputed
		+events dispute.opened`},
	{"of the surplus of a refunded order", "paid, refunded 100, paid more 20", "D open 20", `
		payins disputed_amount:0→2000 status:REFUNDED→DISPUTED version:5→6
		+disputes OPEN 2000
		+postings dispute_opened available -2000
		+postings dispute_opened disputed 2000
		+events payin.disputed
		+events dispute.opened`},
	{"the same, won", "paid, refunded 100, paid more 20, D open 20", "D won 20", `
		payins disputed_amount:2000→0 status:DISPUTED→REFUNDED version:6→7
		disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
		+postings dispute_won disputed -2000
		+postings dispute_won available 2000
		+events payin.dispute_won
		+events dispute.closed`},
}

// A dispute of an order that was paid in part takes what was paid, and leaves the order's status.
func TestDisputesOfPartlyPaidOrders(t *testing.T) {
	for _, row := range partlyPaid {
		t.Run(row.name, func(t *testing.T) {
			o := newOrder(t)
			o.happens(row.given)
			o.WantDecision(o.reports(row.reported), row.changes, "")
			o.WantProven()
		})
	}
}

// The rest of a disputed order is paid: the money is booked once, and the order is not PAID while a
// part of it may go back, or has.
func TestRestOfADisputedOrder(t *testing.T) {
	for _, row := range []struct {
		name, given string
		status      payment.PayinStatus
		available   money.Cents // beside the opening
	}{
		{"open", "part 40, D open 40, part 60", payment.PayinDisputed, 60_00},
		{"open, of an expired order", "part 40, D open 40, expired, part 60", payment.PayinDisputed, 60_00},
		{"open, and won", "part 40, D open 40, part 60, D won 40", payment.PayinPaid, 100_00},
		{"open, and lost", "part 40, D open 40, part 60, D lost 40", payment.PayinChargeback, 60_00},
		{"won before", "part 40, D won 40, part 60", payment.PayinPaid, 100_00},
		{"lost before", "part 40, D lost 40, part 60", payment.PayinChargeback, 60_00},
		{"lost before, of an expired order", "part 40, expired, D lost 40, part 60", payment.PayinChargeback, 60_00},
		{"lost before, and reversed", "part 40, D lost 40, part 60, D reversed 40", payment.PayinPaid, 100_00},
		{"one open, one lost", "part 40, D lost 20, E open 20, part 60", payment.PayinDisputed, 60_00},
		{"one open, one lost, and won", "part 40, D lost 20, E open 20, part 60, E won 20", payment.PayinChargeback, 80_00},
		{"lost before, and paid again", "part 40, D lost 40, part 100", payment.PayinChargeback, 60_00}, // 40.00 are unapplied
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newOrder(t)
			o.happens(row.given)
			p := o.ReadPayin(o.payin)
			if p.Status != row.status {
				t.Errorf("it is %s, want %s", p.Status, row.status)
			}
			if got := o.Balances()[ledger.Available] - coretest.Opening; got != row.available {
				t.Errorf("%d are available, want %d", got, row.available)
			}
			paid := 0
			for _, e := range o.Events() {
				if e.Type == payment.EventPayinPaid {
					paid++
				}
			}
			if paid != 1 {
				t.Errorf("%d events payin.paid", paid)
			}
			o.WantProven()
		})
	}
}

// The same in the database: the disputes are read when the rest is paid.
func TestRestOfADisputedOrderIsStored(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "A", 40_00)
		g.Notify("short", "charge "+p.ExternalID)
		g.Apply()
		g.Bank.Dispute(p.ExternalID, "D", 40_00, "lost")
		g.Notify("lost", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinPending, 40_00, 1)
		g.WantBalances(coretest.Opening, 0)
		g.Bank.Receive(p.ExternalID, "B", 60_00)
		g.Notify("rest", "charge "+p.ExternalID)
		g.Apply()
		g.WantPayin(p, payment.PayinChargeback, 100_00, 2)
		g.WantBalances(coretest.Opening+60_00, 0)
		wantPaidAndChargedBack(g)
		var none []store.CaseKind
		g.WantCases(none...)
		g.WantProven()
	})
}

// wantPaidAndChargedBack checks the last events: each has the order as its name says, in a step that the
// contract allows, so that a program which reads the name alone learns all of it.
func wantPaidAndChargedBack(g *coretest.Gateway) {
	g.T.Helper()
	list, err := g.Store.Events(g.T.Context(), g.Merchant.ID, 0, 100)
	g.Must(err)
	var got []string
	for _, e := range list {
		if !strings.HasPrefix(string(e.Type), "payin.") {
			continue
		}
		var body struct {
			Data struct {
				Status         string `json:"status"`
				PaidAmount     int    `json:"paidAmount"`
				DisputedAmount int    `json:"disputedAmount"`
				Version        int64  `json:"version"`
			} `json:"data"`
		}
		g.Must(json.Unmarshal(e.Body, &body))
		if body.Data.Version != e.Version {
			g.T.Errorf("event %s of version %d", e.Body, e.Version)
		}
		got = append(got, fmt.Sprintf("%s %s %d %d", e.Type, body.Data.Status, body.Data.PaidAmount, body.Data.DisputedAmount))
	}
	want := []string{"payin.paid PAID 10000 4000", "payin.disputed DISPUTED 10000 4000", "payin.chargeback CHARGEBACK 10000 4000"}
	if len(got) < 3 || !slices.Equal(got[len(got)-3:], want) {
		g.T.Errorf("events %v, want at last %v", got, want)
	}
}
