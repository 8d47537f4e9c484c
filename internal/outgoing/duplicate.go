package outgoing

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// A processor that is not idempotent may pay a payout twice: an operator had the payout sent again
// because the first transfer was not found, and both were paid. The second transfer has the same
// external id, but an endToEndId of its own: the transfer is a duplicate. It is booked as a found
// transfer under that endToEndId, and two people decide who bears it.

// needDuplicate reads the row of the transfer of a report, if it may be the duplicate of a payout.
func (v *resolution) needDuplicate(n *store.Needs, merchant payment.ID, r *processor.TransferReport) {
	if v.mayBeDuplicate(r) {
		n.FoundTransfer(merchant, r.EndToEndID)
	}
}

func (v *resolution) mayBeDuplicate(r *processor.TransferReport) bool {
	return !v.effect.Repeat.Safe() && isFinal(*r) && r.EndToEndID != ""
}

// isDuplicate reports whether a report is about a second transfer of a payout that is already paid:
// it has another endToEndId than the payout, and
//   - it is booked as a duplicate; or
//   - it was paid, and has another id at the processor, or two sends may have paid and our consent
//     was not to this transfer.
//
// Otherwise a person may have mistyped the endToEndId of the only transfer. A report of another
// amount is a contradiction, not a duplicate.
func (v *resolution) isDuplicate(l *store.Loaded, p *payment.Payout, r *processor.TransferReport) bool {
	if !v.mayBeDuplicate(r) || !isPaid(p) || p.EndToEndID == "" || p.EndToEndID == r.EndToEndID ||
		r.Amount != 0 && r.Amount != p.Amount || r.Returned < 0 || r.Returned > p.Amount {
		return false
	}
	if f, booked := l.FoundTransfer(p.Merchant, r.EndToEndID); booked {
		return f.AdoptedAt.IsZero()
	}
	given, asked := l.Consent(p.Processor, p.ExternalID)
	consented := asked && given.Transfer != "" && given.Transfer == r.ProcessorID
	differs := p.ProcessorID != "" && r.ProcessorID != "" && p.ProcessorID != r.ProcessorID
	return r.State == processor.TransferPaid && (differs || !consented && mayHavePaidTwice(l, p))
}

// mayHavePaidTwice reports whether two sends of a payout may have paid. A restored database may
// lack one of the sends.
func mayHavePaidTwice(l *store.Loaded, p *payment.Payout) bool {
	n := 0
	for _, s := range l.Sends(p.Merchant, p.ID) {
		if !s.Outcome.NoEffect() && s.Outcome != store.SendRefused {
			n++
		}
	}
	return n > 1 || n == 1 && l.HistoryOf(p.Merchant).Number > 0
}

// isOtherFailure reports whether a report is about a failed transfer of a payout that another
// transfer has paid: the failed transfer has another id at the processor, and no endToEndId. Such a
// report changes nothing.
func (v *resolution) isOtherFailure(p *payment.Payout, r *processor.TransferReport) bool {
	other := p.ProcessorID != "" && r.ProcessorID != "" && r.ProcessorID != p.ProcessorID && r.EndToEndID == ""
	return isPaid(p) && other && r.State == processor.TransferFailed && !v.effect.Repeat.Safe()
}

// isPaid reports whether a payout was paid, also if the money has come back.
func isPaid(p *payment.Payout) bool {
	return p.Status == payment.PayoutCompleted || p.Status == payment.PayoutReturned
}

// otherMayPay reports whether a report is about a failed transfer while another transfer of the
// payout may still pay. After our consent only one transfer can pay: then the result is false.
func (v *resolution) otherMayPay(l *store.Loaded, p *payment.Payout, r *processor.TransferReport) bool {
	_, asked := l.Consent(p.Processor, p.ExternalID)
	return r.State == processor.TransferFailed && p.Status == payment.PayoutProcessing && !v.searched && !asked &&
		!v.effect.Repeat.Safe() && mayHavePaidTwice(l, p)
}

// lookUpAll schedules an immediate look-up of all transfers of a payout, unless the payout is being
// sent or is in manual review. The money is released only if all transfers failed.
func lookUpAll(l *store.Loaded, c *store.Changes, p *payment.Payout) {
	if p.Step == payment.StepAccepted || p.Step == payment.StepUnknown {
		p.NextAt, p.ClaimedBy, p.ProcessorID = l.Now(), payment.ID{}, ""
		*p = c.SetPayout(*p)
	}
}

// bookDuplicate books the duplicate transfer of a payout, once, at the merchant's expense, and its
// returns.
func (v *resolution) bookDuplicate(l *store.Loaded, c *store.Changes, p *payment.Payout, r *processor.TransferReport) error {
	left := p.Amount - r.Returned
	if r.State == processor.TransferFailed {
		left = 0
	}
	if f, booked := l.FoundTransfer(p.Merchant, r.EndToEndID); booked {
		return giveBack(l, c, f, left, true)
	}
	f := store.FoundTransfer{
		Merchant: p.Merchant, ID: c.NewID(), ExternalID: r.EndToEndID, Processor: p.Processor, EndToEndID: r.EndToEndID,
		Payout: p.ID, Total: p.Amount, Amount: left,
	}
	c.AddFoundTransfer(f)
	if left == 0 {
		return nil // all of it has come back
	}
	c.OpenCase(store.Case{
		Merchant: f.Merchant, Kind: store.CasePayoutFound, Subject: f.ID, Amount: f.Amount,
		Params:       store.ReasonPaidTwice.With(store.Params{"processor": f.Processor, "externalId": f.ExternalID, "payout": p.ID.String()}),
		StopsAccount: f.Processor,
	})
	v.contradiction, v.subject = store.ReasonPaidTwice, *p
	return c.Post(f.Merchant, f.ID, ledger.FindPayout(f.Processor, l.Balances(f.Merchant)[ledger.Available], f.Amount))
}

// DeclareOnlyTransfer takes the booking of a duplicate back: an operator has proof that the
// transfer is the payout's only one. Later reports of the transfer are about the payout.
func DeclareOnlyTransfer(l *store.Loaded, c *store.Changes, f store.FoundTransfer) error {
	if f.Amount > 0 {
		if err := c.Post(f.Merchant, f.ID, ledger.ReturnFound(f.Processor, l.Balances(f.Merchant)[ledger.Owed], f.Amount)); err != nil {
			return err
		}
	}
	f.Amount = 0
	c.AdoptFoundTransfer(f)
	return nil
}
