package checker

import (
	"fmt"
	"slices"
	"strings"
)

// compareEnd reports work that is not finished at the end, or was given up without a case.
func (c *comparison) compareEnd() {
	for _, o := range c.orderList {
		claimed := !o.claimedBy.isZero()
		switch {
		case c.waitsForDebt(o):
		case o.inFlight() && !inReview(o):
			c.violatef(Progress, o, "step %s is not final, and no case is open", o.step)
		case o.kind == Payin && o.status == "PENDING":
			c.violatef(Progress, o, "is still open")
		case claimed || o.nextAt != 0:
			c.violatef(Progress, o, "is due at %d, claimed: %v", o.nextAt, claimed)
		}
		for _, e := range o.events {
			if e.delivery != nil && e.delivery.claimed != 0 {
				c.violatef(Progress, o, "the delivery of %s is claimed", e.kind)
			}
		}
	}
	var names []string
	for name, n := range c.notices {
		if n.state == "received" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		c.violateMerchantf(Progress, rowID{}, "notice %s is not applied", name)
	}
}

// waitsForDebt reports that a case says that a payout waits until its merchant owes nothing,
// and that it owes money.
func (c *comparison) waitsForDebt(o *order) bool {
	said := slices.ContainsFunc(o.cases, func(v *reviewCase) bool {
		return v.kind == "payout_waiting" && v.closedAt == 0 && v.facts["reason"] == "debt"
	})
	return said && o.inFlight() && o.step == "queued" && o.claimedBy.isZero() && c.merchants[o.key.merchant].account("owed").sum < 0
}

// compareFound compares what was found of a transfer with the bank's record of it.
func (c *comparison) compareFound(f *foundTransfer) {
	t := c.transferred[f.externalID]
	if t == nil {
		c.violateMerchantf(SingleTransfer, f.key.merchant, "the bank has no transfer %s, which is booked as found", f.externalID)
		return
	}
	if f.adoptedAt != 0 {
		return
	}
	if left := t.left(); c.final && f.amount != left || f.amount > t.Amount || t.EndToEndID != f.endToEndID && f.endToEndID != "" {
		c.violateMerchantf(SingleTransfer, f.key.merchant, "found transfer %s is booked as %d, %s: the bank has %+v", f.externalID, f.amount, f.endToEndID, *t)
	}
}

// compareMoney checks, by the records of the bank and the clients alone, that no more left
// for a merchant than it had: what the operator credited, and its payers paid. Lost disputes
// and refunds at the bank's panel are not counted: they may exceed what is left.
func (c *comparison) compareMoney() {
	had, owner := map[rowID]int64{}, map[string]rowID{}
	for id, m := range c.merchants {
		had[id] += m.booked["funded"]
	}
	for _, o := range c.Orders {
		if o.ExternalID != "" {
			owner[o.ExternalID] = parseID(o.Merchant)
		}
	}
	for _, o := range c.orderList {
		owner[o.externalID] = o.key.merchant
	}
	paid := make(map[string]rowID, len(c.Payments))
	for _, f := range c.foundByID {
		owner[f.externalID] = f.key.merchant
	}
	for i := range c.Payments {
		if id, known := owner[c.Payments[i].ExternalID]; known {
			had[id] += c.Payments[i].Amount
			paid[c.Payments[i].ID] = id
		}
	}
	for i := range c.Refunds {
		if id, known := paid[c.Refunds[i].PaymentID]; known && !c.Refunds[i].Failed && !c.Refunds[i].AtPanel {
			had[id] -= c.Refunds[i].Amount
		}
	}
	for i := range c.Transfers {
		if o := c.externalIDs[c.Transfers[i].ExternalID]; o != nil && o.step == stepPaidLate {
			continue // persons released it, so its money could be spent again
		}
		if id, known := owner[c.Transfers[i].ExternalID]; known {
			had[id] -= c.Transfers[i].left()
		} else if !(c.Rewound && c.Transfers[i].left() == 0) { // of a batch that a copy lacks: only money is found again
			c.violateMerchantf(SingleTransfer, rowID{}, "the bank has a transfer that no client requested: %+v", c.Transfers[i])
		}
	}
	for _, m := range c.merchants {
		if had[m.id] < 0 {
			c.violateMerchantf(Amounts, m.id, "%d more left than the merchant had", -had[m.id])
		}
	}
}

// compareSums compares all transfers and payments of the bank with the clearing
// accounts.
func (c *comparison) compareSums() {
	bank, clearing := c.unbooked, int64(0) // cents
	for i := range c.Payments {
		bank += c.Payments[i].Amount
	}
	for i := range c.Transfers {
		t := &c.Transfers[i]
		o := c.externalIDs[t.ExternalID]
		if o == nil || !inReview(o) && t.State == "paid" {
			bank -= t.left()
		}
	}
	for i := range c.Refunds {
		if !c.Refunds[i].Failed {
			bank -= c.Refunds[i].Amount
		}
	}
	for _, m := range c.merchants {
		for _, a := range m.accounts {
			if strings.HasPrefix(a.account, "clearing:") {
				clearing -= a.balance
			}
		}
		// The bank lists neither the operator's own money nor that of disputes.
		clearing += m.booked["charged_back"] - m.booked["chargeback_reversed"] - m.booked["funded"]
	}
	if bank != clearing {
		c.violations = append(c.violations, Violation{Invariant: Clearing, Text: fmt.Sprintf("the bank moved %d, the clearing accounts say %d", bank, clearing)})
	}
}
