package outgoing

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A processor that is not idempotent may pay a payout twice: an operator had it sent again,
// because nothing showed the first transfer, which was paid after all. The second transfer has
// the same external id, but an endToEndId of its own. It is booked as a found transfer under
// that, and a person decides who bears it.

// anotherThan is the endToEndId of a report, if a payout was paid under a different one at a
// processor that may pay it twice; else "".
func (v *resolution) anotherThan(p *payment.Payout, r processor.TransferReport) string {
	if v.effect.Repeat.Safe() || !isFinal(r) || p.EndToEndID == "" || r.EndToEndID == p.EndToEndID {
		return ""
	}
	return r.EndToEndID
}

// isSecond reports whether the transfer [resolution.another] is the second one of a payout: it is
// booked as such, or two sends may have paid. Else an operator mistyped the id of the only one.
func (v *resolution) isSecond(l *store.Loaded, p *payment.Payout) bool {
	if v.another == "" || p.Status != payment.PayoutCompleted && p.Status != payment.PayoutReturned {
		return false
	}
	mayHavePaid := 0
	for _, s := range l.Sends(p.Merchant, p.ID) {
		if !s.Outcome.NoEffect() && s.Outcome != store.SendRefused {
			mayHavePaid++
		}
	}
	return mayHavePaid > 1
}

// applySecond books the second transfer of a payout once, at the merchant's expense, and what
// comes back of it. One that failed moved no money.
func (v *resolution) applySecond(l *store.Loaded, c *store.Changes, p *payment.Payout, r processor.TransferReport) error {
	if r.Amount == 0 {
		r.Amount = p.Amount
	}
	if f, booked := l.FoundTransfer(p.Merchant, v.another); booked {
		return giveBack(l, c, f, leftOf(&r, f.Amount), true)
	}
	left := leftOf(&r, r.Amount)
	if r.State != processor.TransferPaid || left <= 0 {
		return nil
	}
	f := store.FoundTransfer{
		Merchant: p.Merchant, ID: c.NewID(), ExternalID: v.another, Processor: p.Processor, EndToEndID: v.another, Payout: p.ID, Total: r.Amount, Amount: left,
	}
	if err := c.Post(f.Merchant, f.ID, ledger.FindPayout(f.Processor, l.Balances(f.Merchant)[ledger.Available], f.Amount)); err != nil {
		return err
	}
	c.AddFoundTransfer(f)
	c.OpenCase(store.Case{
		Merchant: f.Merchant, Kind: store.CasePayoutFound, Subject: f.ID, Amount: f.Amount,
		Params: store.ReasonPaidTwice.With(store.Params{"processor": f.Processor, "externalId": f.ExternalID, "payout": p.ID.String()}),
	})
	v.contradiction, v.subject = store.ReasonPaidTwice, *p
	return nil
}

// DeclareNotLeft gives back what was booked of a found transfer: an operator has proof that it
// never left.
func DeclareNotLeft(l *store.Loaded, c *store.Changes, f store.FoundTransfer) error {
	return giveBack(l, c, f, 0, true)
}
