package notice_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/app/coretest"
	"github.com/porteira/porteira/internal/processor"
)

// finder is a bank that searches a list of transfers.
type finder struct {
	*coretest.Bank

	asked []processor.Ref
}

// FindTransfer implements [processor.TransferFinder].
func (f *finder) FindTransfer(ctx context.Context, r processor.Ref) processor.TransferReport {
	f.asked = append(f.asked, r)
	return f.QueryTransfer(ctx, r.ExternalID)
}

// The transfer of a notice is not searched for in the bank's whole history.
func TestNoticeOfTransferNamesATime(t *testing.T) {
	coretest.Each(t, func(t *testing.T, g *coretest.Gateway) {
		p := g.Payout("r", 10_00)
		g.Send()
		bank := &finder{Bank: g.Bank}
		g.Processor(coretest.BankName, bank)
		g.Jump(50 * 24 * time.Hour)
		g.Notify("n", p.ExternalID)
		g.Notify("other", strings.Repeat("9", len(p.ExternalID)))
		g.Apply()
		since := map[string]time.Time{}
		for _, r := range bank.asked {
			since[r.ExternalID] = r.Since
		}
		if want := p.CreatedAt.Add(-24 * time.Hour); !since[p.ExternalID].Equal(want) {
			t.Errorf("of a payout: %v, want %v", since, want)
		}
		if want := g.Clock.Now().Add(-31 * 24 * time.Hour); len(since) != 2 || !since[strings.Repeat("9", len(p.ExternalID))].Equal(want) {
			t.Errorf("of no payout: %v, want %v", since, want)
		}
	})
}
