package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A payment whose notice never comes is found in the bank's list, and booked
// once, whoever tells of it later.
func TestLostNotice(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.apply()
		g.wantPayin(p, payment.PayinPending, 0, 0)
		g.collect()
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		g.notify("n-1", "charge "+p.ExternalID) // not lost, but late
		g.apply()
		g.must(g.flow.SaveCursor(t.Context(), bankName, "")) // the crash before the cursor was saved
		g.collect()
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		g.wantBalances(opening+100_00, 0)
		g.wantEvents(payment.EventPayinPaid)
		g.wantExceptions()
	})
}

// The list is read to its end, page by page, and a bank that is down is read
// when it is back, from where the reading stopped.
func TestCollectorReadsOn(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		var orders []payment.Payin
		for i := range 5 {
			p := g.order(g.merchant, fmt.Sprint("r-", i), "")
			g.bank.receive(p.ExternalID, fmt.Sprint("pay-", i), 100_00)
			orders = append(orders, p)
		}
		if did, err := g.jobs.CollectPayments(t.Context()); did != 2 || err != nil {
			t.Fatalf("the first page: %d, %v", did, err)
		}
		g.bank.down = true
		if _, err := g.jobs.CollectPayments(t.Context()); err == nil || !strings.Contains(err.Error(), bankName) {
			t.Fatalf("a bank that is down: %v", err)
		}
		g.bank.down = false
		asked := g.bank.questions
		g.collect()
		if n := g.bank.questions - asked; n != 3 {
			t.Errorf("asked %d times about the 3 payments that were left", n)
		}
		for _, p := range orders {
			g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		}
		g.wantBalances(opening+500_00, 0)
	})
}

// The place up to which the list was read moves only past what is booked: a
// process that must stop in the middle of a page has it read again.
func TestPageIsReadAgainUntilItIsBooked(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		first, second := g.order(g.merchant, "r-1", ""), g.order(g.merchant, "r-2", "")
		g.bank.receive(first.ExternalID, "pay-1", 100_00)
		g.bank.receive(second.ExternalID, "pay-2", 100_00)
		for range 2 {
			ctx, stop := context.WithCancel(t.Context())
			g.bank.charged = stop
			if _, err := g.jobs.CollectPayments(ctx); err == nil {
				t.Fatal("payments that could not be booked are passed over")
			}
			g.wantPayin(second, payment.PayinPending, 0, 0)
		}
		g.bank.charged = nil
		g.collect()
		g.wantPayin(first, payment.PayinPaid, 100_00, 1)
		g.wantPayin(second, payment.PayinPaid, 100_00, 1)
		g.wantExceptions()
	})
}

// Two processes read the same page at the same time.
func TestTwoCollectorsBookOnce(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		other := g.second()
		g.bank.receive(p.ExternalID, "pay-1", 60_00)
		g.bank.receive(p.ExternalID, "pay-2", 40_00)
		g.until(func() {
			var both sync.WaitGroup
			for _, process := range []*gateway{g, other} {
				both.Go(func() {
					if _, err := process.jobs.CollectPayments(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		})
		g.wantPayin(p, payment.PayinPaid, 100_00, 2)
		g.wantBalances(opening+100_00, 0)
		g.wantEvents(payment.EventPayinUnderpaid, payment.EventPayinPaid)
	})
}

// Money that names no order is kept with the merchant whom its id names, and
// does not stop the reading.
func TestCollectorKeepsStrangersMoney(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		stranger := payment.ExternalID(g.store.Installation(), g.merchant.Number, g.merchant.ID, payment.OperationPayin, "never asked for")
		g.bank.receive(stranger, "pay-1", 55_00)
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-2", 100_00)
		g.collect()
		g.wantPayin(p, payment.PayinPaid, 100_00, 1)
		g.wantUnapplied(55_00)
		g.wantExceptions(store.ExceptionUnmatched)
	})
}

// A payment that cannot be told from another, or is of nothing, is for a person;
// it holds up no payment behind it, and none of its own order.
func TestCollectorPassesFaultyPayments(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		faulty, beside, behind := g.order(g.merchant, "faulty", ""), g.order(g.merchant, "beside", ""), g.order(g.merchant, "behind", "")
		g.bank.receive(faulty.ExternalID, "", 100_00)
		g.bank.receive(beside.ExternalID, "pay-1", 100_00)
		g.bank.charges[beside.ExternalID].Payments = append(g.bank.charges[beside.ExternalID].Payments, processor.Payment{ID: "pay-0"})
		g.bank.receive(behind.ExternalID, "pay-2", 100_00)
		g.collect()
		g.wantPayin(faulty, payment.PayinPending, 0, 0)
		g.wantPayin(beside, payment.PayinPaid, 100_00, 1)
		g.wantPayin(behind, payment.PayinPaid, 100_00, 1)
		g.wantExceptions(store.ExceptionNotice)
	})
}

func TestCollectorWithoutLeaseReadsNothing(t *testing.T) {
	each(t, func(t *testing.T, g *gateway) {
		p := g.order(g.merchant, "r", "")
		g.bank.receive(p.ExternalID, "pay-1", 100_00)
		g.clock.Advance(3 * time.Second) // no beat
		g.collect()
		g.wantPayin(p, payment.PayinPending, 0, 0)
	})
}

// wantUnapplied compares what waits for a person in the merchant's account.
func (g *gateway) wantUnapplied(amount money.Cents) {
	g.t.Helper()
	b, err := g.store.Balances(g.t.Context(), g.merchant.ID)
	g.must(err)
	if b[ledger.Unapplied] != amount {
		g.t.Fatalf("unapplied %d, want %d", b[ledger.Unapplied], amount)
	}
}
