package main

import (
	"fmt"
	"slices"
)

// statusOf is the payout's status that each state of its transfer must have.
var statusOf = map[string]string{"paid": "COMPLETED", "failed": "FAILED", "returned": "RETURNED"}

// compareBank holds payouts against transfers and pay-ins against payments,
// both ways.
func (c *checker) compareBank() {
	for i := range c.orders[payout] {
		c.comparePayout(&c.orders[payout][i])
	}
	for i := range c.orders[payin] {
		c.comparePayin(&c.orders[payin][i])
	}
	for id, list := range c.sent {
		if !c.external[payout+" "+id] {
			c.found = append(c.found, violation{kind: "transferred unasked", external: id,
				says: []string{fmt.Sprintf("bank       transfers %+v", list), "gateway    has no payout with this externalId"}})
		}
	}
	for id, list := range c.came {
		if !c.external[payin+" "+id] {
			c.found = append(c.found, violation{kind: "payment on no order", external: id,
				says: []string{fmt.Sprintf("bank       payments %+v", list), "gateway    has no pay-in with this externalId"}})
		}
	}
}

func (c *checker) comparePayout(o *order) {
	key, list := payout+" "+o.ReferenceID, c.sent[o.ExternalID]
	if len(list) > 1 {
		c.objectf("paid twice", key, o, "the bank has %d transfers for it", len(list))
		return
	}
	if len(list) == 0 {
		if o.Status == "COMPLETED" || o.Status == "RETURNED" {
			c.objectf("paid but not transferred", key, o, "it is %s, and the bank has no transfer for it", o.Status)
		}
		return
	}
	t := list[0]
	switch {
	case statusOf[t.Status] != o.Status:
		c.objectf("transferred but not so", key, o, "its transfer is %s, and it is %s", t.Status, o.Status)
	case t.Amount != o.Amount:
		c.objectf("transferred in another amount", key, o, "%d instead of %d", t.Amount, o.Amount)
	case t.PIXKey != o.PIXKey:
		c.objectf("transferred to another", key, o, "%s instead of %s", t.PIXKey, o.PIXKey)
	case t.Status != "failed" && t.EndToEndID != o.EndToEndID:
		c.objectf("another transfer's id", key, o, "%s instead of %s", o.EndToEndID, t.EndToEndID)
	case t.Status == "returned" && o.ReturnedAmount != t.Amount:
		c.objectf("returned in another amount", key, o, "%d instead of %d", o.ReturnedAmount, t.Amount)
	}
}

// taken is what of its payments an order takes: no more than it asks for, and
// nothing where its processor refused it.
func (c *checker) taken(o *order) (taken, all cents) {
	for _, p := range c.came[o.ExternalID] {
		all += p.Amount
	}
	if o.Status == "FAILED" {
		return 0, all
	}
	return min(all, o.Amount), all
}

func (c *checker) comparePayin(o *order) {
	key := payin + " " + o.ReferenceID
	taken, all := c.taken(o)
	paid := o.Status == "PAID"
	switch {
	case o.PaidAmount < taken:
		c.objectf("payment lost", key, o, "payments of %d came in, of which it should have %d, and it has %d", all, taken, o.PaidAmount)
	case o.PaidAmount > taken:
		c.objectf("payment booked twice", key, o, "payments of %d came in, of which it should have %d, and it has %d", all, taken, o.PaidAmount)
	case paid && taken < o.Amount:
		c.objectf("paid without money", key, o, "it is PAID, and %d of %d came in", taken, o.Amount)
	case !paid && taken == o.Amount:
		c.objectf("money without being paid", key, o, "all of it came in, and it is %s", o.Status)
	case o.EndToEndID != "" && !slices.ContainsFunc(c.came[o.ExternalID], func(p payment) bool { return p.EndToEndID == o.EndToEndID }):
		c.objectf("another payment's id", key, o, "no payment has its endToEndId %s", o.EndToEndID)
	}
}

// compareBalance computes the balance from what the bank did for the orders
// that clients know, and holds the gateway's own against it.
func (c *checker) compareBalance() {
	want := balance{Available: funds}
	for i := range c.orders[payin] {
		taken, all := c.taken(&c.orders[payin][i])
		want.Available += taken
		want.Unapplied += all - taken
	}
	for _, list := range c.sent {
		for _, t := range list {
			if t.Status == "paid" || t.Status == "processing" {
				want.Available -= t.Amount
			}
		}
	}
	if c.balance != want {
		c.found = append(c.found, violation{kind: "balance", says: []string{
			fmt.Sprintf("gateway    %+v", c.balance), fmt.Sprintf("bank       what it did makes %+v", want),
		}})
	}
}
