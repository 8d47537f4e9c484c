package notice_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// forgetCursor is a crash before the cursor of a feed was saved.
func forgetCursor(g *coretest.Gateway, feed processor.Feed) {
	g.T.Helper()
	g.Execute("UPDATE feeds SET cursor = '' WHERE feed = '" + string(feed) + "'")
}

// A payment without a notice is found in the bank's feed, and booked once, even if
// it is reported again later.
func TestLostNotice(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Apply()
		g.WantPayin(p, payment.PayinPending, 0, 0)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.Notify("n-1", "charge "+p.ExternalID) // not lost, but late
		g.Apply()
		forgetCursor(g, processor.FeedPayments)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantEvents(payment.EventPayinPaid)
		g.WantCases()
	})
}

// A listed card payment is not booked before its charge shows in how many instalments it was made:
// its fee and its settlement depend on that. It delays no other payment.
func TestListedPaymentInInstallments(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p, other := g.Payin(g.Merchant, "card", ""), g.Payin(g.Merchant, "other", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Bank.Receive(other.ExternalID, "pay-2", 100_00)
		g.Bank.Charges[p.ExternalID].Payments[0].Card = &payment.CardDetail{Installments: 3}
		g.Bank.Incoming[0].Card = &payment.CardDetail{}
		g.Bank.OnQueryCharge = func() { g.Bank.Down = true } // from now on
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPending, 0, 0)
		g.WantPayin(other, payment.PayinPaid, 100_00, 1)
		g.Bank.OnQueryCharge, g.Bank.Down = nil, false
		g.Pass(time.Hour)
		g.Apply()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		if got := g.ReadPayin(p); got.Details.Card == nil || got.Details.Card.Installments != 3 {
			t.Errorf("card %+v", got.Details.Card)
		}
		g.WantCases()
		g.WantProven()
	})
}

// A feed is read to its end, page by page; if the bank is down, reading continues from
// the same position when it is up again.
func TestFeedIsReadOn(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		var orders []payment.Payin
		for i := range 5 {
			p := g.Payin(g.Merchant, fmt.Sprint("r-", i), "")
			g.Bank.Receive(p.ExternalID, fmt.Sprint("pay-", i), 100_00)
			orders = append(orders, p)
		}
		if did, err := g.Notices.ReadFeeds(t.Context()); did != 2 || err != nil {
			t.Fatalf("the first page: %d, %v", did, err)
		}
		g.WantPayin(orders[1], payment.PayinPaid, 100_00, 1)
		g.Bank.Down = true
		g.ReadFeeds()
		g.ReadFeeds()
		f := g.Feed(coretest.BankName, processor.FeedPayments)
		if wait := f.NextAt.Sub(g.Clock.Now()); f.Cursor != "2" || f.Failures != 2 || f.LastError != coretest.ErrDown.Error() || wait < 9*time.Second {
			t.Fatalf("a bank that is down: read again in %v, %+v", wait, f)
		}
		g.Bank.Down = false
		queries := g.Bank.Queries
		g.ReadFeeds()
		if n := g.Bank.Queries - queries; n != 3 {
			t.Errorf("%d queries about the 3 payments that were left", n)
		}
		for _, p := range orders {
			g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		}
		g.WantBalances(coretest.Opening+500_00, 0)
	})
}

// One processor's failure does not stop the others' feeds, and is reported.
func TestFeedsOfOtherProcessorsAreRead(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		other := coretest.NewBank() // its name sorts before the bank's
		other.Down = true
		g.Processor("another", other)
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.ReadFeeds()
		if f := g.Feed("another", processor.FeedPayments); f.Failures != 1 || f.LastError == "" {
			t.Errorf("the feed that cannot be read: %+v", f)
		}
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
	})
}

// Finding M3: an account's payments that cannot be listed do not stop its changes.
func TestFeedsOfOneProcessorFailApart(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := completed(g, "r", 10_00)
		g.Bank.Return(p.ExternalID, 10_00)
		g.Bank.FeedsDown = map[processor.Feed]bool{processor.FeedPayments: true}
		g.ReadFeeds()
		g.WantPayout(p, payment.PayoutReturned, payment.StepDone)
		if f := g.Feed(coretest.BankName, processor.FeedChanges); f.Failures != 0 || f.Cursor != "1" {
			t.Errorf("the feed that can be read: %+v", f)
		}
	})
}

// While one process reads a feed no other does; if it dies, another one continues.
func TestFeedIsReadByOneProcess(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		other := g.Second()
		g.Bank.OnRead = func() {
			g.Bank.OnRead = nil
			if did, err := other.Notices.ReadFeeds(t.Context()); did != 0 || err != nil {
				t.Errorf("the other process claimed %d feeds, %v", did, err)
			}
			other.DeclareDead(g)
			other.ReadFeeds()
			other.WantPayin(p, payment.PayinPaid, 100_00, 1)
		}
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		if f := g.Feed(coretest.BankName, processor.FeedPayments); f.Cursor != "1" || !f.ClaimedBy.IsZero() {
			t.Errorf("the feed after both: %+v", f)
		}
	})
}

// A feed is read again after its interval, not before.
func TestFeedWaitsItsInterval(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.ReadFeeds()
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Pass(4 * time.Second)
		if did, err := g.Notices.ReadFeeds(t.Context()); did != 0 || err != nil {
			t.Errorf("after 4 s: %d, %v", did, err)
		}
		g.Pass(2 * time.Second)
		g.Run(g.Notices.ReadFeeds)
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
	})
}

// If the clock jumps ahead during a read, the list is read again soon: it is not known up to the new
// time. If the clock is set back, the next read is not later than usual.
func TestClockJumpsDuringARead(t *testing.T) {
	for _, test := range []struct{ jump, wait time.Duration }{{73 * time.Hour, time.Second}, {-time.Hour, 5 * time.Second}} {
		t.Run(test.jump.String(), func(t *testing.T) {
			coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
				defer g.Clock.SetOffset(0)
				g.Bank.OnRead = func() { g.Clock.SetOffset(test.jump) }
				if _, err := g.Notices.ReadFeeds(t.Context()); err != nil {
					t.Fatal(err)
				}
				list, err := g.Store.Feeds(t.Context())
				g.Must(err)
				var waits []time.Duration
				for _, f := range list {
					waits = append(waits, f.NextAt.Sub(g.Clock.Now()))
				}
				if slices.Sort(waits); waits[0] != test.wait || waits[len(waits)-1] != 5*time.Second {
					t.Errorf("the next reads are in %v", waits)
				}
			})
		})
	}
}

// The cursor moves only past booked payments: if a process stops in the middle of a
// page, the page is read again.
func TestPageIsReadAgainUntilItIsBooked(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		first, second := g.Payin(g.Merchant, "r-1", ""), g.Payin(g.Merchant, "r-2", "")
		g.Bank.Receive(first.ExternalID, "pay-1", 100_00)
		g.Bank.Receive(second.ExternalID, "pay-2", 100_00)
		for range 2 {
			ctx, stop := context.WithCancel(t.Context())
			g.Bank.OnQueryCharge = stop
			g.FeedsDue()
			_, _ = g.Notices.ReadFeeds(ctx)
			if g.Feed(coretest.BankName, processor.FeedPayments).Cursor != "" {
				t.Fatal("payments that could not be booked are passed over")
			}
			g.WantPayin(second, payment.PayinPending, 0, 0)
		}
		g.Bank.OnQueryCharge = nil
		g.ReadFeeds()
		g.WantPayin(first, payment.PayinPaid, 100_00, 1)
		g.WantPayin(second, payment.PayinPaid, 100_00, 1)
		g.WantCases()
	})
}

// Two processes read the same page at the same time.
func TestTwoReadersBookOnce(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		other := g.Second()
		g.Bank.Receive(p.ExternalID, "pay-1", 60_00)
		g.Bank.Receive(p.ExternalID, "pay-2", 40_00)
		g.Until(func() {
			var both sync.WaitGroup
			for _, process := range []*coretest.Gateway{g, other} {
				both.Go(func() {
					if _, err := process.Notices.ReadFeeds(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
		})
		g.WantPayin(p, payment.PayinPaid, 100_00, 2)
		g.WantBalances(coretest.Opening+100_00, 0)
		g.WantEvents(payment.EventPayinUnderpaid, payment.EventPayinPaid)
	})
}

// Money that matches no order is kept on the platform's accounts, and does not stop
// the reading.
func TestFeedWithUnmatchedMoney(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		g.Bank.Receive(unknownTo(g, payment.OperationPayin), "pay-1", 55_00)
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-2", 100_00)
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPaid, 100_00, 1)
		b, err := g.Store.Balances(t.Context(), payment.ID{})
		g.Must(err)
		if b[ledger.Unidentified] != 55_00 {
			t.Errorf("unidentified %d", b[ledger.Unidentified])
		}
		g.WantCases(store.CaseUnmatchedReceipt)
	})
}

// A payment without an id or an amount gets a case; it blocks no later payment, and no
// other payment of its order.
func TestFeedWithInvalidPayments(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		invalid, beside, behind := g.Payin(g.Merchant, "invalid", ""), g.Payin(g.Merchant, "beside", ""), g.Payin(g.Merchant, "behind", "")
		g.Bank.Receive(invalid.ExternalID, "", 100_00)
		g.Bank.Receive(beside.ExternalID, "pay-1", 100_00)
		g.Bank.Charges[beside.ExternalID].Payments = append(g.Bank.Charges[beside.ExternalID].Payments, processor.Payment{ID: "pay-0"})
		g.Bank.Receive(behind.ExternalID, "pay-2", 100_00)
		g.ReadFeeds()
		g.WantPayin(invalid, payment.PayinPending, 0, 0)
		g.WantPayin(beside, payment.PayinPaid, 100_00, 1)
		g.WantPayin(behind, payment.PayinPaid, 100_00, 1)
		g.WantCases(store.CaseNotice)
	})
}

func TestFeedsAreNotReadWithoutALease(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payin(g.Merchant, "r", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		g.Clock.Advance(3 * time.Second) // no heartbeat
		g.ReadFeeds()
		g.WantPayin(p, payment.PayinPending, 0, 0)
	})
}

// listsBySecond is a bank whose cursors are seconds: an entry of the same second is listed
// with a cursor that does not move.
type listsBySecond struct{ *coretest.Bank }

// Read implements [processor.Feeder].
func (b listsBySecond) Read(_ context.Context, feed processor.Feed, _ string) (page processor.Page, err error) {
	b.Mu.Lock()
	defer b.Mu.Unlock()
	page.Next, page.More = "2026-11-20T12:00:00Z", true
	for i := range b.Incoming {
		if feed == processor.FeedPayments {
			page.Facts = append(page.Facts, processor.Fact{Payment: &b.Incoming[i]})
		}
	}
	for i := range b.Changed {
		if feed == processor.FeedChanges {
			page.Facts = append(page.Facts, processor.Fact{Change: &b.Changed[i]})
		}
	}
	return page, nil
}

// Finding M4: a page is booked even if its cursor did not move.
func TestPageWhoseCursorStandsStillIsBooked(t *testing.T) {
	coretest.Each(t, func(_ *testing.T, g *coretest.Gateway) {
		g.Processor(coretest.BankName, listsBySecond{g.Bank})
		payouts := []payment.Payout{completed(g, "p-1", 10_00), completed(g, "p-2", 10_00)}
		for i := range 2 {
			p := g.Payin(g.Merchant, fmt.Sprint("r-", i), "")
			g.Bank.Receive(p.ExternalID, fmt.Sprint("pay-", i), 100_00)
			g.Bank.Return(payouts[i].ExternalID, 10_00)
			g.ReadFeeds()
			g.WantPayin(p, payment.PayinPaid, 100_00, 1)
			g.WantPayout(payouts[i], payment.PayoutReturned, payment.StepDone)
		}
		g.WantBalances(coretest.Opening+200_00, 0)
	})
}
