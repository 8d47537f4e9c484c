package notice_test

import (
	"context"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/processor"
)

// seldomListed is a bank whose list of transfers is read seldom.
type seldomListed struct {
	*coretest.Bank

	reads int
}

// Feeds implements [processor.Feeder].
func (b *seldomListed) Feeds() map[processor.Feed]processor.FeedSpec {
	feeds := b.Bank.Feeds()
	feeds[processor.FeedTransfers] = processor.FeedSpec{Every: time.Hour, From: feeds[processor.FeedTransfers].From}
	return feeds
}

// Read implements [processor.Feeder].
func (b *seldomListed) Read(ctx context.Context, feed processor.Feed, cursor string) (processor.Page, error) {
	if feed == processor.FeedTransfers {
		b.reads++
	}
	return b.Bank.Read(ctx, feed, cursor)
}

// While payouts wait after a restore the list is read when it can be complete, and not each 2 s:
// the quiet period is long, and an account's requests are limited.
func TestListIsReadWhenItCanBeComplete(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		bank := &seldomListed{Bank: g.Bank}
		bank.Profiled.Transfer.QuietPeriod = 5 * time.Minute
		g.Processor(coretest.BankName, bank)
		g.ReadFeeds()
		g.Execute("UPDATE installation SET epoch = epoch - 3")
		g.Heartbeat()
		bank.reads = 0
		waited := time.Duration(0)
		for ; g.Node.Frozen(coretest.BankName) && waited < time.Hour; waited += 2 * time.Second {
			g.Run(g.Notices.ReadFeeds)
			g.Pass(2 * time.Second)
			g.Heartbeat()
		}
		if waited > 6*time.Minute || bank.reads > 4 {
			t.Errorf("cleared after %v and %d reads", waited, bank.reads)
		}
	})
}

// unlistedBank is a bank that sends and lists no transfers.
type unlistedBank struct {
	processor.Processor
	processor.Charger
	processor.Refunder

	bank *coretest.Bank
}

// Feeds implements [processor.Feeder].
func (b unlistedBank) Feeds() map[processor.Feed]processor.FeedSpec {
	feeds := b.bank.Feeds()
	delete(feeds, processor.FeedTransfers)
	return feeds
}

// Read implements [processor.Feeder].
func (b unlistedBank) Read(ctx context.Context, feed processor.Feed, cursor string) (processor.Page, error) {
	return b.bank.Read(ctx, feed, cursor)
}

// An account may gain its list of transfers after a restore. Then the list is read, and ends the wait
// after the next restore.
func TestAccountGainsTransfersAfterARestore(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		restore := func() {
			t.Helper()
			g.Execute("UPDATE installation SET epoch = epoch - 3")
			g.Heartbeat()
			if !g.Node.Frozen(coretest.BankName) {
				t.Error("the account does not wait after a restore")
			}
			for range 3 {
				g.Jump(2 * time.Minute)
				g.Run(g.Notices.ReadFeeds)
			}
			g.Heartbeat()
			if g.Node.Frozen(coretest.BankName) {
				t.Errorf("the account still waits: %+v", g.Feed(coretest.BankName, processor.FeedTransfers))
			}
		}
		g.Processor(coretest.BankName, unlistedBank{g.Bank, g.Bank, g.Bank, g.Bank})
		g.Run(g.Notices.ReadFeeds)
		restore()
		g.Processor(coretest.BankName, g.Bank)
		g.Run(g.Notices.ReadFeeds)
		if f := g.Feed(coretest.BankName, processor.FeedTransfers); f.Through.IsZero() {
			t.Errorf("the list was not read: %+v", f)
		}
		restore()
	})
}
