package checker

import (
	"slices"
	"strings"
)

// merchant is the ledger of a merchant; the zero id is the platform.
type merchant struct {
	id        rowID
	accounts  []*account
	lastEvent int64 // number
	statement int64 // the last number of its statement
	inFlight  int64 // cents of payouts and refunds in flight, with their fees
	disputed  int64 // cents of open disputes
	pending   int64 // cents of receivables that have not settled
	surplus   int64 // cents of receipts of an order that are not applied to it
	nameless  int64 // cents of receipts of no order
	received  int64 // cents of receipts
	booked    map[string]int64
	touched   bool
}

// balanceRow is a row of balances.
type balanceRow struct {
	account           string
	balance, postings int64
}

// balance declares the columns of balances.
func (c *columns) balance(r *balanceRow) {
	c.key.text("account", &r.account)
	c.mutable.num("balance", &r.balance)
	c.mutable.num("postings", &r.postings)
}

// account is an account of a merchant.
type account struct {
	balanceRow

	sum     int64 // of its postings
	count   int64 // of its postings
	touched bool
}

// InDebt reports whether the merchant of an order owes money: its payouts wait.
func (c *Checker) InDebt(externalID string) bool {
	o := c.externalIDs[externalID]
	return o != nil && c.merchants[o.key.merchant].account("owed").balance < 0
}

// IsStopped reports whether the payouts of the merchant of an order are stopped by a contradiction.
func (c *Checker) IsStopped(externalID string) bool {
	o := c.externalIDs[externalID]
	return o != nil && slices.ContainsFunc(c.orderList, func(other *order) bool {
		return other.key.merchant == o.key.merchant && other.hasOpenCase("contradiction")
	})
}

// WasDamaged reports whether the row of an order has, or had, a case that calls it damaged: it waits for
// a person, or has waited.
func (c *Checker) WasDamaged(externalID string) bool {
	o := c.externalIDs[externalID]
	return o != nil && (o.hasOpenCase("damaged") || o.wasRepaired())
}

// merchant finds a merchant, which the current commit changes.
func (c *Checker) merchant(id rowID) *merchant {
	m := c.merchants[id]
	if m == nil {
		m = &merchant{id: id, booked: map[string]int64{}}
		c.merchants[id] = m
	}
	if !m.touched {
		m.touched = true
		c.touched.merchants = append(c.touched.merchants, m)
	}
	return m
}

func (m *merchant) account(name string) *account {
	for _, a := range m.accounts {
		if a.account == name {
			return a
		}
	}
	a := &account{balanceRow: balanceRow{account: name}}
	m.accounts = append(m.accounts, a)
	return a
}

// applyBalance follows the stored balance of an account.
func (c *Checker) applyBalance(l *line) {
	var next balanceRow
	c.columns.read(l).balance(&next)
	m := c.merchant(l.key.merchant)
	a := m.account(next.account)
	// A commit that opens an account writes available too.
	if next.postings < a.postings || next.postings == a.postings && next.account != "available" {
		c.violateMerchantf(Ledger, m.id, "balance %s is written with %d postings, it had %d", a.account, next.postings, a.postings)
	}
	a.balanceRow, a.touched = next, true
}

// checkMerchant checks the accounts of a merchant against each other, its orders and
// its receipts.
func (c *Checker) checkMerchant(m *merchant) {
	var sum int64
	for _, a := range m.accounts {
		sum += a.sum
		if a.touched && a.balance != a.sum {
			c.violateMerchantf(Ledger, m.id, "balance of %s is %d, its postings sum to %d", a.account, a.balance, a.sum)
		}
		if a.touched && a.postings != a.count {
			c.violateMerchantf(Ledger, m.id, "balance of %s has %d postings, not %d", a.account, a.count, a.postings)
		}
		a.touched = false
		switch {
		case strings.HasPrefix(a.account, "clearing:"), a.account == "written_off":
		case a.account == "costs" && a.sum <= 0:
		case a.account == "owed" && a.sum > 0, a.account != "owed" && a.sum < 0:
			c.violateMerchantf(Amounts, m.id, "%s is %d", a.account, a.sum)
		}
	}
	if sum != 0 {
		c.violateMerchantf(Ledger, m.id, "the ledger sums to %d", sum)
	}
	for _, is := range []struct {
		account string
		want    int64
		of      string
	}{
		{"held", m.inFlight, "payouts and refunds in flight"},
		{"disputed", m.disputed, "open disputes"},
		{"pending", m.pending, "receivables"},
		{"unapplied", m.surplus, "receipts beyond their orders"},
		{"unidentified", m.nameless, "receipts of no order"},
	} {
		if got := m.account(is.account).sum; got != is.want {
			c.violateMerchantf(Amounts, m.id, "%s is %d, %s sum to %d", is.account, got, is.of, is.want)
		}
	}
	if owed, available := m.account("owed").sum, m.account("available").sum; owed < 0 && available > 0 {
		c.violateMerchantf(Amounts, m.id, "%d is owed while %d is available", -owed, available)
	}
	booked := m.booked["received"] + m.booked["received_pending"] + m.booked["received_unapplied"] + m.booked["received_unidentified"]
	if booked != m.received {
		c.violateMerchantf(Incoming, m.id, "%d was received, %d is booked", m.received, booked)
	}
}
