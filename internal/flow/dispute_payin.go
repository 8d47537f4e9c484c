package flow

import (
	"context"
	"errors"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store"
)

// applyDispute follows a payer's contest of an order: its money is set aside,
// then given back or gone. States that come again, or out of order, change
// nothing.
func (f *Flow) applyDispute(ctx context.Context, tx *store.Tx, p *payment.Payin, name string, news processor.Dispute) error {
	d, err := tx.Dispute(ctx, p.Merchant, name, news.ID)
	if errors.Is(err, store.ErrNotFound) {
		d, err = f.openDispute(ctx, tx, p, name, news)
	}
	if err != nil || d.ID.IsZero() || d.State == string(news.State) {
		return err
	}
	switch {
	case d.State == string(processor.DisputeOpen) && news.State == processor.DisputeWon:
		return f.endDispute(ctx, tx, p, d, news.State, winTrigger(p, payment.OnWin, payment.OnWinRefunded))
	case d.State == string(processor.DisputeOpen) && news.State == processor.DisputeLost:
		return f.endDispute(ctx, tx, p, d, news.State, payment.OnLose)
	case d.State == string(processor.DisputeOpen) && news.State == processor.DisputeReversed: // the loss was never told
		if err := f.endDispute(ctx, tx, p, d, processor.DisputeLost, payment.OnLose); err != nil {
			return err
		}
		d.State = string(processor.DisputeLost)
		fallthrough
	case d.State == string(processor.DisputeLost) && news.State == processor.DisputeReversed:
		return f.endDispute(ctx, tx, p, d, news.State, winTrigger(p, payment.OnReverse, payment.OnReverseRefunded))
	}
	return nil
}

// openDispute sets the contested money aside. An order that cannot be disputed
// now goes to a person; the dispute then has no id, and is not followed.
func (f *Flow) openDispute(ctx context.Context, tx *store.Tx, p *payment.Payin, name string, news processor.Dispute) (store.Dispute, error) {
	amount := min(news.Amount, p.PaidAmount-p.RefundedAmount)
	if _, legal := payment.PayinTable.Next(p.Status, payment.OnDispute); !legal || amount <= 0 {
		if err := tx.CloseExceptions(ctx, p.Merchant, p.ID, store.ExceptionDispute); err != nil {
			return store.Dispute{}, err
		}
		return store.Dispute{}, tx.OpenException(ctx, store.Exception{
			Merchant: p.Merchant, Kind: store.ExceptionDispute, Subject: p.ID, Amount: news.Amount,
			Detail: "The processor reports a dispute of an order in status " + string(p.Status) + ". Nothing was posted.",
		})
	}
	d := store.Dispute{
		Merchant: p.Merchant, ID: tx.NewID(), Payin: p.ID, Processor: name, ExternalID: news.ID,
		Amount: amount, State: string(processor.DisputeOpen),
	}
	if err := tx.InsertDispute(ctx, d); err != nil {
		return d, err
	}
	balances, err := tx.Balances(ctx, p.Merchant)
	if err != nil {
		return d, err
	}
	_, err = f.movePayin(ctx, tx, p, payment.OnDispute, ledger.OpenDispute(balances[ledger.Available], amount))
	return d, err
}

// endDispute moves a dispute and its order on together.
func (f *Flow) endDispute(ctx context.Context, tx *store.Tx, p *payment.Payin, d store.Dispute, state processor.DisputeState, on payment.Trigger) error {
	if _, legal := payment.PayinTable.Next(p.Status, on); !legal {
		return nil
	}
	balances, err := tx.Balances(ctx, p.Merchant)
	if err != nil {
		return err
	}
	var entry ledger.Entry
	switch state {
	case processor.DisputeWon:
		entry = ledger.WinDispute(balances[ledger.Owed], d.Amount)
	case processor.DisputeLost:
		entry = ledger.LoseDispute(d.Processor, d.Amount)
	default:
		entry = ledger.ReverseChargeback(d.Processor, balances[ledger.Owed], d.Amount)
	}
	was := d.State
	d.State = string(state)
	if err := tx.UpdateDispute(ctx, d, was); err != nil {
		return err
	}
	_, err = f.movePayin(ctx, tx, p, on, entry)
	return err
}

// winTrigger picks the cell that leads back to where the order was.
func winTrigger(p *payment.Payin, whole, refunded payment.Trigger) payment.Trigger {
	if p.RefundedAmount > 0 {
		return refunded
	}
	return whole
}
