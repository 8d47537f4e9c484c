package dispute_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/dispute"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// report reports a dispute by a notice, and compares the taken money.
func report(g *coretest.Gateway, p payment.Payin, d processor.Dispute, taken money.Cents) {
	g.T.Helper()
	g.Bank.Disputes(p.ExternalID, d)
	g.Notify(fmt.Sprint(d.ID, d.State, len(g.Bank.Changed)), "charge "+p.ExternalID)
	g.Apply()
	wantTaken(g, p, d.ID, taken)
}

// wantTaken compares the money that a dispute has of its pay-in.
func wantTaken(g *coretest.Gateway, p payment.Payin, id string, taken money.Cents) {
	g.T.Helper()
	d, err := g.Store.DisputeByExternalID(g.T.Context(), p.Merchant, coretest.BankName, id)
	g.Must(err)
	if d.InUse() != taken {
		g.T.Fatalf("dispute %s has %d, want %d\n%s", id, d.InUse(), taken, g.Log)
	}
}

func open(id string, amount money.Cents) processor.Dispute {
	return processor.Dispute{ID: id, Amount: amount, State: processor.DisputeOpen}
}

// A dispute that was reported while a refund was in flight takes the rest if the refund fails:
// available money, then debt.
func TestRefundFailsWhileDisputed(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		r := g.Refund(p, "r", 40_00)
		report(g, p, open("D", 100_00), 60_00)
		g.WantCases(store.CaseDispute)
		g.Payout("spent", int64(coretest.Opening)-10_00)
		g.WantBalances(10_00, coretest.Opening-10_00+40_00)
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused}
		}
		g.Send()
		g.WantRefund(r, payment.RefundFailed, 0, payment.PayinDisputed, 0)
		wantTaken(g, p, "D", 100_00)
		g.WantCases()
		b, err := g.Store.Balances(t.Context(), p.Merchant)
		g.Must(err)
		if b[ledger.Disputed] != 100_00 || b[ledger.Available] != 10_00 || b[ledger.Owed] != 0 {
			t.Errorf("balances %v", b)
		}
		if got := g.ReadPayin(p); got.DisputedAmount != 100_00 {
			t.Errorf("%d is disputed", got.DisputedAmount)
		}
		g.WantProven()
	})
}

// A dispute that took nothing, because all was refunded, takes its money when the refund comes
// back; if it was lost meanwhile, that is charged back at once.
func TestRefundComesBackAfterDispute(t *testing.T) {
	for state, want := range map[processor.DisputeState]payment.PayinStatus{
		processor.DisputeOpen: payment.PayinDisputed, processor.DisputeLost: payment.PayinChargeback, processor.DisputeWon: payment.PayinPaid,
	} {
		t.Run(string(state), func(t *testing.T) {
			coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
				p := g.PaidPayin("p", 100_00)
				r := g.Refund(p, "r", 100_00)
				g.Send()
				g.WantRefund(r, payment.RefundCompleted, 100_00, payment.PayinRefunded, 100_00)
				report(g, p, open("D", 100_00), 0)
				d := open("D", 100_00)
				d.State = state
				report(g, p, d, 0)
				g.WantPayin(p, payment.PayinRefunded, 100_00, 1)
				g.Bank.EndRefund(r.ExternalID, processor.TransferFailed)
				g.ReadFeeds()
				taken, left := money.Cents(100_00), coretest.Opening
				if state == processor.DisputeWon {
					taken, left = 0, left+100_00
				}
				wantTaken(g, p, "D", taken)
				g.WantPayin(p, want, 100_00, 1)
				g.WantBalances(left, 0)
				g.WantCases()
				g.WantProven()
			})
		})
	}
}

// Disputes of one order are limited by the payments that they name.
func TestDisputesByPayment(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 30_00, 70_00)
		of := func(id, of string, amount money.Cents) processor.Dispute {
			d := open(id, amount)
			d.PaymentID = of
			return d
		}
		report(g, p, of("D", "p 1", 50_00), 30_00)
		report(g, p, of("E", "p 2", 70_00), 70_00)
		g.WantPayin(p, payment.PayinDisputed, 100_00, 2)
		g.WantCases(store.CaseDispute)
		won := of("E", "p 2", 70_00)
		won.State = processor.DisputeWon
		report(g, p, won, 0)
		wantTaken(g, p, "D", 30_00) // the other payment is not its own
		g.WantPayin(p, payment.PayinDisputed, 100_00, 2)
		g.WantProven()
	})
}

// A second dispute of the list is booked while the case of the first is open.
func TestListedDisputeBesideACase(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		g.Bank.Disputes(p.ExternalID, open("D", 140_00))
		g.ReadFeeds()
		wantTaken(g, p, "D", 100_00)
		g.WantCases(store.CaseDispute)
		won := open("D", 140_00)
		won.State = processor.DisputeWon
		g.Bank.Disputes(p.ExternalID, won)
		g.Bank.Disputes(p.ExternalID, open("E", 40_00))
		g.Pass(10 * time.Second)
		g.ReadFeeds()
		wantTaken(g, p, "E", 40_00)
		g.WantCases()
		g.WantProven()
	})
}

// Of a dispute that is lost in part the rest comes back.
func TestPartialLoss(t *testing.T) {
	o := newOrder(t)
	o.happens("paid, D open")
	r := processor.ChargeReport{Lookup: processor.Found, Disputes: []processor.Dispute{
		{ID: "D", Amount: o.payin.Amount, State: processor.DisputeLost, Lost: 30_00},
	}}
	o.WantDecision(o.receives(r), `
		payins disputed_amount:10000→3000 status:DISPUTED→CHARGEBACK version:4→6
		disputes closed_at:-→now lost:0→3000 remind_at:in 2880h0m0s→- returned:0→7000 status:OPEN→LOST version:1→2
		+postings dispute_won disputed -7000
		+postings dispute_won available 7000
		+postings charged_back disputed -3000
		+postings charged_back clearing:bank 3000
		+events payin.dispute_won
		+events payin.chargeback
		+events dispute.closed`, "")
	o.WantDecision(o.reports("D reversed"), `
		payins disputed_amount:3000→0 status:CHARGEBACK→PAID version:6→7
		disputes status:LOST→REVERSED version:2→3
		+postings chargeback_reversed clearing:bank -3000
		+postings chargeback_reversed available 3000
		+events payin.dispute_won
		+events dispute.closed`, "")
	o.WantProven()
}

// A refund at the processor's panel, of money that a dispute has, is beyond the order: it has a
// case, and the order shows it once the dispute returns the money.
func TestPanelRefundOfDisputedMoney(t *testing.T) {
	lost, won := open("D", 100_00), open("D", 100_00)
	lost.State, won.State = processor.DisputeLost, processor.DisputeWon
	part, reversed := lost, lost
	part.Lost, reversed.State = 40_00, processor.DisputeReversed
	for name, row := range map[string]struct {
		before   []processor.Dispute
		refund   money.Cents
		after    []processor.Dispute
		status   payment.PayinStatus
		refunded money.Cents
		left     money.Cents // of the order, after what the bank gave back; below zero it is a debt
	}{
		"open":                {[]processor.Dispute{open("D", 100_00)}, 100_00, nil, payment.PayinDisputed, 0, -100_00},
		"lost after it":       {[]processor.Dispute{open("D", 100_00)}, 100_00, []processor.Dispute{lost}, payment.PayinChargeback, 0, -100_00},
		"lost in part before": {[]processor.Dispute{part}, 70_00, nil, payment.PayinChargeback, 0, -10_00},
		"what is left":        {[]processor.Dispute{part}, 60_00, nil, payment.PayinChargeback, 60_00, 0},
		"won after it":        {[]processor.Dispute{open("D", 100_00)}, 100_00, []processor.Dispute{won}, payment.PayinRefunded, 100_00, 0},
		"lost in part after":  {[]processor.Dispute{open("D", 100_00)}, 60_00, []processor.Dispute{part}, payment.PayinChargeback, 60_00, 0},
		"reversed after it":   {[]processor.Dispute{lost}, 30_00, []processor.Dispute{reversed}, payment.PayinPartiallyRefunded, 30_00, 70_00},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				p := g.PaidPayin("p", 100_00)
				for _, d := range row.before {
					g.Bank.Disputes(p.ExternalID, d)
				}
				g.ReadFeeds()
				g.Bank.RefundAtPanel("panel", "p 1", row.refund)
				g.ReadFeeds()
				for _, d := range row.after {
					g.Bank.Disputes(p.ExternalID, d)
				}
				g.Pass(10 * time.Second)
				g.ReadFeeds()
				if got := g.ReadPayin(p); got.Status != row.status || got.RefundedAmount != row.refunded {
					t.Errorf("it is %s, refunded %d, want %s, %d", got.Status, got.RefundedAmount, row.status, row.refunded)
				}
				g.WantBalances(coretest.Opening+row.left, 0)
				if name == "what is left" {
					g.WantCases()
				} else {
					g.WantCases(store.CaseRefundUnexpected)
				}
				g.WantProven()
			})
		})
	}
}

// A refund that failed, and is paid after a dispute took its money, is beyond the order too.
func TestRefundPaidAfterItFailedAndADispute(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		r := g.Refund(p, "r", 40_00)
		g.Bank.Refunds.Answer = func(*coretest.Bank, processor.RefundRequest) processor.TransferAnswer {
			return processor.TransferAnswer{Outcome: processor.Refused}
		}
		g.Send()
		d := open("D", 100_00)
		d.State = processor.DisputeLost
		report(g, p, d, 100_00)
		g.Bank.Refunds.Answer = nil
		g.Bank.GiveBack(processor.RefundRequest{ExternalID: r.ExternalID, PaymentID: "p 1", Amount: 40_00}, processor.TransferPaid)
		g.ReadFeeds()
		g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinChargeback, 0)
		g.WantCases(store.CaseRefundUnexpected)
		g.WantProven()
		d.State = processor.DisputeReversed
		report(g, p, d, 0)
		g.WantRefund(r, payment.RefundCompleted, 40_00, payment.PayinPartiallyRefunded, 40_00)
		g.WantCases(store.CaseRefundUnexpected)
		g.WantProven()
	})
}

// accepts is the operation by which the merchant gives a dispute up.
func (o *order) accepts(id string) write.Operation {
	o.T.Helper()
	d, err := o.Store.DisputeByExternalID(o.T.Context(), o.Merchant.ID, coretest.BankName, id)
	o.Must(err)
	return dispute.NewAccept(&d, o.Payins.Links)
}

// lost is the report of a dispute of which the payer's bank took an amount.
func (o *order) lost(id string, amount money.Cents) write.Operation {
	o.T.Helper()
	return o.receives(processor.ChargeReport{Lookup: processor.Found, Disputes: []processor.Dispute{
		{ID: id, Amount: o.payin.Amount, State: processor.DisputeLost, Lost: amount},
	}})
}

// Of a dispute that was given up, and then lost only in part, the rest comes back.
func TestPartialLossAfterAccept(t *testing.T) {
	o := newOrder(t)
	o.happens("paid, D open")
	o.Must(o.Commit(o.accepts("D")))
	o.WantDecision(o.lost("D", 30_00), `
		payins disputed_amount:10000→3000 version:5→6
		disputes lost:10000→3000 returned:0→7000 version:2→3
		+postings chargeback_reversed clearing:bank -7000
		+postings chargeback_reversed available 7000
		+events payin.dispute_won
		+events dispute.closed`, "")
	o.WantDecision(o.reports("D lost"), "", "")
	o.WantDecision(o.reports("D reversed"), `
		payins disputed_amount:3000→0 status:CHARGEBACK→PAID version:6→7
		disputes status:LOST→REVERSED version:3→4
		+postings chargeback_reversed clearing:bank -3000
		+postings chargeback_reversed available 3000
		+events payin.dispute_won
		+events dispute.closed`, "")
	o.WantProven()
}

// The list shows a partial loss of a dispute that was given up: the rest comes back, without a
// notice.
func TestListedPartialLossAfterAccept(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		report(g, p, open("D", 100_00), 100_00)
		d, err := g.Store.DisputeByExternalID(t.Context(), p.Merchant, coretest.BankName, "D")
		g.Must(err)
		_, _, err = g.Disputes.Accept(t.Context(), p.Merchant, d.ID)
		g.Must(err)
		g.WantBalances(coretest.Opening, 0)
		g.Bank.Disputes(p.ExternalID, processor.Dispute{ID: "D", Amount: 100_00, State: processor.DisputeLost, Lost: 30_00})
		for range 2 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
			wantTaken(g, p, "D", 30_00)
			g.WantPayin(p, payment.PayinChargeback, 100_00, 1)
			g.WantBalances(coretest.Opening+70_00, 0)
		}
		g.WantCases()
		g.WantProven()
	})
}

// Money that is kept back before a dispute is set aside; then the same money is disputed, or
// comes back.
func TestBlock(t *testing.T) {
	block := processor.ChargeReport{Lookup: processor.Found, Disputes: []processor.Dispute{{ID: "D", Amount: 100_00, State: processor.DisputeOpen, Blocked: true}}}
	for name, row := range map[string]struct {
		next    processor.Dispute
		changes string
	}{
		"disputed": {processor.Dispute{State: processor.DisputeOpen, Reason: "fr\x00aud\x1b"}, `
			disputes blocked:1→0 reason:→fraud version:1→2
			+events dispute.opened`},
		"released": {processor.Dispute{State: processor.DisputeWon, Blocked: true}, `
			payins disputed_amount:10000→0 status:DISPUTED→PAID version:4→5
			disputes closed_at:-→now remind_at:in 2880h0m0s→- status:OPEN→WON version:1→2
			+postings dispute_won disputed -10000
			+postings dispute_won available 10000
			+events payin.dispute_won
			+events dispute.closed`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrder(t)
			o.happens("paid")
			o.Must(o.Commit(o.receives(block)))
			row.next.ID, row.next.Amount = "D", 100_00
			o.WantDecision(o.receives(processor.ChargeReport{Lookup: processor.Found, Disputes: []processor.Dispute{row.next}}), row.changes, "")
			o.WantProven()
		})
	}
}

// A block that became a dispute is found in the list, without a notice.
func TestListedDisputeAfterABlock(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 100_00)
		d := open("D", 100_00)
		d.Blocked = true
		g.Bank.Disputes(p.ExternalID, d)
		g.ReadFeeds()
		wantTaken(g, p, "D", 100_00)
		d.Blocked, d.RespondBy = false, g.Clock.Now().Add(100*time.Hour+123) // nanoseconds, which are not stored
		g.Bank.Disputes(p.ExternalID, d)
		for range 3 {
			g.Pass(10 * time.Second)
			g.ReadFeeds()
		}
		got, err := g.Store.DisputeByExternalID(t.Context(), p.Merchant, coretest.BankName, "D")
		g.Must(err)
		if got.Blocked || got.RespondBy.IsZero() || got.Version != 2 || got.RemindAt.IsZero() {
			t.Errorf("it is %+v", got)
		}
		g.Run(g.Disputes.Remind)
		g.WantCases(store.CaseDisputeDeadline)
		g.Notify("again", "charge "+p.ExternalID)
		g.Apply()
		g.Run(g.Disputes.Remind)
		g.WantCases(store.CaseDisputeDeadline)
		g.WantEvents(payment.EventPayinPaid, payment.EventPayinDisputed, payment.EventDisputeOpened, payment.EventDisputeOpened)
		g.WantProven()
	})
}

// A panel refund of more than a dispute has left of an overpaid order has a case: 120.00 and 50.00 are
// more than the 150.00 that were received.
func TestPanelRefundOfAnOverpaidDisputedOrder(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 150_00)
		d := open("D", 50_00)
		d.PaymentID = "p 1"
		report(g, p, d, 50_00)
		g.Bank.RefundAtPanel("panel", "p 1", 120_00)
		g.ReadFeeds()
		list, err := g.Store.OpenCases(t.Context(), 10)
		g.Must(err)
		if len(list) != 1 || list[0].Kind != store.CaseRefundUnexpected {
			t.Errorf("cases %+v, want one refund_unexpected", list)
		}
		d.State = processor.DisputeLost
		report(g, p, d, 50_00)
		g.WantProven()
	})
}

// Surplus over an order is not given back twice: a panel refund of it after a dispute of the
// complete payment is beyond the order, although it is still unapplied.
func TestPanelRefundOfDisputedSurplus(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 150_00)
		d := open("D", 150_00)
		d.PaymentID = "p 1"
		report(g, p, d, 150_00)
		g.WantCases(store.CaseOverpaid)
		g.Bank.RefundAtPanel("panel", "p 1", 50_00)
		g.ReadFeeds()
		g.WantCases(store.CaseOverpaid, store.CaseRefundUnexpected)
		g.WantBalances(coretest.Opening-100_00, 0)
		d.State = processor.DisputeLost
		report(g, p, d, 150_00)
		g.WantBalances(coretest.Opening-100_00, 0)
		if got := g.ReadPayin(p); got.RefundedAmount != 0 || got.Status != payment.PayinChargeback {
			t.Errorf("it is %s, refunded %d, want CHARGEBACK, 0", got.Status, got.RefundedAmount)
		}
		g.WantProven()
	})
}

// A refund of two parts: the first was paid, the second failed, and is paid after all while a dispute
// has its money. The dispute is won.
func TestPartPaidAfterItFailedAndADispute(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.PaidPayin("p", 40_00, 60_00)
		second := ""
		g.Bank.Refunds.Answer = func(b *coretest.Bank, r processor.RefundRequest) processor.TransferAnswer {
			if r.PaymentID == "p 2" {
				second = r.ExternalID
				return processor.TransferAnswer{Outcome: processor.Refused}
			}
			return processor.TransferAnswer{Outcome: processor.Done, Report: b.GiveBack(r, processor.TransferPaid)}
		}
		r := g.Refund(p, "r", 70_00) // 40.00 of the first payment, 30.00 of the second
		for range 4 {
			g.Send()
			g.LookUp()
			g.Pass(5 * time.Second)
		}
		g.WantRefund(r, payment.RefundFailed, 40_00, payment.PayinPartiallyRefunded, 40_00)
		g.Bank.Refunds.Answer = nil
		d := open("D", 60_00)
		d.PaymentID = "p 2"
		report(g, p, d, 60_00)
		g.Bank.RefundAtPanel(second, "p 2", 30_00) // it is paid after all
		g.ReadFeeds()
		g.WantProven()
		d.State = processor.DisputeWon
		report(g, p, d, 0)
		g.WantCases(store.CaseRefundUnexpected)
		// 70.00 of 100.00 was given back: 30.00 are left.
		_, _, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest("more", 60_00))
		if err == nil {
			t.Errorf("a refund of 60.00 is accepted, although 70.00 of 100.00 was given back")
		}
		rest, _, err := g.Refunds.Create(t.Context(), g.Merchant, p.ID, coretest.RefundRequest("rest", 0))
		if err != nil || rest.Amount != 30_00 {
			t.Errorf("a refund of all that is left: %d, %v, want 30.00", rest.Amount, err)
		}
		g.WantProven()
	})
}
