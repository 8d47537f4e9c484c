package checker

// foundRow is a row of found_transfers: a transfer that no payout has, because the database
// is an older copy.
type foundRow struct {
	externalID, processor, endToEndID string
	total                             int64 // cents that left
	amount                            int64 // of them that have not come back
	createdAt, adoptedAt              int64 // adoptedAt is 0 until its payout was requested again
}

// foundTransfer declares the columns of found_transfers.
func (c *columns) foundTransfer(r *foundRow) {
	c.fixed.text("external_id", &r.externalID)
	c.fixed.text("processor", &r.processor)
	c.fixed.text("end_to_end_id", &r.endToEndID)
	c.mutable.num("total", &r.total) // another amount may be reported after the release of its payout
	c.mutable.num("amount", &r.amount)
	c.fixed.num("created_at", &r.createdAt)
	c.mutable.num("adopted_at", &r.adoptedAt)
}

// foundTransfer is a found transfer, and what is booked about it.
type foundTransfer struct {
	foundRow

	key    rowKey
	booked map[string]int64 // cents that entries took from accounts, by kind of entry
}

func (c *Checker) applyFound(l *line) {
	var row foundRow
	c.columns.read(l).foundTransfer(&row)
	f := c.found[l.key]
	if l.op == rowAdded {
		o := c.externalIDs[row.externalID]
		if f != nil || c.foundByID[row.externalID] != nil || o != nil && !(c.isMistaken(o) && l.key == o.key) {
			c.violateMerchantf(SingleTransfer, l.key.merchant, "transfer %s was found, but has an owner", row.externalID)
		}
		f = &foundTransfer{key: l.key, booked: map[string]int64{}}
		c.found[l.key], c.foundByID[row.externalID] = f, f
	} else if f == nil || f.adoptedAt != 0 && !c.mayBeLate(f) {
		c.violateMerchantf(SingleTransfer, l.key.merchant, "found transfer %s changes, but was never added, or was adopted", l.key.id)
		return
	} else {
		changed := row
		row = f.foundRow
		if changed.total != row.total && !c.mayBeLate(f) {
			c.violateMerchantf(SingleTransfer, l.key.merchant, "found transfer %s was of %d, and is of %d", l.key.id, row.total, changed.total)
		}
		row.amount, row.adoptedAt = changed.amount, changed.adoptedAt
	}
	f.foundRow = row
	c.touched.found = append(c.touched.found, f)
}

// checkFound checks what is booked about a found transfer, and that it has an open case
// until its payout is requested again.
func (c *Checker) checkFound(f *foundTransfer) {
	if o := c.paidLate(f); o != nil {
		c.checkLate(o, f)
		return
	}
	taken := f.booked["payout_found"]
	adopted, open := int64(0), taken
	if f.adoptedAt != 0 {
		adopted, open = f.amount, 0
		if o := c.externalIDs[f.externalID]; o == nil || o.kind != Payout {
			c.violateMerchantf(SingleTransfer, f.key.merchant, "found transfer %s is adopted by no payout", f.externalID)
		}
	} else if o := c.externalIDs[f.externalID]; o != nil {
		c.violatef(SingleTransfer, o, "its transfer is booked as found, and not adopted")
	}
	reported := c.foundCases[f.key]
	if taken-f.booked["found_returned"] != f.amount || f.booked["payout_adopted"] != adopted || reported != open {
		c.violateMerchantf(SingleTransfer, f.key.merchant, "found transfer %s of %d: %d is booked, %d came back, %d is adopted, open cases report %d",
			f.externalID, f.amount, taken, f.booked["found_returned"], f.booked["payout_adopted"], reported)
	}
}
