package flow

import (
	"context"
	"fmt"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// movePayin takes a locked pay-in through one cell of its table: new status
// and version, the entries (of the recipe that the cell names, about this
// order), and the event that tells the merchant. Where the cell is illegal
// nothing changes and moved is false: what comes late or twice is not an error.
func (f *Flow) movePayin(ctx context.Context, tx *store.Tx, p *payment.Payin, on payment.Trigger, entries ...ledger.Entry) (moved bool, err error) {
	cell, ok := payment.PayinTable.Next(p.Status, on)
	if !ok {
		return false, nil
	}
	was := p.Version
	p.Status, p.Version = cell.To, p.Version+1
	if err := tx.UpdatePayin(ctx, p, was); err != nil {
		return false, err
	}
	if err := post(ctx, tx, p.Merchant, p.ID, cell.Recipe, entries); err != nil {
		return false, err
	}
	if cell.Event == "" {
		return true, nil
	}
	data, err := wire.Payin(p, f.links(p), payment.PersonalData{})
	if err != nil {
		return false, fmt.Errorf("pay-in event: %w", err)
	}
	url := p.WebhookURL
	if p.WebhookEnded {
		url = ""
	}
	tx.Announce(payment.Event{Merchant: p.Merchant, Type: cell.Event, Subject: p.ID, Version: p.Version}, data, url)
	return true, nil
}

// movePayout is movePayin for payouts.
func movePayout(ctx context.Context, tx *store.Tx, p *payment.Payout, on payment.Trigger, entries ...ledger.Entry) (moved bool, err error) {
	cell, ok := payment.PayoutTable.Next(p.Status, on)
	if !ok {
		return false, nil
	}
	was := p.Version
	p.Status, p.Version = cell.To, p.Version+1
	if err := tx.UpdatePayout(ctx, p, was); err != nil {
		return false, err
	}
	if err := post(ctx, tx, p.Merchant, p.ID, cell.Recipe, entries); err != nil {
		return false, err
	}
	data, err := wire.Payout(p, false)
	if err != nil {
		return false, fmt.Errorf("payout event: %w", err)
	}
	url := p.WebhookURL
	if p.WebhookEnded {
		url = ""
	}
	tx.Announce(payment.Event{Merchant: p.Merchant, Type: cell.Event, Subject: p.ID, Version: p.Version}, data, url)
	return true, nil
}

// post writes the entries of a transition. They must be those of its recipe:
// a table and its code that differ are a bug, and a bug moves no money.
func post(ctx context.Context, tx *store.Tx, merchant, subject payment.ID, recipe ledger.Kind, entries []ledger.Entry) error {
	if (recipe == "") != (len(entries) == 0) {
		return fmt.Errorf("flow: recipe %q with %d entries", recipe, len(entries))
	}
	for _, e := range entries {
		if e.Kind != recipe {
			return fmt.Errorf("flow: entry %q where the table says %q", e.Kind, recipe)
		}
		if err := tx.Post(ctx, merchant, subject, e); err != nil {
			return fmt.Errorf("flow: post %s: %w", e.Kind, err)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return repay(ctx, tx, merchant, subject)
}

// repay pays debt out of what has become available.
func repay(ctx context.Context, tx *store.Tx, merchant, subject payment.ID) error {
	balances, err := tx.Balances(ctx, merchant)
	if err != nil {
		return err
	}
	if e, due := ledger.RepayOwed(balances[ledger.Available], balances[ledger.Owed]); due {
		return tx.Post(ctx, merchant, subject, e)
	}
	return nil
}
