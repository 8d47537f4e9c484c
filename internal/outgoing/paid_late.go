package outgoing

import (
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
)

// DeclarePaidLate books a payout that left after its hold was released: an operator decided
// who bears it, the merchant, with its fee, or the platform, which pays itself none. Its status is final, so the payout keeps it, and
// its step makes later reports of the payment change nothing. Its transfer is recorded, so
// that money that comes back is booked too. The found transfer of its id must be loaded.
func DeclarePaidLate(l *store.Loaded, c *store.Changes, p *payment.Payout, byPlatform bool) error {
	e := ledger.PayPayoutLate(p.Processor, l.Balances(p.Merchant)[ledger.Available], p.Amount, p.Fee)
	if byPlatform {
		e = ledger.WriteOffPayout(p.Processor, p.Amount)
	}
	if err := c.Post(p.Merchant, p.ID, e); err != nil {
		return err
	}
	p.Step = payment.StepPaidLate
	*p = c.SetPayout(*p)
	f, adopted := l.FoundTransfer(p.Merchant, p.ExternalID)
	f.Amount, f.WrittenOff, f.NextAt, f.Lookups = p.Amount, byPlatform, l.Now(), 0 // it may have come back already
	if adopted {                                                                   // before it failed
		c.SetFoundTransfer(f)
		return nil
	}
	f.Merchant, f.ID, f.ExternalID, f.Processor, f.Total = p.Merchant, p.ID, p.ExternalID, p.Processor, p.Amount
	c.AddFoundTransfer(f)
	return nil
}

// giveBack books the part of a found transfer that came back, given what is left: it is the
// merchant's, or the platform's if that bears the transfer. After a final report it is not
// looked up any more.
func giveBack(l *store.Loaded, c *store.Changes, f store.FoundTransfer, left money.Cents, final bool) error {
	back, followed := f.Amount-left, !f.NextAt.IsZero()
	if final {
		f.NextAt = time.Time{}
	}
	if back > 0 {
		e := ledger.ReturnFound(f.Processor, l.Balances(f.Merchant)[ledger.Owed], back)
		if f.WrittenOff {
			e = ledger.RecoverPayout(f.Processor, back)
		}
		if err := c.Post(f.Merchant, f.ID, e); err != nil {
			return err
		}
		f.Amount = left
	}
	if back > 0 || final && followed {
		c.SetFoundTransfer(f)
	}
	return nil
}
