package outgoing

import (
	"time"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// isReleased reports whether the money of a payout was released.
func isReleased(p *payment.Payout) bool {
	return p.Status == payment.PayoutFailed || p.Status == payment.PayoutCanceled
}

// isPaidAfterRelease reports whether a report shows that money of a payout left after its release,
// and no such payment is booked. Any amount counts, because the merchant can spend the money again.
func isPaidAfterRelease(p *payment.Payout, r *processor.TransferReport) bool {
	return isReleased(p) && p.Step != payment.StepPaidLate && r.State == processor.TransferPaid && r.Amount >= 0 && r.Amount <= money.Max
}

// amountOf is the amount of a payout's transfer. If it left after its release, the found transfer of
// its id has the amount.
func amountOf(l *store.Loaded, p *payment.Payout) money.Cents {
	if f, ok := l.FoundTransfer(p.Merchant, p.ExternalID); ok && p.Step == payment.StepPaidLate {
		return f.Total
	}
	return p.Amount
}

// paidLate opens a case about a payout that was paid after its release. Once the payment is booked,
// paidLate books returns: without an event, because the payout's status is final.
func (v *resolution) paidLate(l *store.Loaded, c *store.Changes, p *payment.Payout, r processor.TransferReport) error {
	if p.Step != payment.StepPaidLate {
		v.contradictLate(c, p, r.Amount)
		return nil
	}
	f, ok := l.FoundTransfer(p.Merchant, p.ExternalID)
	switch {
	case !ok:
		return nil // booked since the report was prepared; it is looked up
	case r.Returned < 0 || r.Returned > f.Total: // first: a difference could overflow
		v.contradict(c, p, store.ReasonReturnedTooMuch, store.Params{"reported": r.Returned.String()})
		return nil
	}
	return giveBack(l, c, f, f.Total-r.Returned, true)
}

// contradictLate opens the case about a payout that was paid after its release.
func (v *resolution) contradictLate(c *store.Changes, p *payment.Payout, reported money.Cents) {
	amount, params := paidAfterRelease(p, reported)
	v.openContradiction(c, p, amount, store.ReasonPaidAfterRelease, params)
}

// paidAfterRelease returns the amount and the parameters of the case about a payout that was paid
// after its release. A reported amount comes first, because a decision books it.
func paidAfterRelease(p *payment.Payout, reported money.Cents) (money.Cents, store.Params) {
	params, amount := store.Params{"status": string(p.Status)}, p.Amount
	if reported != 0 && reported != p.Amount {
		params["reported"], amount = reported.String(), reported
	}
	return amount, params
}

// DamagedPaidLate returns the case about a damaged payout that its processor lists as paid after
// its release; false for other reports. Other reports of the payout can be booked once its row is
// repaired.
func (e *Executor) DamagedPaidLate(p *payment.Payout, r *processor.TransferReport) (store.Case, bool) {
	if !isPaidAfterRelease(p, r) {
		return store.Case{}, false
	}
	amount, params := paidAfterRelease(p, r.Amount)
	params = store.ReasonPaidAfterRelease.With(params)
	v := e.newResolution(p.Processor)
	return store.Case{
		Merchant: p.Merchant, ID: contradictionCase(p, params), Kind: store.CaseContradiction, Subject: p.ID, Amount: amount, Params: params,
		StopsPayouts: true, StopsAccount: v.stopsAccount(p, amount != p.Amount),
	}, true
}

// failedLate opens a case about a failed payout that was booked as paid after its release. The
// transfer is final, and is not looked up any more. Without such a booking the failure is known
// already.
func (v *resolution) failedLate(l *store.Loaded, c *store.Changes, p *payment.Payout) error {
	f, ok := l.FoundTransfer(p.Merchant, p.ExternalID)
	if !ok || p.Step != payment.StepPaidLate {
		return nil
	}
	if f.Amount > 0 {
		v.openContradiction(c, p, f.Amount, store.ReasonFailedAfterPaid, nil)
	}
	return giveBack(l, c, f, f.Amount, true)
}

// DeclarePaidLate books an amount of a payout that left after the release of its hold. An operator
// decided who bears the amount: the merchant, with its fee, or the platform, which pays itself
// none. The payout keeps its status, which is final; the new step makes later reports of the
// payment change nothing. The transfer is recorded, so that returned money is booked too. The found
// transfer of the payout's id must be loaded.
func DeclarePaidLate(l *store.Loaded, c *store.Changes, p *payment.Payout, amount money.Cents, byPlatform bool) error {
	e := ledger.PayPayoutLate(p.Processor, l.Balances(p.Merchant)[ledger.Available], amount, p.Fee)
	if byPlatform {
		e = ledger.WriteOffPayout(p.Processor, amount)
	}
	if err := c.Post(p.Merchant, p.ID, e); err != nil {
		return err
	}
	p.Step = payment.StepPaidLate
	*p = c.SetPayout(*p)
	f, adopted := l.FoundTransfer(p.Merchant, p.ExternalID)
	f.Total, f.Amount, f.WrittenOff, f.NextAt, f.Lookups = amount, amount, byPlatform, l.Now(), 0 // it may have come back already
	if adopted {                                                                                  // before it failed
		c.SetFoundTransfer(f)
		return nil
	}
	f.Merchant, f.ID, f.ExternalID, f.Processor = p.Merchant, p.ID, p.ExternalID, p.Processor
	c.AddFoundTransfer(f)
	return nil
}

// giveBack books the returned part of a found transfer, given the amount that is left. The money
// goes to the bearer of the transfer: the merchant or the platform. After a final report the
// transfer is not looked up any more.
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
