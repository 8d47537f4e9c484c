package checker

// noticeRow is a row of notices.
type noticeRow struct {
	processor, id string
	state         string
	nextAt        int64
	claimed       int64 // length of the claiming node's id
}

// notice declares the columns of notices.
func (c *columns) notice(r *noticeRow) {
	c.key.text("processor", &r.processor)
	c.key.text("notice_id", &r.id)
	c.mutable.text("state", &r.state)
	c.mutable.num("next_at", &r.nextAt)
	c.mutable.length("claimed_by", &r.claimed)
}

// notice is a notice of a processor, from its record to its end.
type notice struct {
	noticeRow

	name     string
	touched  bool
	reported bool // by a case
}

func (c *Checker) applyNotice(l *line) {
	var row noticeRow
	c.columns.read(l).notice(&row)
	name := row.processor + "/" + row.id
	n := c.notices[name]
	if n == nil {
		n = &notice{name: name}
		c.notices[name] = n
	}
	n.noticeRow = row
	if !n.touched {
		n.touched = true
		c.touched.notices = append(c.touched.notices, n)
	}
}

func (c *Checker) checkNotice(n *notice) {
	claimed := n.claimed != 0
	switch n.state {
	case "received":
		if (n.nextAt > 0) == claimed {
			c.violateMerchantf(Progress, rowID{}, "notice %s is due at %d, claimed: %v", n.name, n.nextAt, claimed)
		}
	case "dead_letter":
		if !n.reported {
			c.violateMerchantf(Progress, rowID{}, "notice %s is a dead letter, but no case is opened", n.name)
		}
		fallthrough
	default:
		if n.nextAt != 0 || claimed {
			c.violateMerchantf(Progress, rowID{}, "notice %s is %s, due at %d, claimed: %v", n.name, n.state, n.nextAt, claimed)
		}
	}
}
