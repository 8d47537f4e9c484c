package store

import (
	"maps"

	"github.com/porteira/porteira/internal/payment"
)

// Capacity is the number of rows that this process can claim in the commit that makes
// them due: notices to apply per account, and deliveries per merchant. It is reserved before the
// transaction and passed in as a value.
type Capacity struct {
	Node       payment.ID // the claiming node; without it nothing is claimed
	Notices    map[string]int
	Deliveries map[payment.ID]int

	claimed Claimed
}

// Claimed is the rows that a commit claimed for its node, and the number of rows that it left due
// because the capacity was used up.
type Claimed struct {
	Node          payment.ID
	Notices       []Notice
	Deliveries    []Delivery
	Charges       int
	NoticesDue    map[string]int // by account
	DeliveriesDue map[payment.ID]int
}

// Any reports whether something was claimed.
func (c *Claimed) Any() bool { return len(c.Notices)+len(c.Deliveries)+c.Charges > 0 }

// any reports whether something could be claimed.
func (c *Capacity) any() bool {
	return !c.Node.IsZero() && len(c.Notices)+len(c.Deliveries) > 0
}

func (c Capacity) clone() Capacity {
	c.Notices, c.Deliveries = maps.Clone(c.Notices), maps.Clone(c.Deliveries)
	c.claimed = Claimed{Node: c.Node}
	return c
}

// ExpectDeliveries reserves capacity for deliveries of a merchant that the commit will probably
// make due. Further ones are due for any process.
func (n *Needs) ExpectDeliveries(merchant payment.ID, expected int) {
	if n.capacity.Deliveries == nil {
		n.capacity.Deliveries = map[payment.ID]int{}
	}
	n.capacity.Deliveries[merchant] += expected
}

// Capacity is the capacity that the operations need.
func (n *Needs) Capacity() Capacity { return n.capacity }

// takeDelivery takes capacity for a delivery of a merchant.
func (c *Capacity) takeDelivery(merchant payment.ID) bool {
	if c.Deliveries[merchant] <= 0 {
		if c.claimed.DeliveriesDue == nil {
			c.claimed.DeliveriesDue = map[payment.ID]int{}
		}
		c.claimed.DeliveriesDue[merchant]++
		return false
	}
	c.Deliveries[merchant]--
	return true
}

// takeNotice takes capacity for a notice of an account.
func (c *Capacity) takeNotice(account string) bool {
	if c.Notices[account] <= 0 {
		return false
	}
	c.Notices[account]--
	return true
}

// leaveNotice counts a notice of an account that is left due.
func (c *Capacity) leaveNotice(account string) {
	if c.claimed.NoticesDue == nil {
		c.claimed.NoticesDue = map[string]int{}
	}
	c.claimed.NoticesDue[account]++
}
