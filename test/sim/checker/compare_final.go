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

// compareSums compares all transfers and payments of the bank with the clearing
// accounts.
func (c *comparison) compareSums() {
	var bank, clearing int64 // cents
	for i := range c.Payments {
		bank += c.Payments[i].Amount
	}
	for i := range c.Transfers {
		t := &c.Transfers[i]
		o := c.externalIDs[t.ExternalID]
		if t.State == "paid" && (o == nil || !inReview(o)) {
			bank -= t.Amount - t.Returned
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
		c.found = append(c.found, Violation{Invariant: Clearing, Text: fmt.Sprintf("the bank moved %d, the clearing accounts say %d", bank, clearing)})
	}
}
