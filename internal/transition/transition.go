// Package transition moves orders through their tables: new status and version, entries, event.
package transition

import (
	"fmt"

	"github.com/porteira/porteira/internal/ledger"
	"github.com/porteira/porteira/internal/money"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/wire"
)

// Links returns the URLs of a pay-in's pages, as events show them.
type Links func(*payment.Payin) payment.Links

// Payin moves a loaded pay-in through one cell of its table. p gets the cell's status and a new
// version, the entries, which must follow the cell's recipe, are posted, and the cell's event is
// written. If there is no such cell, nothing changes and moved is false: a late or repeated trigger
// is no error.
func Payin(l *store.Loaded, c *store.Changes, p *payment.Payin, links Links, on payment.Trigger, entries ...ledger.Entry) (moved bool, err error) {
	cell, legal := payment.PayinTable.Next(p.Status, on)
	if !legal {
		return false, nil
	}
	p.Status, p.Version = cell.To, p.Version+1
	*p = c.SetPayin(*p)
	if err := post(l, c, p.Merchant, p.ID, cell.Recipe, entries); err != nil {
		return false, err
	}
	if cell.Event == "" {
		return true, nil
	}
	data, err := wire.Payin(p, links(p), payment.PersonalData{})
	if err != nil {
		return false, fmt.Errorf("pay-in event: %w", err)
	}
	addEvent(c, payment.Event{Merchant: p.Merchant, Type: cell.Event, Subject: p.ID, Version: p.Version}, data, p.WebhookURL, p.WebhookDisabled)
	return true, nil
}

// Unapplied changes the unapplied amount of a loaded pay-in, in cents. No event announces it: the caller
// opens or closes the cases about the money, and posts its entry.
func Unapplied(l *store.Loaded, c *store.Changes, merchant, payin payment.ID, by money.Cents) error {
	p, ok := l.Payin(merchant, payin)
	if !ok {
		return fmt.Errorf("unapplied money of pay-in %s: %w", payin, store.ErrNotFound)
	}
	p.UnappliedAmount += by
	c.SetPayin(p)
	return nil
}

// Payout is Payin for payouts. Limits do not count a payout that fails or is canceled.
func Payout(l *store.Loaded, c *store.Changes, p *payment.Payout, on payment.Trigger, entries ...ledger.Entry) (moved bool, err error) {
	cell, legal := payment.PayoutTable.Next(p.Status, on)
	if !legal {
		return false, nil
	}
	p.Status, p.Version = cell.To, p.Version+1
	*p = c.SetPayout(*p)
	if cell.To == payment.PayoutFailed || cell.To == payment.PayoutCanceled {
		c.UncountPayout(p)
	}
	if err := post(l, c, p.Merchant, p.ID, cell.Recipe, entries); err != nil {
		return false, err
	}
	data := wire.UndecidedPayout(p, l.CountApprovals(p.Merchant, p.ID), false)
	addEvent(c, payment.Event{Merchant: p.Merchant, Type: cell.Event, Subject: p.ID, Version: p.Version}, data, p.WebhookURL, p.WebhookDisabled)
	return true, nil
}

// Refund is Payin for refunds.
func Refund(l *store.Loaded, c *store.Changes, r *payment.Refund, on payment.Trigger, entries ...ledger.Entry) (moved bool, err error) {
	cell, legal := payment.RefundTable.Next(r.Status, on)
	if !legal {
		return false, nil
	}
	r.Status, r.Version = cell.To, r.Version+1
	*r = c.SetRefund(*r)
	if err := post(l, c, r.Merchant, r.ID, cell.Recipe, entries); err != nil {
		return false, err
	}
	if cell.Event == "" {
		return true, nil
	}
	data, err := wire.Refund(r)
	if err != nil {
		return false, fmt.Errorf("refund event: %w", err)
	}
	addEvent(c, payment.Event{Merchant: r.Merchant, Type: cell.Event, Subject: r.ID, Version: r.Version}, data, r.WebhookURL, r.WebhookDisabled)
	return true, nil
}

// DisputeEvent writes an event of a dispute, which goes to endpoints only. d has its new
// version and is stored.
func DisputeEvent(l *store.Loaded, c *store.Changes, d *payment.Dispute, event payment.EventType) error {
	data, err := wire.Dispute(d, l.Defense(d.Merchant, d.ID))
	if err != nil {
		return fmt.Errorf("dispute event: %w", err)
	}
	c.AddEvent(payment.Event{Merchant: d.Merchant, Type: event, Subject: d.ID, Version: d.Version}, data, "")
	return nil
}

func addEvent(c *store.Changes, e payment.Event, data []byte, url string, disabled bool) {
	if disabled {
		url = ""
	}
	c.AddEvent(e, data, url)
}

// post posts the entries of a transition. They must be of its recipe: a mismatch is a bug, and
// moves no money. A part of received money may settle later. Then available money repays debt.
func post(l *store.Loaded, c *store.Changes, merchant, subject payment.ID, recipe ledger.Kind, entries []ledger.Entry) error {
	if (recipe == "") != (len(entries) == 0) {
		return fmt.Errorf("transition: recipe %q with %d entries", recipe, len(entries))
	}
	for _, e := range entries {
		if e.Kind != recipe && (recipe != ledger.Received || e.Kind != ledger.ReceivedPending) {
			return fmt.Errorf("transition: entry %q, the table has %q", e.Kind, recipe)
		}
		if err := c.Post(merchant, subject, e); err != nil {
			return fmt.Errorf("post %s: %w", e.Kind, err)
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return RepayDebt(l, c, merchant, subject)
}

// RepayDebt repays debt from available money.
func RepayDebt(l *store.Loaded, c *store.Changes, merchant, subject payment.ID) error {
	b := l.Balances(merchant)
	if e, due := ledger.RepayOwed(b[ledger.Available], b[ledger.Owed]); due {
		return c.Post(merchant, subject, e)
	}
	return nil
}
