package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// checkEnd looks for what is still under way, or was given up in silence: I11.
func (c *comparison) checkEnd() {
	for _, o := range c.g.inOrder {
		switch {
		case o.inFlight() && !c.open(o):
			c.g.badf("I11", o, "step %s is no end, and nobody is told", o.step)
		case o.kind == payin && o.status == "PENDING":
			c.g.badf("I11", o, "is still open")
		case o.claimed || o.nextAt != 0:
			c.g.badf("I11", o, "is due at %d and in hand: %v", o.nextAt, o.claimed)
		}
		for _, e := range o.events {
			if e.delivery != nil && e.delivery.claimed {
				c.g.badf("I11", o, "the delivery of %s is in hand", e.kind)
			}
		}
	}
	var waiting []string
	for name, n := range c.g.notices {
		if n.state == "received" {
			waiting = append(waiting, name)
		}
	}
	slices.Sort(waiting)
	for _, name := range waiting {
		c.g.badBooksf("I11", rowID{}, "notice %s is not applied", name)
	}
}

// checkSums holds what the bank has moved in all against the clearing accounts: I14.
func (c *comparison) checkSums() {
	var bank, clearing int64
	for i := range c.payments {
		bank += c.payments[i].amount
	}
	for i := range c.transfers {
		t := &c.transfers[i]
		o := c.g.externals[t.externalID]
		if t.state == "paid" && (o == nil || !c.open(o)) {
			bank -= t.amount - t.returned
		}
	}
	for _, m := range c.g.merchants {
		for _, a := range m.accounts {
			if strings.HasPrefix(a.name, "clearing:") {
				clearing -= a.balance
			}
		}
		// The operator's own money, and what disputes moved, is in none of the
		// bank's lines.
		clearing += m.booked["charged_back"] - m.booked["chargeback_reversed"] - m.booked["funded"]
	}
	if bank != clearing {
		c.g.found = append(c.g.found, violation{invariant: "I14", text: fmt.Sprintf("the bank has moved %d, the clearing accounts %d", bank, clearing)})
	}
}
