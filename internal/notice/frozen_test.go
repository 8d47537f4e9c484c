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
