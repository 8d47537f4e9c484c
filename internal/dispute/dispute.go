// Package dispute applies the disputes that processors report to their pay-ins.
package dispute

import (
	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/receivable"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/transition"
)

// Apply follows a reported dispute of a loaded pay-in: its money is set aside, then
// returned or charged back. A repeated or late state changes nothing. id is that of
// the dispute if it is new. All disputes of the pay-in are loaded.
func Apply(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, processorName string, id payment.ID, reported processor.Dispute) error {
	d, known := l.Dispute(p.Merchant, processorName, reported.ID)
	if known && d.Payin != p.ID {
		unexpected(c, p, reported.Amount)
		return nil
	}
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
// case; its dispute is not followed. So does the part of a dispute that exceeds what is
// left of what was received.
func open(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, d store.Dispute, reported money.Cents) (opened bool, err error) {
	on := payment.OnDispute
	if p.Status == payment.PayinDisputed || p.Status == payment.PayinChargeback {
		on = payment.OnDisputeMore
	}
	d.Amount = min(reported, left(l, p))
	if _, legal := payment.PayinTable.Next(p.Status, on); !legal || d.Amount <= 0 {
		unexpected(c, p, reported)
		return false, nil
	}
	c.AddDispute(d)
	pending := receivable.Take(l, c, p, d.Amount)
	if _, err = transition.Payin(l, c, p, links, on, ledger.OpenDispute(pending, l.Balances(p.Merchant)[ledger.Available], d.Amount)); err != nil {
		return false, err
	}
	if beyond := reported - d.Amount; beyond > 0 {
		c.OpenCase(store.Case{
			Merchant: p.Merchant, Kind: store.CaseDispute, Subject: p.ID, Amount: beyond,
			Params: store.ReasonMoreThanReceived.With(store.Params{"reported": reported.String()}),
		})
	}
	return true, nil
}

// left is what can still be disputed of an order: what was received for it, or applied to
// it, and was not refunded, is not being refunded, set aside for another dispute or charged back.
func left(l *store.Loaded, p *payment.Payin) money.Cents {
	var given money.Cents // and is being given, of surplus too
	for _, part := range l.RefundPartsOf(p.Merchant, p.ID) {
		given += part.InUse()
	}
	amount := max(l.Received(p.Merchant, p.ID), p.PaidAmount) - max(given, p.RefundedAmount+l.Refunding(p.Merchant, p.ID))
	for _, d := range l.DisputesOf(p.Merchant, p.ID) {
		if d.State == string(processor.DisputeOpen) || d.State == string(processor.DisputeLost) {
			amount -= d.Amount
		}
	}
	return amount
}

// unexpected opens a case about a dispute that is not followed, in place of an earlier one.
func unexpected(c *store.Changes, p *payment.Payin, reported money.Cents) {
	c.CloseCases(p.Merchant, p.ID, store.CaseDispute, store.ResolvedByNewCase)
	c.OpenCase(store.Case{
		Merchant: p.Merchant, Kind: store.CaseDispute, Subject: p.ID, Amount: reported, Params: store.Params{"status": string(p.Status)},
	})
}

// move moves a dispute, and its order if no other dispute decides its status.
func move(l *store.Loaded, c *store.Changes, p *payment.Payin, links transition.Links, d *store.Dispute, to processor.DisputeState) error {
	owed := l.Balances(p.Merchant)[ledger.Owed]
	on := trigger(p, count(l, p, d), to)
	if _, legal := payment.PayinTable.Next(p.Status, on); !legal {
		return nil
	}
	var entry ledger.Entry
	switch to {
	case processor.DisputeWon:
		entry = ledger.WinDispute(receivable.Restore(l, c, p, d.Amount), owed, d.Amount)
	case processor.DisputeLost:
		entry = ledger.LoseDispute(d.Processor, d.Amount)
	default:
		entry = ledger.ReverseChargeback(d.Processor, receivable.Restore(l, c, p, d.Amount), owed, d.Amount)
	}
	d.State = string(to)
	c.SetDispute(*d)
	_, err := transition.Payin(l, c, p, links, on, entry)
	return err
}

// others counts the other disputes of an order.
type others struct{ open, lost int }

func count(l *store.Loaded, p *payment.Payin, except *store.Dispute) (n others) {
	for _, d := range l.DisputesOf(p.Merchant, p.ID) {
		switch {
		case d.ID == except.ID:
		case d.State == string(processor.DisputeOpen):
			n.open++
		case d.State == string(processor.DisputeLost):
			n.lost++
		}
	}
	return n
}

// triggers are those of a dispute that ends, by what becomes of its order.
type triggers struct{ part, chargedBack, paid, refunded, refundedAll payment.Trigger }

var triggersOf = map[processor.DisputeState]triggers{
	processor.DisputeWon:      {payment.OnWinPart, payment.OnWinChargedBack, payment.OnWin, payment.OnWinRefunded, payment.OnWinRefundedAll},
	processor.DisputeLost:     {payment.OnLosePart, payment.OnLose, payment.OnLose, payment.OnLose, payment.OnLose},
	processor.DisputeReversed: {payment.OnReversePart, payment.OnReversePart, payment.OnReverse, payment.OnReverseRefunded, payment.OnReverseRefundedAll},
}

// trigger picks the trigger of a dispute that ends. The order keeps its status while another
// dispute is open. After the last one it is charged back if one was lost, else it returns
// to its status before the disputes.
func trigger(p *payment.Payin, n others, to processor.DisputeState) payment.Trigger {
	on := triggersOf[to]
	switch chargedBack := n.lost > 0 || to == processor.DisputeLost; {
	case n.open > 0, chargedBack && p.Status == payment.PayinChargeback:
		return on.part
	case chargedBack:
		return on.chargedBack
	case p.RefundedAmount > 0 && p.RefundedAmount >= p.PaidAmount:
		return on.refundedAll
	case p.RefundedAmount > 0:
		return on.refunded
	default:
		return on.paid
	}
}
