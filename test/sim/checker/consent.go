package checker

import "slices"

// consentRow is a row of consents: our answer to a bank that asks before it pays a transfer.
type consentRow struct {
	account, externalID, transfer, state string
	createdAt                            int64
}

// consent declares the columns of consents.
func (c *columns) consent(r *consentRow) {
	c.fixed.text("account", &r.account)
	c.fixed.text("external_id", &r.externalID)
	c.fixed.text("transfer_id", &r.transfer)
	c.fixed.text("state", &r.state)
	c.fixed.num("created_at", &r.createdAt)
}

// applyConsent follows a consent to one transfer of a payout.
func (c *Checker) applyConsent(l *line) {
	var row consentRow
	c.columns.read(l).consent(&row)
	o := c.externalIDs[row.externalID]
	if o == nil || o.kind != Payout || o.processor != row.account || !c.asksConsent(row.account) {
		c.violateMerchantf(SingleTransfer, l.key.merchant, "consent to %s at account %s, which has no payout of that id or does not ask", row.externalID, row.account)
		return
	}
	if o.consent != nil {
		c.violatef(SingleTransfer, o, "consent to %s after that to %s", row.transfer, o.consent.transfer)
		return
	}
	o.consent = &row
	c.touched.consents = append(c.touched.consents, o)
}

// checkConsent checks a new consent: the payout is being sent or, if it was paid without a
// question, has ended.
func (c *Checker) checkConsent(o *order) {
	sending := o.status == "PROCESSING" && o.step != "manual_review" && len(o.sends) > 0 && undecided(o.sends[len(o.sends)-1].outcome)
	paid := o.status == "COMPLETED" || o.status == "RETURNED"
	switch v := o.consent; {
	case v.state == "given" && (v.transfer == "" || !sending):
		c.violatef(SingleTransfer, o, "consent to transfer %q, but the payout is not being sent", v.transfer)
	case v.state == "not_asked" && (v.transfer != "" || !paid):
		c.violatef(SingleTransfer, o, "transfer %q is said to be paid without a question", v.transfer)
	case v.state != "given" && v.state != "not_asked":
		c.violatef(SingleTransfer, o, "the consent is %q", v.state)
	}
}

func (c *Checker) asksConsent(account string) bool { return slices.Contains(c.AsksConsent, account) }

// refusalIsFinal reports whether the refusal of the last send proves that no money left. It
// does not if an earlier transfer has our consent.
func (o *order) refusalIsFinal() bool { return o.consent == nil && refusalIsFinal(o.sends) }

// isSecond reports whether the bank must not have a transfer beside the one that stands for
// the others under its id. A bank that asks for consent accepts each request, and pays one.
func (c *comparison) isSecond(t *BankTransfer, account string) bool {
	other := c.transferred[t.ExternalID]
	if other == nil || !c.asksConsent(account) {
		return other != nil
	}
	moves := func(t *BankTransfer) bool { return t.State == "paid" || c.final && t.State == "processing" }
	return moves(t) && moves(other)
}

// note makes a transfer stand for the others under its id: a paid one before one in process,
// before one that failed.
func (c *comparison) note(t *BankTransfer) {
	states := []string{"paid", "processing", "failed"}
	if other := c.transferred[t.ExternalID]; other == nil || slices.Index(states, t.State) < slices.Index(states, other.State) {
		c.transferred[t.ExternalID] = t
	}
}

// compareConsent checks that a transfer that was paid had our consent, if its bank asks. An
// older copy of the database may lack it.
func (c *comparison) compareConsent(o *order, t *BankTransfer) {
	if !c.asksConsent(o.processor) || t.State != "paid" || c.Rewound {
		return
	}
	if o.consent == nil || o.consent.state != "given" || o.consent.transfer != t.ID {
		c.violatef(SingleTransfer, o, "the bank paid transfer %s, which had no consent", t.ID)
	}
}
