package outgoing

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// isSecond reports whether a report is of a second transfer of a payout that is paid: the money
// left twice.
func isSecond(p *payment.Payout, r *processor.TransferReport) bool {
	completed := p.Status == payment.PayoutCompleted || p.Status == payment.PayoutReturned
	return completed && r.State == processor.TransferPaid && p.EndToEndID != "" && r.EndToEndID != "" && r.EndToEndID != p.EndToEndID
}

// second opens a case about a second transfer of a payout. If an operator has booked the
// transfer, only what came back of it is booked.
func (v *resolution) second(l *store.Loaded, c *store.Changes, p *payment.Payout, r *processor.TransferReport) error {
	if r.Returned < 0 || r.Returned > p.Amount {
		v.contradict(c, p, store.ReasonReturnedTooMuch, store.Params{"reported": r.Returned.String()})
		return nil
	}
	if f, ok := l.FoundTransfer(p.Merchant, p.ExternalID); ok && f.EndToEndID == r.EndToEndID {
		return giveBack(l, c, f, p.Amount-r.Returned, true)
	}
	v.contradict(c, p, store.ReasonPaidTwice, store.Params{"reported": r.EndToEndID})
	return nil
}

// DeclarePaidTwice books the second transfer of a payout, which has its own endToEndId: an
// operator decided who bears it, the merchant, without a fee, or the platform. It is recorded as a
// found transfer, so that money that comes back is booked too, and a repeated report changes
// nothing. The found transfer of the payout's id must be loaded.
func DeclarePaidTwice(l *store.Loaded, c *store.Changes, p *payment.Payout, endToEndID string, byPlatform bool) error {
	e := ledger.PayPayoutLate(p.Processor, l.Balances(p.Merchant)[ledger.Available], p.Amount, 0)
	if byPlatform {
		e = ledger.WriteOffPayout(p.Processor, p.Amount)
	}
	if err := c.Post(p.Merchant, p.ID, e); err != nil {
		return err
	}
	if _, recorded := l.FoundTransfer(p.Merchant, p.ExternalID); !recorded {
		c.AddFoundTransfer(store.FoundTransfer{
			Merchant: p.Merchant, ID: p.ID, ExternalID: p.ExternalID, Processor: p.Processor, EndToEndID: endToEndID,
			Total: p.Amount, Amount: p.Amount, WrittenOff: byPlatform,
		})
	}
	return nil
}
