package checker

import "encoding/json"

// batch is payouts that were accepted together.
type batch struct {
	orders   []*order
	complete bool // all its payouts are in the log: the commit that added them is over
	ended    bool // its event was written
}

// addToBatch adds a new payout to its batch. All payouts of a batch are of one commit.
func (c *Checker) addToBatch(o *order) {
	key := rowKey{o.key.merchant, o.batch}
	b := c.batches[key]
	if b == nil {
		b = &batch{}
		c.batches[key] = b
		c.touched.batches = append(c.touched.batches, b)
	}
	if b.complete {
		c.violatef(SingleOrder, o, "joins batch %s in a later commit", o.batch)
	}
	b.orders = append(b.orders, o)
}

// endBatch follows the event that a batch is complete: once, after its last payout is final.
func (c *Checker) endBatch(e *event) {
	b := c.batches[rowKey{e.key.merchant, e.subject}]
	if b == nil || b.ended {
		c.violateMerchantf(Events, e.key.merchant, "event %s of %s, which is not a batch or has ended before", e.kind, e.subject)
		return
	}
	b.ended = true
	counts := map[string]int{}
	for _, o := range b.orders {
		if counts[o.status]++; o.inFlight() {
			c.violatef(Events, o, "is %s, and its batch is complete", o.status)
		}
	}
	body, err := c.seal.openBody(e.key, e.sealed)
	var said struct {
		Data struct {
			Status string         `json:"status"`
			Count  int            `json:"count"`
			Counts map[string]int `json:"counts"`
		} `json:"data"`
	}
	if err == nil {
		err = json.Unmarshal(body, &said)
	}
	if err != nil || said.Data.Status != "COMPLETED" || said.Data.Count != len(b.orders) {
		c.violateMerchantf(Events, e.key.merchant, "event %s of %d payouts says %+v, %v", e.kind, len(b.orders), said, err)
		return
	}
	for status, n := range counts {
		if said.Data.Counts[status] != n {
			c.violateMerchantf(Events, e.key.merchant, "event %s counts %v, the payouts are %v", e.kind, said.Data.Counts, counts)
			return
		}
	}
}
