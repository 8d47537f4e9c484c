package main

import (
	"fmt"
	"slices"
)

// statusOf maps the state of a transfer to the status of its payout.
var statusOf = map[string]string{"paid": "COMPLETED", "failed": "FAILED", "returned": "RETURNED"}

// outcomes are the possible statuses of a payout at a bank without faults, by the attempted
// action.
var outcomes = map[string][]string{
	"": {"COMPLETED"}, actionComplete: {"COMPLETED"}, actionCancel: {"COMPLETED", "CANCELED"},
	actionFail: {"COMPLETED", "FAILED"}, actionReturn: {"COMPLETED", "RETURNED"},
}

// compareTransfers compares payouts with transfers, in both directions.
func (c *checker) compareTransfers() {
	for i := range c.orders[payout] {
		c.comparePayout(&c.orders[payout][i])
	}
	for id, list := range c.sent {
		if !c.external[payout+" "+id] {
			c.found = append(c.found, violation{kind: "transferred without a payout", external: id,
				details: []string{fmt.Sprintf("bank       transfers %+v", list), "gateway    has no payout with this externalId"}})
		}
	}
}

// comparePayments compares pay-ins with payments, in both directions.
func (c *checker) comparePayments() {
	for i := range c.orders[payin] {
		c.comparePayin(&c.orders[payin][i])
	}
	for id, list := range c.received {
		if !c.external[payin+" "+id] {
			c.found = append(c.found, violation{kind: "payment without an order", external: id,
				details: []string{fmt.Sprintf("bank       payments %+v", list), "gateway    has no pay-in with this externalId"}})
		}
	}
}

func (c *checker) comparePayout(o *order) {
	key, list := payout+" "+o.ReferenceID, c.sent[o.ExternalID]
	c.compareOutcome(key, o)
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
		c.objectf("transferred but not reported", key, o, "its transfer is %s, and it is %s", t.Status, o.Status)
	case t.Amount != o.Amount:
		c.objectf("transferred another amount", key, o, "%d instead of %d", t.Amount, o.Amount)
	case t.PIXKey != o.PIXKey:
		c.objectf("transferred to another key", key, o, "%s instead of %s", t.PIXKey, o.PIXKey)
	case t.Status != "failed" && t.EndToEndID != o.EndToEndID:
		c.objectf("another transfer's id", key, o, "%s instead of %s", o.EndToEndID, t.EndToEndID)
	case t.Status == "returned" && o.ReturnedAmount != t.Amount:
		c.objectf("returned another amount", key, o, "%d instead of %d", o.ReturnedAmount, t.Amount)
	}
}

// compareOutcome checks that a payout that was not completed has an explanation.
func (c *checker) compareOutcome(key string, o *order) {
	a := c.placed[key]
	switch {
	case a == nil:
	case o.Status == "CANCELED" && a.Action != actionCancel:
		c.objectf("canceled without a request", key, o, "no client canceled it")
	case !c.bankFaults && !slices.Contains(outcomes[a.Action], o.Status):
		c.objectf("not completed", key, o, "the bank had no faults, and it is %s", o.Status)
	}
}

// applicable is the part of an order's payments that the order takes: no more than
// its amount, and nothing if its processor refused it.
func (c *checker) applicable(o *order) (applicable, all cents) {
	for _, p := range c.received[o.ExternalID] {
		all += p.Amount
	}
	if o.Status == "FAILED" {
		return 0, all
	}
	return min(all, o.Amount), all
}

func (c *checker) comparePayin(o *order) {
	key := payin + " " + o.ReferenceID
	want, all := c.applicable(o)
	paid := o.Status == "PAID"
	switch {
	case o.PaidAmount < want:
		c.objectf("payment lost", key, o, "payments of %d came in, of which it should have %d, and it has %d", all, want, o.PaidAmount)
	case o.PaidAmount > want:
		c.objectf("payment booked twice", key, o, "payments of %d came in, of which it should have %d, and it has %d", all, want, o.PaidAmount)
	case paid && want < o.Amount:
		c.objectf("paid without money", key, o, "it is PAID, and %d of %d came in", want, o.Amount)
	case !paid && want == o.Amount:
		c.objectf("money without being paid", key, o, "all of it came in, and it is %s", o.Status)
	case o.EndToEndID != "" && !slices.ContainsFunc(c.received[o.ExternalID], func(p payment) bool { return p.EndToEndID == o.EndToEndID }):
		c.objectf("another payment's id", key, o, "no payment has its endToEndId %s", o.EndToEndID)
	}
}

// compareBalance computes the balance from the bank's transfers and payments, and compares
// it with the gateway's.
func (c *checker) compareBalance() {
	want := balance{Available: funds}
	for i := range c.orders[payin] {
		applicable, all := c.applicable(&c.orders[payin][i])
		want.Available += applicable
		want.Unapplied += all - applicable
	}
	for _, list := range c.sent {
		for _, t := range list {
			if t.Status == "paid" || t.Status == "processing" {
				want.Available -= t.Amount
			}
		}
	}
	if c.balance != want {
		c.found = append(c.found, violation{kind: "balance", details: []string{
			fmt.Sprintf("gateway    %+v", c.balance), fmt.Sprintf("bank       %+v, computed from its transfers and payments", want),
		}})
	}
}
