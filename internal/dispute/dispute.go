// Package dispute applies the disputes that processors report to their pay-ins.
package dispute

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Apply follows a reported dispute of a loaded pay-in: its money is set aside, then
// returned or charged back. A repeated or late state changes nothing. id is that of
// the dispute if it is new.
func Apply(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, processorName string, id payment.ID, reported processor.Dispute) error {
	d, known := l.Dispute(p.Merchant, processorName, reported.ID)
	if !known {
		opened := store.Dispute{
			Merchant: p.Merchant, ID: id, Payin: p.ID, Processor: processorName, ExternalID: reported.ID, State: string(processor.DisputeOpen),
		}
		if ok, err := open(l, c, p, links, opened, reported.Amount); err != nil || !ok {
			return err
		}
		d, _ = l.Dispute(p.Merchant, processorName, reported.ID)
	}
	for _, next := range path(processor.DisputeState(d.State), reported.State) {
		if err := move(l, c, p, links, &d, next); err != nil {
			return err
		}
	}
	return nil
}

// path is the states between one state and a later one; a report may have skipped
// some.
func path(from, to processor.DisputeState) []processor.DisputeState {
	switch {
	case from == processor.DisputeOpen && (to == processor.DisputeWon || to == processor.DisputeLost):
		return []processor.DisputeState{to}
	case from == processor.DisputeOpen && to == processor.DisputeReversed:
		return []processor.DisputeState{processor.DisputeLost, processor.DisputeReversed}
	case from == processor.DisputeLost && to == processor.DisputeReversed:
		return []processor.DisputeState{to}
	default:
		return nil
	}
}

// open sets the disputed money aside. An order that cannot be disputed now gets a
// case; its dispute is not followed.
func open(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, d store.Dispute, reported money.Cents) (opened bool, err error) {
	d.Amount = min(reported, p.PaidAmount-p.RefundedAmount)
	if _, legal := payment.PayinTable.Next(p.Status, payment.OnDispute); !legal || d.Amount <= 0 {
		c.CloseCases(p.Merchant, p.ID, store.CaseDispute, store.ResolvedByNewCase)
		c.OpenCase(store.Case{
			Merchant: p.Merchant, Kind: store.CaseDispute, Subject: p.ID, Amount: reported, Params: store.Params{"status": string(p.Status)},
		})
		return false, nil
	}
	c.AddDispute(d)
	_, err = transition.Payin(l, c, p, links, payment.OnDispute, ledger.OpenDispute(l.Balances(p.Merchant)[ledger.Available], d.Amount))
	return true, err
}

// move moves a dispute and its order together.
func move(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, d *store.Dispute, to processor.DisputeState) error {
	owed := l.Balances(p.Merchant)[ledger.Owed]
	var on payment.Trigger
	var entry ledger.Entry
	switch to {
	case processor.DisputeWon:
		on, entry = unlessRefunded(p, payment.OnWin, payment.OnWinRefunded), ledger.WinDispute(owed, d.Amount)
	case processor.DisputeLost:
		on, entry = payment.OnLose, ledger.LoseDispute(d.Processor, d.Amount)
	default:
		on, entry = unlessRefunded(p, payment.OnReverse, payment.OnReverseRefunded), ledger.ReverseChargeback(d.Processor, owed, d.Amount)
	}
	if _, legal := payment.PayinTable.Next(p.Status, on); !legal {
		return nil
	}
	d.State = string(to)
	c.SetDispute(*d)
	_, err := transition.Payin(l, c, p, links, on, entry)
	return err
}

// unlessRefunded picks the trigger that leads back to the order's earlier status.
func unlessRefunded(p *payment.Payin, paid, refunded payment.Trigger) payment.Trigger {
	if p.RefundedAmount > 0 {
		return refunded
	}
	return paid
}
