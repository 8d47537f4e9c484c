package notice_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
)

// silentLists is a bank that answers no request for its lists.
type silentLists struct {
	*coretest.Bank

	waiting *atomic.Int64
}

func (b silentLists) Read(ctx context.Context, _ processor.Feed, _ string) (processor.Page, error) {
	b.waiting.Add(1)
	<-ctx.Done()
	return processor.Page{}, ctx.Err()
}

// Lists of an account that does not answer delay no payment in the lists of another: the clock
// stands still.
func TestHangingFeedsDelayNoOther(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		b := silentLists{coretest.NewBank(), &atomic.Int64{}}
		g.Processor("silent", b)
		g.Concurrent()
		p := g.Payin(g.Merchant, "order", "")
		g.Bank.Receive(p.ExternalID, "pay-1", 100_00)
		_, err := g.Notices.ReadFeeds(t.Context())
		g.Must(err)
		for paid := false; !paid || b.waiting.Load() < 4; runtime.Gosched() {
			if t.Context().Err() != nil {
				t.Fatalf("%d lists hang, paid %t", b.waiting.Load(), paid)
			}
			paid = g.ReadPayin(p).Status == payment.PayinPaid
		}
	})
}
